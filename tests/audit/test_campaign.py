"""The campaign of replays: what it counts, that it repeats, and that faults in the library become violations.

Each replay tests the size of its noise at level 1e-6; their seeds are fixed.
"""

from __future__ import annotations

import pytest

from discreet.audit import campaign
from discreet.audit.campaign import NOT_PLACED, Cell, audit_cell, cells, run_campaign
from discreet.audit.faults import halved_sensitivity
from discreet.audit.page import campaign_summary, campaign_table
from discreet.audit.places import PLACES
from discreet.privacy.relation import Relation
from discreet.solvers import SOLVERS


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch):
    monkeypatch.setattr(campaign, "MANY", {"gd": {"steps": 3}, "sgd": {"batch_size": 10, "passes": 2}})
    monkeypatch.setattr(campaign, "ROUNDS", dict.fromkeys(PLACES, 2))


GD = Cell("gd", Relation.REPLACE, "memory")


@pytest.mark.slow
def test_every_solver_and_relation_has_cells_in_memory_and_in_all_places_that_it_takes():
    every = list(cells())
    assert len(set(every)) == len(every)
    for name in SOLVERS:
        for relation in Relation:
            assert {Cell(name, relation, place) for place in ("memory", "sparse", "persons")} <= set(every)
    assert Cell("sgd", Relation.ADD_REMOVE, "stored") in every
    assert Cell("sgd", Relation.ZERO_OUT, "stored") not in every
    assert Cell("cd", Relation.REPLACE, "stored") not in every
    assert {cell.name for cell in every if cell.place == NOT_PLACED} == set(campaign.CASES)


def test_releases_are_counted_one_by_one():
    """Two rounds of five hostile rows, and three steps each."""
    found = audit_cell(GD)
    assert (found.replays, found.releases) == (10, 30)
    assert found.passed
    assert 0.5 < found.largest <= 1.0 + 1e-9
    assert found.wrong == 0.5


@pytest.mark.slow
def test_a_campaign_repeats_whatever_the_processes(monkeypatch):
    monkeypatch.undo()  # other processes know of no changes
    chosen = [Cell("bolt-on", Relation.ADD_REMOVE, "sparse"), Cell("newton", Relation.REPLACE, "stored")]
    one, two = list(run_campaign(chosen, processes=1)), list(run_campaign(chosen, processes=2))
    assert one == two
    assert all(tally.passed for tally in one)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["persons", "stored"])
def test_sampled_batches_are_among_the_cells(place):
    found = audit_cell(Cell("sgd", Relation.ADD_REMOVE, place))
    assert found.passed
    assert found.releases >= 8 * found.replays == 80


def test_a_fault_in_the_library_is_a_violation():
    with halved_sensitivity():
        found = audit_cell(GD)
    assert not found.passed
    assert any("moved by" in text for text in found.violations)
    assert "- VIOLATION: gd, replace, memory: Gaussian.release" in campaign_summary([found])
    assert f"| {len(found.violations)} |" in campaign_table([found])


def test_an_audit_that_could_not_see_a_wrong_distance_does_not_pass(monkeypatch):
    monkeypatch.setattr(campaign, "WRONG", (1.0,))
    found = audit_cell(GD)
    assert found.violations == ()
    assert not found.passed
    assert "MISSED" in campaign_table([found])
    assert "and found in 0" in campaign_summary([found])
