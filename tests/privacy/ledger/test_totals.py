"""Running totals: flat cost, the same sums as all records, and no edit unnoticed."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import accounting
from discreet.privacy.accounting import event_to_dict, gaussian_event, laplace_event, poisson_event, selection_event
from discreet.privacy.ledger import Ledger, chain
from discreet.privacy.ledger.account import Account, account_in
from discreet.privacy.ledger.records import ChainError
from discreet.privacy.ledger.total import Total, event_text
from discreet.privacy.relation import Relation

DELTA = 1e-6
QUARTER = laplace_event(4.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    made = Ledger(path)
    made.open("t", 1.0, DELTA)
    made.open("u", 2.0, 0.0)
    for multiplier in (50.0, 60.0, 70.0):
        made.reserve("t", gaussian_event(multiplier), relation="replace")
    return made


def run_sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        assert connection.execute(statement).rowcount > 0, "the fault must be planted"
    connection.commit()
    connection.close()


# --- what a total is -----------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.builds(gaussian_event, st.floats(5.0, 100.0), st.integers(0, 3)),
    st.builds(laplace_event, st.sampled_from([20.0, 40.0]), st.integers(1, 3)),
    st.builds(poisson_event, st.just(0.01), st.sampled_from([3.0, 4.0]), st.integers(1, 5)),
    st.just(accounting.no_event()),
)


@settings(deadline=None, max_examples=12)
@given(events=st.lists(EVENTS, min_size=1, max_size=6))
def test_a_total_costs_what_its_events_cost_and_never_less(events: list[Any]) -> None:
    total = Total()
    for event in events:
        total = total.plus(event_text(event))
    assert total.entries == len(events)
    assert total.in_order
    for relation in Relation:
        exact = accounting.epsilon_of(accounting.compose(events), DELTA, relation)
        found = accounting.epsilon_of(total.event(), DELTA, relation)
        assert exact <= found * (1.0 + 1e-12)
        assert found == pytest.approx(exact, rel=1e-6, abs=1e-12)  # the grid of a PLD moves by less than that


def test_merged_gaussians_are_rounded_to_more_cost() -> None:
    """500 of them: never below the sum in exact fractions, and above by at most 1e-11."""
    total, exact = Total(), Fraction(0)
    for i in range(500):
        multiplier = 1000.0 + i / 7.0
        total = total.plus(event_text(gaussian_event(multiplier)))
        exact += 1 / Fraction(multiplier) ** 2
    ((text, count),) = total.runs
    merged = count / Fraction(json.loads(text)["noise_multiplier"]) ** 2
    assert exact <= merged <= exact * (1 + Fraction(1, 10**11))


def test_a_pure_budget_keeps_one_sum_that_is_never_too_small(path: Path) -> None:
    ledger, exact = Ledger(path), Fraction(0)
    ledger.open("p", 1.0, 0.0)
    events = [laplace_event(100.0), selection_event(0.01, 3), laplace_event(300.0, 2), accounting.no_event()]
    for event in events:
        ledger.reserve("p", event, relation="replace")
    for multiplier in (100.0, 300.0, 300.0):
        exact += Fraction(1.0 / multiplier)
    exact += 3 * Fraction(0.01)
    account = ledger.account("p")
    ((text, count),) = account.total.runs
    assert (count, account.total.entries) == (1, 4)
    assert exact <= Fraction(json.loads(text)["epsilon"]) <= exact * (1 + Fraction(1, 10**15))
    assert not ledger.fits("p", gaussian_event(1e6))
    assert ledger.verify() == []


def test_selections_keep_their_order_as_long_as_the_accounting_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounting.events, "LONGEST_ORDER", 6)
    events = [gaussian_event(20.0), selection_event(0.1), selection_event(0.1), gaussian_event(30.0)]
    total = Total()
    for event in events:
        total = total.plus(event_text(event))
    assert [count for _, count in total.runs] == [1, 2, 1]
    assert total.in_order
    assert accounting.flatten(total.event()) == accounting.flatten(accounting.compose(events))
    pair = accounting.compose([selection_event(0.1), gaussian_event(40.0)])
    for _ in range(3):
        total = total.plus(event_text(pair))
    assert not total.in_order, "an order that is not kept must not be used for a proof"
    assert len(total.runs) == 2
    assert dict(total.runs)[event_text(selection_event(0.1))] == 5
    assert Total.from_dict(json.loads(json.dumps(total.to_dict()))) == total


def test_an_order_that_was_given_up_does_not_lower_the_cost() -> None:
    """Selections listed last look cheaper to a proof by order than selections between the Gaussians may be."""
    event = accounting.compose([selection_event(0.4, 3), gaussian_event(3.0)])
    with_order = accounting.certify(event, DELTA, Relation.REPLACE)
    without = accounting.certify(event, DELTA, Relation.REPLACE, in_order=False)
    assert with_order.route == "bounded-range recursion"
    assert without.route != "bounded-range recursion"
    assert without.epsilon >= with_order.epsilon


@pytest.mark.parametrize("count", [-1, -1000])
def test_an_event_that_happens_less_than_never_is_refused(ledger: Ledger, count: int) -> None:
    """Otherwise it would be subtracted from the total."""
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent

    with pytest.raises(ValueError, match="count"):
        ledger.reserve("t", SelfComposedDpEvent(GaussianDpEvent(50.0), count), relation="replace")
    with pytest.raises(ValueError, match="times"):
        Total().plus(event_text(SelfComposedDpEvent(GaussianDpEvent(50.0), count)))
    with pytest.raises(ValueError, match="multiplier"):
        ledger.reserve("t", GaussianDpEvent(-50.0), relation="replace")
    assert len(ledger.entries("t")) == 3


# --- flat cost -----------------------------------------------------------------------------------------


def test_a_reservation_reads_as_much_after_a_thousand_entries_as_after_a_hundred(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, read = Ledger(path), []
    ledger.open("t", 1.0, DELTA)
    honest = chain._record
    monkeypatch.setattr(chain, "_record", lambda row: read.append(row) or honest(row))
    amounts, stored = [], []
    for size in (100, 900):
        with ledger._chain.writing() as writer:
            account = account_in(writer, "t")
            assert account is not None
            for i in range(size):
                event = gaussian_event(5000.0 + i)
                account = account.plus(event_text(event))
                content = {"event": event_to_dict(event), "note": ""}
                writer.append("reserve", "t", content, account.to_text())
        read.clear()
        ledger.reserve("t", gaussian_event(4000.0), relation="replace")
        amounts.append(len(read))
        stored.append(len(ledger._chain.everything()[1]["t"][1]))
    assert amounts[1] <= amounts[0] < 2 * chain.LATEST + 20
    assert stored[1] <= stored[0] + 10
    assert ledger.verify() == []


# --- edits ---------------------------------------------------------------------------------------------

EDITS = {
    "cheaper": "UPDATE discreet_totals SET total = replace(total, '\"noise_multiplier\": ', '\"noise_multiplier\": 9')",
    "larger budget": "UPDATE discreet_totals SET total = replace(total, '\"epsilon\": 1.0', '\"epsilon\": 9.0')",
    "other record": "UPDATE discreet_totals SET number = number - 1 WHERE dataset = 't'",
    "deleted": "DELETE FROM discreet_totals WHERE dataset = 't'",
    "of another data set": "UPDATE discreet_totals SET total = (SELECT total FROM discreet_totals WHERE dataset = 'u')",
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_altered_total_is_noticed_and_grants_nothing(ledger: Ledger, path: Path, edit: str) -> None:
    run_sql(path, EDITS[edit])
    assert "the running total of data set 't' was altered" in ledger.verify()
    for use in (lambda: ledger.reserve("t", gaussian_event(1e6), relation="replace"), lambda: ledger.spent("t")):
        with pytest.raises(ChainError, match="running total"):
            use()


def test_an_earlier_total_cannot_be_put_back(ledger: Ledger, path: Path) -> None:
    number, text = ledger._chain.everything()[1]["t"]
    ledger.reserve("t", gaussian_event(40.0), relation="replace")
    run_sql(path, f"UPDATE discreet_totals SET number = {number}, total = '{text}' WHERE dataset = 't'")
    assert ledger.verify() == ["the running total of data set 't' was altered"]
    with pytest.raises(ChainError, match="running total"):
        ledger.spent("t")


def test_a_total_that_is_not_the_sum_is_reported_though_its_hash_is_right(ledger: Ledger) -> None:
    with ledger._chain.writing() as writer:
        account = account_in(writer, "t")
        assert account is not None
        content = {"event": event_to_dict(gaussian_event(30.0)), "note": ""}
        writer.append("reserve", "t", content, Account(account.allowance, Total()).to_text())
    assert ledger.verify() == ["the running total of data set 't' is not the sum of its records"]


def test_an_edit_far_back_changes_no_sum_and_is_found_by_verify(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "LATEST", 1)
    ledger.reserve("t", gaussian_event(40.0), relation="replace")
    spent = ledger.spent("t")
    run_sql(path, "UPDATE discreet_records SET body = replace(body, '50.0', '5000.0') WHERE number = 3")
    assert ledger.spent("t") == spent
    assert ledger.verify() == ["record 3 (reserve 't') was altered"]


UNKNOWN: dict[str, tuple[str, dict[str, Any], str]] = {
    "kind": ("refund", {"entry": 3}, "has the unknown kind 'refund'"),
    "word": (
        "reserve",
        {"event": {}, "note": "", "discount": 0.5},
        "says 'discount', which this version does not know",
    ),
    "relation": ("open", {"epsilon": 9.0, "delta": 0.0}, "does not say its relation"),
    "event": ("reserve", {"note": ""}, "does not say its event"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_this_version_does_not_understand_is_refused(ledger: Ledger, case: str) -> None:
    """The hashes are right: a later version may have written it, and meant something by it."""
    kind, content, words = UNKNOWN[case]
    with ledger._chain.writing() as writer:
        number = writer.append(kind, "t", content)
    assert any(found.startswith(f"record {number} ") and words in found for found in ledger.verify())
    for use in (lambda: ledger.reserve("u", QUARTER, relation="replace"), lambda: ledger.spent("t")):
        with pytest.raises(ChainError, match=words):
            use()
