"""What the ledger promises: everything counted, composed, never lost; clones and workers included."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._common.exceptions import BudgetExceededError
from discreet.privacy.accounting import (
    calibrate,
    compose,
    delta_of,
    epsilon_of,
    gaussian_event,
    laplace_event,
    non_private_event,
    poisson_event,
    selection_event,
)
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Ledger, Reservation
from discreet.privacy.ledger.account import Allowance
from discreet.privacy.relation import Relation

DELTA = 1e-6
QUARTER = laplace_event(4.0)  # epsilon 0.25 exactly at delta 0, so a pure budget can be filled to the brim


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budget.db")
    made.open("patients", 1.0, DELTA)
    made.open("pure", 1.0, 0.0)
    return made


def granted(ledger: Ledger, dataset: str, event: Any, relation: Relation = Relation.REPLACE) -> bool:
    try:
        ledger.reserve(dataset, event, relation=relation)
    except BudgetExceededError:
        return False
    return True


# --- what is spent -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    multipliers=st.lists(st.floats(4.0, 60.0), min_size=1, max_size=8),
    relation=st.sampled_from(list(Relation)),
)
def test_accepts_exactly_what_composes_within_the_budget(multipliers: list[float], relation: Relation) -> None:
    ledger = Ledger("sqlite://")
    ledger.open("t", 1.0, DELTA, relation)
    accepted: list[Any] = []
    for event in map(gaussian_event, multipliers):
        fits = delta_of(compose([*accepted, event]), 1.0, relation) <= DELTA
        assert ledger.fits("t", event) == fits
        assert granted(ledger, "t", event, relation) == fits
        accepted += [event] if fits else []
    spent = epsilon_of(compose(accepted), DELTA, relation) if accepted else 0.0
    assert ledger.spent("t") == pytest.approx(spent, rel=1e-9)
    assert ledger.spent("t") + ledger.remaining("t") == pytest.approx(1.0)
    assert [entry.event for entry in ledger.entries("t")] == accepted


def test_epsilons_are_composed_and_never_added(ledger: Ledger) -> None:
    event = gaussian_event(20.0)
    ledger.reserve("patients", event, relation="replace")
    alone = ledger.spent("patients")
    for _ in range(3):
        ledger.reserve("patients", event, relation="replace")
    assert ledger.spent("patients") < 3 * alone
    assert ledger.spent("patients") == pytest.approx(epsilon_of(gaussian_event(20.0, 4), DELTA, Relation.REPLACE))


def test_events_of_every_kind_share_one_budget() -> None:
    ledger = Ledger("sqlite://")
    ledger.open("t", 3.0, DELTA, "add_remove")
    events = [gaussian_event(5.0), laplace_event(10.0), poisson_event(0.01, 2.0, 10), selection_event(0.1, 2)]
    spent = [ledger.spent("t")]
    for event in events:
        ledger.reserve("t", event, relation="add_remove")
        spent.append(ledger.spent("t"))
    assert spent[0] == 0.0
    assert spent == sorted(set(spent)), "every event must cost something"
    assert [entry.event for entry in ledger.entries("t")] == events


PLANS: dict[str, Callable[[float], Any]] = {
    "gaussian": lambda z: gaussian_event(z, 7),
    "laplace": lambda z: laplace_event(z, 7),
    "selection": lambda z: selection_event(1.0 / z, 5),
    "greedy": lambda z: compose([selection_event(2.0 / z), gaussian_event(z)] * 3),
    "poisson": lambda z: poisson_event(0.05, z, 20),
}


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ADD_REMOVE])
@pytest.mark.parametrize("epsilon", [0.1, 7.3])
@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_for_the_whole_budget_fits_once(kind: str, epsilon: float, relation: Relation) -> None:
    ledger = Ledger("sqlite://")
    ledger.open("t", epsilon, DELTA, relation)
    plan = PLANS[kind](calibrate(PLANS[kind], Budget(epsilon, DELTA), relation))
    ledger.reserve("t", plan, relation=relation)
    assert ledger.spent("t") == pytest.approx(epsilon, rel=2e-3)
    assert not ledger.fits("t", plan)


def test_a_proof_in_delta_is_enough_when_epsilon_has_none(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.privacy.accounting.epsilon_of", lambda *_: float("inf"))
    assert ledger.fits("patients", gaussian_event(40.25))
    assert not ledger.fits("patients", gaussian_event(1.25))
    monkeypatch.setattr("discreet.privacy.accounting.delta_of", lambda *_: 0.0)
    assert not ledger.fits("pure", gaussian_event(40.5)), "a tiny delta that rounds to 0 is not pure"


def test_pure_budget_refuses_gaussian_noise() -> None:
    ledger = Ledger("sqlite://")
    ledger.open("t", 1.0, 0.0)
    assert not granted(ledger, "t", gaussian_event(1000.0))
    assert [granted(ledger, "t", QUARTER) for _ in range(6)] == [True] * 4 + [False] * 2


def test_refusal_is_one_line_with_what_would_fit(ledger: Ledger) -> None:
    ledger.reserve("pure", laplace_event(2.0), relation="replace")
    with pytest.raises(BudgetExceededError) as why_incompatible:
        ledger.reserve("pure", laplace_event(1.25), relation="replace")
    text = str(why_incompatible.value)
    assert "\n" not in text
    assert text == "data set 'pure' does not cover this; epsilon 0.5 would fit"
    assert len(ledger.entries("pure")) == 1


def test_no_budget_is_large_enough_for_a_release_without_noise() -> None:
    ledger = Ledger("sqlite://")
    ledger.open("t", 1e6, 0.999)
    assert not granted(ledger, "t", non_private_event())
    assert not granted(ledger, "t", compose([QUARTER, non_private_event()]))
    assert granted(ledger, "t", QUARTER)


# --- opening -------------------------------------------------------------------------------------------


def test_a_budget_never_changes_silently(ledger: Ledger) -> None:
    before = ledger.head()
    ledger.open("patients", 1, DELTA, Relation.REPLACE)
    assert ledger.head() == before
    for changed in ((2.0, DELTA, "replace"), (1.0, 2e-6, "replace"), (1.0, DELTA, "zero_out")):
        with pytest.raises(ValueError, match=r"'patients' is open with epsilon=1.0, delta=1e-06"):
            ledger.open("patients", *changed)
    assert ledger.allowance("patients") == Allowance("patients", 1.0, DELTA, Relation.REPLACE)


@pytest.mark.parametrize(
    ("epsilon", "delta", "relation"),
    [(0, DELTA, "replace"), (-1, 0, "replace"), (float("inf"), 0, "replace"), (float("nan"), 0, "replace"),
     (1, 1, "replace"), (1, -1e-9, "replace"), (1, float("nan"), "replace"), (1, 0, "swap")],
)  # fmt: skip
def test_refuses_a_budget_that_promises_nothing(epsilon: float, delta: float, relation: str) -> None:
    ledger = Ledger("sqlite://")
    with pytest.raises(ValueError, match=r"epsilon|delta|Relation"):
        ledger.open("t", epsilon, delta, relation)
    assert ledger.datasets() == []


def test_unknown_data_set_says_which_call_to_make(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match='unknown data set "it\'s"') as why_incompatible:
        ledger.reserve("it's", QUARTER, relation="zero_out")
    call = re.search(r"ledger\.open\(.*\)", str(why_incompatible.value))
    assert call is not None
    eval(call.group(), {"ledger": ledger})
    ledger.reserve("it's", QUARTER, relation="zero_out")
    assert ledger.datasets() == ["patients", "pure", "it's"]
    assert ledger.spent("patients") == 0.0
    for question in (ledger.spent, ledger.remaining, ledger.entries, ledger.head, ledger.allowance):
        with pytest.raises(ValueError, match="unknown data set 'nobody'"):
            question("nobody")


def test_relations_do_not_mix(ledger: Ledger) -> None:
    ledger.reserve("pure", QUARTER, relation="replace")
    with pytest.raises(ValueError, match="kept under relation='replace'"):
        ledger.reserve("pure", QUARTER, relation=Relation.ADD_REMOVE)
    assert len(ledger.entries("pure")) == 1


@pytest.mark.parametrize("relation", list(Relation))
def test_a_missing_relation_is_refused(ledger: Ledger, relation: str) -> None:
    """The same noise costs more when a row is replaced, so the ledger must not guess what was meant."""
    ledger.open("other", 1.0, 0.0, relation)
    with pytest.raises(ValueError, match=f"say relation='{relation}'"):
        ledger.reserve("other", QUARTER)
    assert ledger.entries("other") == []
    ledger.reserve("other", QUARTER, relation=relation)


# --- reserve, commit, crash ----------------------------------------------------------------------------


def test_a_block_that_ends_well_commits_and_one_that_fails_stays_counted(ledger: Ledger) -> None:
    with ledger.reserve("pure", QUARTER, note="first", relation="replace"):
        pass
    with pytest.raises(ZeroDivisionError), ledger.reserve("pure", QUARTER, note="second", relation="replace"):
        raise ZeroDivisionError
    with ledger.reserve("pure", QUARTER, note="third", relation="replace") as early:
        early.commit()
    first, second, third = ledger.entries("pure")
    assert [e.status for e in (first, second, third)] == ["committed", "reserved", "committed"]
    assert [e.note for e in (first, second, third)] == ["first", "second", "third"]
    assert first.committed is not None
    assert first.created <= first.committed <= second.created
    assert second.committed is None
    assert third.id == early.id
    assert ledger.spent("pure") == pytest.approx(0.75)


def test_commit_works_once_whoever_asks(ledger: Ledger) -> None:
    reservation = ledger.reserve("pure", QUARTER, relation="replace")
    elsewhere = pickle.loads(pickle.dumps(reservation))
    elsewhere.commit()
    for again in (reservation, elsewhere):
        with pytest.raises(RuntimeError, match="already committed"):
            again.commit()
    assert ledger.verify() == []


def test_only_what_this_ledger_granted_can_be_committed(ledger: Ledger, tmp_path: Path) -> None:
    mine = ledger.reserve("pure", QUARTER, relation="replace")
    twin = Ledger(tmp_path / "twin.db")
    twin.open("patients", 1.0, DELTA)
    twin.open("pure", 1.0, 0.0)
    theirs = twin.reserve("pure", QUARTER, relation="replace")
    assert (theirs.id, theirs.dataset) == (mine.id, mine.dataset)
    assert theirs.hash != mine.hash
    never_granted = [
        Reservation(ledger, theirs.id, theirs.dataset, theirs.hash),
        Reservation(ledger, mine.id, "patients", mine.hash),
        Reservation(ledger, 77, "pure", mine.hash),
        Reservation(ledger, 2, "pure", ledger._chain.read()[0][1].hash),  # the record that opened the budget
        Reservation(Ledger(tmp_path / "empty.db"), mine.id, mine.dataset, mine.hash),
    ]
    before = ledger.head()
    for reservation in never_granted:
        with pytest.raises(ValueError, match="never granted"):
            reservation.commit()
    assert ledger.head() == before
    mine.commit()


@pytest.mark.slow
def test_a_killed_process_has_spent_its_reservation(ledger: Ledger) -> None:
    script = (
        "import os, sys\n"
        "from discreet.privacy.ledger import Ledger\n"
        "from discreet.privacy.accounting import laplace_event\n"
        "with Ledger(sys.argv[1]).reserve('pure', laplace_event(4.0), relation='replace'): os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, ledger.url], check=False)
    assert done.returncode == -9
    assert [entry.status for entry in ledger.entries("pure")] == ["reserved"]
    assert ledger.spent("pure") == pytest.approx(0.25)
    assert [granted(ledger, "pure", QUARTER) for _ in range(4)] == [True, True, True, False]


def test_importing_the_ledger_is_cheap() -> None:
    heavy = {"sqlalchemy", "dp_accounting"}
    script = f"import sys, discreet.privacy.ledger; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
