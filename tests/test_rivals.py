"""Methods of others on the scoreboard: what a replaced row changes, what noise costs, nothing made unasked."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.privacy import accounting

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from framework import Dataset, registry
from generality.cells import Cell
from generality.tables import Table
from rivals import adassp, calibration, choice_of_tables, environments, exchange, judge, page, summary, tukey

sys.path.pop(0)


class Recorder:
    """A generator without noise that remembers the scales it was asked for."""

    def __init__(self):
        self.scales = []

    def normal(self, scale=1.0, size=None):
        self.scales.append(scale)
        return np.zeros(size) if size is not None else 0.0


def neighbours(rng, rows=12, columns=3):
    """Two tables of rows of norm 1 at most with targets in [-1, 1] that differ in one row."""
    X = rng.normal(size=(rows, columns))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    y = rng.uniform(-1.0, 1.0, size=rows)
    other_X, other_y = X.copy(), y.copy()
    row = rng.normal(size=columns)
    other_X[0], other_y[0] = row / np.linalg.norm(row), rng.choice([-1.0, 1.0])
    if rng.random() < 0.3:
        X[0], y[0] = other_X[0], -other_y[0]  # the largest change of the products
    return (X, y), (other_X, other_y)


def adassp_costs(scales, first, second, found):
    """The squared mu of every release of AdaSSP between two tables, at the weights that were released before it."""
    matrices = [X.T @ X for X, _ in (first, second)]
    matrix, eigenvalue, *products = scales
    moved = [np.linalg.norm(np.triu(matrices[0] - matrices[1])) / matrix]
    moved.append(abs(np.linalg.eigvalsh(matrices[0])[0] - np.linalg.eigvalsh(matrices[1])[0]) / eigenvalue)
    for weights, scale in zip(found, products, strict=True):
        sums = [X.T @ np.clip(y - X @ weights, -1.0, 1.0) for X, y in (first, second)]
        moved.append(np.linalg.norm(sums[0] - sums[1]) / scale)
    return sum(one**2 for one in moved)


@pytest.mark.parametrize("rounds", [1, 10])
def test_no_neighbours_cost_adassp_more_than_its_budget(rounds):
    """300 random pairs, some of them extreme, and released weights that are arbitrary; half the noise is too little."""
    rng, mu, noise = np.random.default_rng(0), 0.8, Recorder()
    adassp.weights(np.eye(3), np.ones(3), mu, 1e-6, rounds, noise)
    found = [np.zeros(3)] + [rng.normal(size=3) for _ in range(rounds - 1)]
    costs, halved = [], [0.5 * scale for scale in noise.scales]
    for _ in range(300):
        pair = neighbours(rng)
        costs.append(adassp_costs(noise.scales, *pair, found))
        assert adassp_costs(halved, *pair, found) == pytest.approx(4.0 * costs[-1])
    assert max(costs) <= mu**2 * (1.0 + 1e-9)
    assert 4.0 * max(costs) > mu**2


@pytest.mark.parametrize("rounds", [1, 10])
def test_adassp_spends_its_budget_on_what_a_replaced_row_changes(rounds):
    """Neighbours that reach the largest change of each released statistic; the squares of the costs add up to mu^2."""
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    eigenvalue = abs(np.linalg.eigvalsh(np.outer(first, first))[-1])
    matrix = np.linalg.norm(np.triu(np.outer(first, first) - np.outer(second, second)))
    products = np.linalg.norm(first - (-first))  # the labels 1 and -1 of the same row
    noise, mu = Recorder(), 0.8
    adassp.weights(np.eye(2), np.ones(2), mu, 1e-6, rounds, noise)
    matrix_scale, eigenvalue_scale, *product_scales = noise.scales
    cost = (matrix / matrix_scale) ** 2 + (eigenvalue / eigenvalue_scale) ** 2
    cost += sum((products / scale) ** 2 for scale in product_scales)
    assert len(product_scales) == rounds
    assert cost == pytest.approx(mu**2)


def test_adassp_without_noise_is_least_squares():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(400, 3))
    y = X @ [0.3, -0.2, 0.1] + 0.1 * rng.normal(size=400)
    found = adassp.weights(X, y, 1e9, 1e-6, 1, rng)
    assert found == pytest.approx(np.linalg.lstsq(X, y)[0], abs=1e-5)


# TukeyEM, in one dimension, where its law can be computed.

MODELS, EPSILON, DELTA = 40, 2.0, 0.05  # so large a delta lets the test pass with few models


def depths(points, ends):
    """By counting: the least number of models on either side."""
    return np.minimum((ends[None] <= points[:, None]).sum(axis=1), (ends[None] >= points[:, None]).sum(axis=1))


def law(ends, cuts, tested=True):
    """The probability of no answer, then that of an answer in each interval between cuts."""
    half = 0.5 * EPSILON
    volumes = tukey.log_volumes(np.sort(ends)[:, None])
    gap = math.log(0.5 / DELTA) / half - tukey.distance(volumes, half, DELTA)
    passed = (0.5 * math.exp(-half * gap) if gap > 0.0 else 1.0 - 0.5 * math.exp(half * gap)) if tested else 1.0
    depth = depths(0.5 * (cuts[1:] + cuts[:-1]), ends)
    masses = np.where(depth >= MODELS // 4, np.exp(0.5 * half * depth) * np.diff(cuts), 0.0)
    return np.append(1.0 - passed, passed * masses / masses.sum())


def excess(ends, other, tested=True):
    """The least delta for which the two laws are (EPSILON, delta)-close, over both directions."""
    cuts = np.unique(np.concatenate([ends, other]))
    one, two = law(ends, cuts, tested), law(other, cuts, tested)
    bound = math.exp(EPSILON)
    return max(np.maximum(one - bound * two, 0.0).sum(), np.maximum(two - bound * one, 0.0).sum())


def pairs_of_models(rng, count):
    """Fits that agree, fits in two clusters with a gap at the depth that matters, and everything between."""
    for _ in range(count):
        ends = rng.normal(size=MODELS) * rng.choice([1.0, 1e-3, 1e3], size=MODELS, p=[0.9, 0.05, 0.05])
        if rng.random() < 0.5:
            low = rng.integers(5, 20)
            ends[:low] -= rng.choice([3.0, 1e3, 1e6])
        other = ends.copy()
        other[rng.integers(MODELS)] = rng.choice([rng.normal(), 1e6, -1e6, ends.max(), ends.min()])
        yield ends, other


def test_tukey_is_private_between_neighbours_and_would_not_be_without_its_test():
    rng = np.random.default_rng(1)
    found = [(excess(*pair), excess(*pair, tested=False)) for pair in pairs_of_models(rng, 400)]
    assert max(one for one, _ in found) <= DELTA
    assert max(one for _, one in found) > 2.0 * DELTA


def test_one_model_moves_the_boxes_by_one_depth_and_the_distance_by_one():
    rng, distances = np.random.default_rng(2), []
    for _ in range(200):
        ends = rng.normal(size=(MODELS, 2)) * rng.choice([1.0, 10.0])
        other = ends.copy()
        other[0] = rng.normal(size=2) * rng.choice([0.1, 1e6])
        one, two = (tukey.log_volumes(np.sort(table, axis=0)) for table in (ends, other))
        assert (one[1:] <= two[:-1] + 1e-9).all()
        assert (two[1:] <= one[:-1] + 1e-9).all()
        distances.append([tukey.distance(volumes, 2.0, 0.2) for volumes in (one, two)])
    assert np.abs(np.diff(distances)).max() == 1
    assert np.ptp(distances) >= 3


def test_draws_of_tukey_follow_their_law():
    """Chi-square of the depths of 4,000 draws in two dimensions, false alarms 1 in 10,000; and a wrong law."""
    from scipy.stats import chisquare

    rng = np.random.default_rng(3)
    ends = np.sort(rng.normal(size=(MODELS, 2)), axis=0)
    volumes = tukey.log_volumes(ends)
    points = np.array([tukey.draw(ends, volumes, 1.0, rng) for _ in range(4000)])
    depth = np.minimum(*(depths(points[:, j], ends[:, j]) for j in (0, 1)))
    places = np.arange(MODELS // 4, MODELS // 2 + 1)
    seen = np.array([(depth == place).sum() for place in places])
    assert seen.sum() == len(points)  # never outside the box of depth t
    volume = np.exp(volumes[places[0] - 1 :])
    shells = volume - np.append(volume[1:], 0.0)
    for epsilon, accepted in ((1.0, True), (1.3, False)):
        law_of_depths = shells * np.exp(0.5 * epsilon * places)
        expected = law_of_depths / law_of_depths.sum() * len(points)
        many = expected >= 5.0
        kept = [np.append(values[many][:-1], values[many][-1] + values[~many].sum()) for values in (seen, expected)]
        assert (chisquare(*kept).pvalue > 1e-4) == accepted


def test_tukey_is_near_least_squares_where_rows_are_many_and_refuses_where_they_are_few():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=(20_000, 2)), np.ones(20_000)])
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=20_000)
    assert tukey.coefficients(X, y, 3.0, 1e-6, rng) == pytest.approx([1.0, -2.0, 0.5], abs=0.02)
    with pytest.raises(tukey.RefusedError, match="too few"):
        tukey.coefficients(X[:100], y[:100], 1.0, 1e-6, rng)
    with pytest.raises(tukey.RefusedError, match="too far apart"):
        tukey.coefficients(np.column_stack([X, X[:, 0]]), np.round(y * 0), 3.0, 1e-6, rng)  # no volume


def test_a_huge_row_stops_nothing():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(8000, 2)), rng.normal(size=8000)
    X[0], y[0] = 1e308, -1e308
    with np.errstate(all="ignore"):
        assert np.isfinite(tukey.coefficients(X, y, 3.0, 1e-6, rng)).all()


# What the libraries are asked for.


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (3.0, 1e-9)])
def test_budgets_compose_to_the_guarantee_and_waste_none(epsilon, delta):
    noise = calibration.poisson_multiplier(epsilon, delta, 0.25, 80)
    rho = calibration.marginal_rho(epsilon, delta, 9)
    events = {
        "opacus": accounting.poisson_event(0.25, noise, 80),
        "marginals": calibration.marginal_event(rho, 9),
        "dp-ebm": accounting.gaussian_event(1.0 / calibration.ebm_mu(calibration.ebm_epsilon(epsilon, delta), delta)),
        "adassp": accounting.gaussian_event(1.0 / adassp.gaussian_mu(epsilon, delta)),
    }
    for event in events.values():
        assert 0.99 * epsilon <= accounting.epsilon_of(event, delta, "replace") <= epsilon * (1.0 + 1e-12)


def test_no_library_is_asked_for_more_noise_than_group_privacy_would():
    asked = calibration.ebm_epsilon(1.0, 1e-6)
    assert 0.5 < asked < 1.0
    replaced = calibration.poisson_multiplier(1.0, 1e-6, 0.25, 80)
    one_more = calibration.poisson_multiplier(1.0, 1e-6, 0.25, 80, "add_remove")
    for_groups = calibration.poisson_multiplier(0.5, 1e-6 / (1.0 + math.exp(0.5)), 0.25, 80, "add_remove")
    assert one_more < replaced < for_groups


# Environments, splits, tables.


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty folder for environments, and a record of those that were begun."""
    begun = []

    def fail(path, **_):
        begun.append(path)
        raise OSError("no space left")

    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))  # files import one another
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "environments")
    monkeypatch.setattr(environments.venv, "create", fail)
    environments.process_of.cache_clear()
    yield begun
    environments.process_of.cache_clear()


