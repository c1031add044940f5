"""The one road of every release: a plan books itself, reads in a block, commits and keeps a record."""

from __future__ import annotations

import copy
import pickle

import pytest

from discreet import Budget, Ledger
from discreet._common.digest import _first_modules, digest_of
from discreet._common.exceptions import DiscreetWarning
from discreet.data.public import Public
from discreet.privacy import release
from discreet.privacy.ledger.records import ChainError
from discreet.privacy.mechanisms import Gaussian, Laplace
from discreet.privacy.random.generator import generator_from
from discreet.privacy.release import ReleasePlan, booked

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


def a_plan(multiplier=10.0, **changes):
    facts = {"kind": "sums", "public": Public.of(1000, 2), "budget": Budget(1.0, 1e-6)}
    return ReleasePlan(**facts | {"mechanisms": {"first": None, "second": Gaussian(multiplier)}} | changes)


@pytest.fixture
def ledger(tmp_path):
    book = Ledger(tmp_path / "budget.db")
    book.open("people", 2.0, 1e-6)
    return book


def test_mechanisms_and_settings_are_attributes():
    plan = a_plan(settings={"bins": 3})
    assert plan.first is None
    assert (plan.second, plan.bins) == (Gaussian(10.0), 3)
    with pytest.raises(AttributeError, match="third"):
        _ = plan.third
    for twin in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert twin == plan
        assert twin.second == plan.second


def test_the_cost_is_that_of_all_mechanisms_unless_it_is_stated():
    assert a_plan().event == Gaussian(10.0).event
    both = a_plan(mechanisms={"first": Laplace(5.0), "second": Gaussian(10.0)})
    assert len(both.event.events) == 2
    assert a_plan(cost=Laplace(2.0).event).event == Laplace(2.0).event


def test_a_result_is_kept_where_the_ledger_cannot_be_written_any_more(ledger, monkeypatch):
    """Its cost is counted; an error here would throw away what is paid for. A ledger that is damaged is an error."""

    def fail(error):
        def _commit(ledger, reservation):
            raise error

        monkeypatch.setattr(Ledger, "_commit", _commit)

    fail(OSError("the disk of the ledger is full; nothing was written"))
    with pytest.warns(DiscreetWarning, match="stays counted as reserved: the disk"):  # noqa: SIM117 - around the block
        with a_plan().booked("private_sums", ledger, "people", None) as booking:
            pass
    assert booking.guarantee.release.ledger.entries == (ledger.entries("people")[0].id,)
    assert ledger.entries("people")[0].status == "reserved"
    fail(ChainError("the ledger was damaged"))
    with pytest.raises(ChainError), a_plan().booked("private_sums", ledger, "people", None):
        pass


def test_a_release_is_counted_before_the_block_and_committed_after_it(ledger):
    with a_plan().booked("private_sums", ledger, "people", None) as booking:
        (entry,) = ledger.entries("people")
        assert (entry.status, entry.note) == ("reserved", "private_sums")
        assert booking.record is None
        assert booking.guarantee.epsilon == 1.0  # stated before anything is read
    assert ledger.entries("people")[0].status == "committed"
    assert booking.guarantee.release.ledger.dataset == "people"
    assert (booking.record.rows, booking.record.rows_are) == (1000, "exact")


def test_a_block_that_dies_stays_counted(ledger):
    spent = ledger.spent("people")
    with pytest.raises(ZeroDivisionError), a_plan().booked("private_sums", ledger, "people", None):
        raise ZeroDivisionError
    assert [entry.status for entry in ledger.entries("people")] == ["reserved"]
    assert ledger.spent("people") > spent


def test_what_a_ledger_refuses_is_never_read(ledger):
    for random_state, dataset, plan, words in (
        (0, "people", a_plan(), "seed"),
        (None, None, a_plan(), "dataset"),
        (None, "people", a_plan(public=Public.of(1000, 2, relation="zero_out")), "relation"),
        (None, "people", a_plan(public=Public.of(1000, 2, persons=True)), "persons"),
    ):
        with pytest.raises(ValueError, match=words), plan.booked("private_sums", ledger, dataset, random_state):
            pytest.fail("the rows were read")
    assert ledger.entries("people") == [] or ledger.spent("people") == 0.0


def test_a_seed_is_named_and_keyed_by_the_plan():
    def draw(plan, name="private_sums", *beside):
        with plan.booked(name, None, None, 0, *beside) as booking:
            assert booking.guarantee.leaks
            return booking.rng.bytes(8)

    first = draw(a_plan())
    assert draw(a_plan()) == first
    others = [draw(a_plan(11.0)), draw(a_plan(kind="means")), draw(a_plan(), "sums"), draw(a_plan(), "private_sums", 1)]
    assert len({first, *others}) == 5


def test_a_stream_says_how_many_rows_may_come():
    for capped, rows in ((True, 1000), (False, None)):
        with booked(a_plan(), generator_from(None), note="stream", capped=capped) as booking:
            pass
        assert (booking.record.rows, booking.record.rows_are) == (rows, "maximum")


def test_names_in_digests_stay():
    """Plans that took the place of classes count under the names of these, so that seeds give the same noise."""
    assert set(release._DIGESTED_AS.values()) <= set(_first_modules())
    assert digest_of(a_plan(kind="means")) != digest_of(a_plan(kind="sums"))
