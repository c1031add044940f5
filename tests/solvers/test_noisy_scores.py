"""The warning that a constant may do better: before a run from public facts, after it from released coefficients."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget, Problem, UtilityWarning, solve
from discreet.data.public import Public
from discreet.federated import plan_federated, simulate
from discreet.problem import L2, L1Ball, Logistic, Multinomial, Squared
from discreet.solvers import SOLVERS
from discreet.solvers._shared import noisy_scores
from discreet.solvers._shared.noisy_scores import Scores, planned_scores, warn_after, warn_before

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
ROWS, COLUMNS = 4_000, 5


def warned(solver, loss, signal, seed=0):
    """Whether a fit was warned of: where nothing but chance ties the target to the columns, and where they tell it."""
    rng = np.random.default_rng(seed)
    X, noise = rng.uniform(-1.0, 1.0, (ROWS, COLUMNS)), rng.logistic(size=ROWS)
    scores = signal * X[:, 0] + noise
    y = np.where(scores > 0.0, 1.0, -1.0) if loss.classification else np.clip(scores, -8.0, 8.0)
    limits = None if loss.classification else (-8.0, 8.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UtilityWarning)
        solve(Problem(loss, L2(1e-6)), X, y, solver, 1.0, bounds=(-1.0, 1.0), y_bounds=limits, random_state=seed)
    return any("a constant may predict better" in str(one.message) for one in caught)


@pytest.mark.parametrize("solver", ["gd", "sgd", "cd", "svrg", "newton"])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_a_fit_is_warned_of_where_columns_tell_nothing_and_not_where_they_tell_much(solver, loss):
    """Scores of noise spread by a few times the noise of one mean, those of a signal of 5 by 2 and more."""
    plan = SOLVERS[solver]().plan(Problem(loss, L2(1e-6)), Public(ROWS, COLUMNS), Budget(1.0, 1 / ROWS**2))
    assert warn_before(plan) is None  # public facts alone decide nothing here
    assert warned(solver, loss, 0.0)
    assert not warned(solver, loss, 6.0)


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-8), Budget(1.0, 0.0), Budget(rho=0.1)], ids=lambda one: one.kind)
@pytest.mark.parametrize("loss", [Logistic(), Squared(), Multinomial(3)], ids=lambda loss: loss.name)
def test_a_plan_warns_the_less_the_more_rows_there_are(budget, loss):
    problem, solver = Problem(loss, L2(1e-3)), SOLVERS["gd"]()
    plans = [solver.plan(problem, Public(rows, 10), budget) for rows in (100, 1_000, 10_000, 10**7)]
    lacking = [planned_scores(plan).lacking for plan in plans]
    assert lacking == pytest.approx([lacking[0], lacking[0] / 10.0, lacking[0] / 100.0, lacking[0] / 1e5])
    assert "times as many rows" in warn_before(plans[0]) or "far more rows" in warn_before(plans[0])
    assert warn_before(plans[-1]) is None
    assert planned_scores(plans[0]).lacking > planned_scores(plans[0], 5).lacking  # fewer columns, less noise


def test_solvers_that_leave_a_bias_need_clearer_scores():
    problem, public, budget = Problem(Logistic(), L2(1e-3)), Public(2_000, 5), Budget(1.0, 1e-7)
    gd, ftrl = (planned_scores(SOLVERS[name]().plan(problem, public, budget)) for name in ("gd", "ftrl"))
    assert ftrl.lacking == pytest.approx(2.0 * gd.lacking)
    assert Scores(0.0, 0.1).lacking == np.inf


def test_noise_is_not_added_up_over_columns_where_single_ones_are_chosen():
    public, budget = Public(500, 2_000), Budget(1.0, 1e-6)
    ball = Problem(Logistic(), constraint=L1Ball(1.0))
    assert warn_before(SOLVERS["frank-wolfe"]().plan(ball, public, budget)) is None
    assert warn_before(SOLVERS["gd"]().plan(Problem(Logistic(), L2(1e-3)), public, budget)) is not None


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
def test_what_is_said_after_a_run_follows_from_what_was_released():
    """Coefficients at the ends of what can be stored give a sentence or none, and no warning of NumPy."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (ROWS, 2))
    y = np.where(rng.random(ROWS) > 0.5, 1.0, -1.0)
    found = solve(Problem(Logistic(), L2(1e-3)), X, y, "gd", 1.0, bounds=(-1.0, 1.0), random_state=0)
    for coef in ([0.0, 0.0], [5e-324, -5e-324], [1e308, -1e308], [np.inf, 0.0]):
        message = warn_after(replace(found, coef=np.array(coef)))
        assert (message is None) == (max(map(abs, coef)) > 1.0), coef


@pytest.mark.parametrize(("unit", "model"), [("client", "central"), ("record", "local")])
def test_federated_runs_are_warned_of_before_and_after(unit, model):
    rng, clients = np.random.default_rng(0), 50
    X = rng.uniform(-1.0, 1.0, (5_000, 3))
    parts = {str(k): part for k, part in enumerate(np.array_split(np.arange(5_000), clients))}

    def told(epsilon, signal):
        y = np.where(signal * X[:, 0] + rng.logistic(size=5_000) > 0.0, 1.0, -1.0)
        held = {"rows_per_client": 100} if unit == "record" else {}
        plan = plan_federated(
            Problem(Logistic(), L2(1e-4)), 3, (-1.0, 1.0), clients, epsilon=epsilon, unit=unit, model=model, **held
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UtilityWarning)
            simulate(plan, X, y, parts, seed=0)
        return plan.warnings(), [str(one.message) for one in caught if issubclass(one.category, UtilityWarning)]

    before, during = told(0.05, 4.0)
    assert len(before) == 1
    assert during == before  # once
    assert "times as many clients" in before[0] or "far more clients" in before[0]
    assert told(100.0, 4.0) == ([], [])
    before, during = told(8.0 if unit == "record" else 30.0, 0.0)
    assert before == []
    assert "the scores of this model spread by" in during[0]


def small_fit(signal, seed=0, rows=400):
    """A fit of `adaptive` to few rows, where one step of noise is as large as the scores."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, COLUMNS))
    y = np.where(signal * X[:, 0] + rng.logistic(size=rows) > 0.0, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        return solve(Problem(Logistic(), L2(1e-6)), X, y, "adaptive", 1.0, bounds=(-1.0, 1.0), random_state=seed)


def test_scores_that_were_measured_warn_by_what_was_measured(monkeypatch):
    """Seeded. Labels that a column tells, and labels that none tells; the planted fault forgets the measurement."""
    clear, hidden = small_fit(signal=8.0), small_fit(signal=0.0)
    assert warn_before(clear.plan) is None
    assert warn_after(clear) is None
    assert "a constant may predict better" in warn_after(hidden)
    monkeypatch.setattr(noisy_scores, "LEAST_MEASURED", np.inf)
    assert "a constant may predict better" in warn_after(clear)