def test_environments_are_made_on_demand_only_and_a_failure_is_told_again_without_another_try(folder, capsys):
    experiment = registry.experiments()["scoreboard"]
    assert len(list(experiment.cells(False))) > 1000
    assert not environments.FOLDER.exists()
    opacus, cell = registry.methods()["Opacus"], small_cell()
    for _ in range(2):
        found = opacus.run(cell, {"epsilon": 1.0}, 0)
        assert found["refused"] == "NotInstalledError: opacus cannot be installed: no space left"
        assert found["score"] == pytest.approx(judge.numbers(np.full(4, 2.5), cell)["score"])
    assert len(folder) == 1
    assert "installing opacus" in capsys.readouterr().err


def small_cell():
    rng = np.random.default_rng(0)
    return Cell("t", 0, rng.normal(size=(20, 2)), np.linspace(0.0, 5.0, 20), rng.normal(size=(4, 2)), np.arange(4.0), 0)


def test_all_methods_are_judged_by_the_same_rows():
    table = Dataset("t", "", lambda: (np.arange(100.0)[:, None], np.tile([-1.0, 1.0], 50)), True)
    first, again, other = (judge.split(table, seed) for seed in (0, 0, 1))
    assert (first.held_out == again.held_out).all()
    assert (first.held_out != other.held_out).any()
    assert set(first.X[:, 0]) | set(first.held_out[:, 0]) == set(range(100))
    assert set(first.y) == {0.0, 1.0}


def test_the_rule_takes_the_largest_tables_and_few_of_a_package():
    def table(name, rows, columns=5, classes=2):
        return Table(name, np.zeros((rows, columns)), np.zeros(rows), classes, True)

    found = [table(f"a/{rows}", rows) for rows in (300, 400, 500)] + [table("b/narrow", 590, 4), table("c/x", 250)]
    found += [table("d/number", 210, classes=0)]
    assert choice_of_tables.chosen(found) == ["a/500", "a/400", "d/number"]
    assert choice_of_tables.chosen([*found, table("a/large", 700)]) == ["a/large", "a/500", "c/x", "d/number"]


def test_answers_pass_through_a_pipe_with_their_time():
    pipe = io.BytesIO()
    exchange.send(pipe, X=np.eye(2), epsilon=0.5)
    exchange.send(pipe, error="ValueError: no")
    pipe.seek(0)
    first, second = exchange.receive(pipe), exchange.receive(pipe)
    assert first is not None
    assert second is not None
    assert (first["X"] == np.eye(2)).all()
    assert str(second["error"]) == "ValueError: no"
    assert exchange.receive(pipe) is None


# The figures of the page.


def scored(method, scores, epsilon=1.0, refused=None, rows=300):
    """Cells of one table of numbers, a seed for each score."""
    about = {"table": "t", "kind": "numbers", "method": method, "epsilon": epsilon, "rows": rows, "columns": 6}
    about |= {"refused": refused, "seconds": 0.1, "diverged": False, "log_loss": None}
    return [about | {"seed": seed, "score": score} for seed, score in enumerate(scores)]


def board():
    """Rival A is clearly better, B only by luck of one seed, C gave no answer."""
    rows = scored("discreet", [0.50, 0.52, 0.51]) + scored("discreet, told", [0.58, 0.60, 0.59])
    rows += (
        scored("A", [0.60, 0.61, 0.60]) + scored("B", [0.99, 0.50, 0.50]) + scored("C", [0.9, 0.9, 0.9], refused="no")
    )
    rows += scored("private constant", [0.0, 0.0, 0.0]) + scored("without privacy", [0.7, 0.7, 0.7], epsilon=None)
    return pd.DataFrame(rows)


def test_worse_is_said_where_a_rival_is_ahead_by_more_than_its_spread_and_only_there():
    frame = board()
    assert summary.losses_to(frame, "numbers", "A") == [
        ("t", 1.0, pytest.approx(0.51), pytest.approx(0.6033, abs=1e-3))
    ]
    assert summary.losses_to(frame, "numbers", "A", "discreet, told") == []
    assert summary.losses_to(frame, "numbers", "B") == summary.losses_to(frame, "numbers", "C") == []
    said = page.worse(pd.concat([frame, frame.assign(kind="labels")]))
    assert "**Worse than A** (numbers to predict: 1 of 1 pairs" in said
    assert "t at epsilon 1 (0.510 against 0.603)" in said
    assert "than B" not in said


def test_the_overview_says_best_worst_and_what_gave_no_answer():
    found = summary.summary(board(), "numbers")
    assert found.loc["C", "best"] == 1
    assert found.loc["C", "refused"] == 1.0
    assert found.loc["discreet", "worst"] == pytest.approx(0.19)
    assert found.loc["private constant", "below constant"] == 0.0
    assert summary.by_band(board(), "numbers", "rows", 1.0).loc["below 500", "A"] == pytest.approx(0.0967, abs=1e-3)
    assert "- C: no (3 cells)" in page.refusals(board())


def test_infinite_losses_are_counted_and_cut():
    class Results:
        def select(self):
            for seed, score in enumerate((None, -7.0, 0.5)):  # None: not finite
                yield cells[seed], {"score": score, "rows": 9, "columns": 5, "seconds": 0.1}

    from framework import Cell as FrameCell

    cells = [FrameCell("scoreboard", "diabetes", "AdaSSP", {"epsilon": 1.0}, seed) for seed in range(3)]
    frame = summary.frame_of(Results())
    assert list(frame["score"]) == [-1.0, -1.0, 0.5]
    assert list(frame["diverged"]) == [True, True, False]
