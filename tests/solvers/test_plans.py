"""A plan tells the truth: its table of releases is its cost, its noise is what is drawn, its warnings come in time."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.data.public import Public
from discreet.data.validation import array_rows
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS
from discreet.solvers._shared.descents import averaged_noise
from discreet.solvers.coordinate_descent import DualCoordinateDescent
from discreet.solvers.greedy_coordinate_descent import GreedyCoordinateDescent
from discreet.solvers.newton.planning import CALIBRATION, LABELS
from discreet.solvers.stochastic_gradient import StochasticGradientDescent
from tests.catalogue import RELATIONS, SIZES, problem_for, suits

BUDGETS = [Budget(1.0, 1e-6), Budget.pure(1.0), Budget.zcdp(0.05), Budget.gdp(0.4)]
OTHER_FORMS = [
    StochasticGradientDescent(sampler="single", passes=0.05),
    DualCoordinateDescent(batches="shuffled"),
    GreedyCoordinateDescent(selection="laplace"),
]
FORMS = [kind() for kind in SOLVERS.values()] + OTHER_FORMS
CASES = [
    (solver, budget) for solver in FORMS for budget in BUDGETS if suits(solver.name, problem_for(solver.name), budget)
]


def plan_of(solver, budget, relation="replace", rows=2_000, columns=4):
    rows, columns = SIZES.get(solver.name, (rows, columns))
    return solver.plan(problem_for(solver.name), Public(rows, columns, Relation(relation)), budget)


def totals(pairs):
    """How often each elementary event happens."""
    counts = Counter()
    for leaf, times in pairs:
        counts[repr(leaf)] += times
    return counts


def rebuilt(shown, relation):
    """The event that the numbers of one line of the table describe; None for the random linear term of an objective."""
    times, noise = shown["times"], shown["noise_over_sensitivity"]
    if shown["kind"] == "Gaussian":
        return accounting.gaussian_event(noise, times)
    if shown["kind"] == "Laplace":
        return accounting.laplace_event(noise, times)
    if shown["kind"] == "sampled Gaussian":
        return accounting.poisson_event(shown["sample_rate"], noise * relation.factor, times)
    if shown["kind"] == "objective":
        return None
    make = accounting.selection_event if shown["kind"] == "selection" else accounting.pure_event
    return make(shown["epsilon"], times)


@pytest.mark.parametrize(("solver", "budget"), CASES, ids=lambda part: getattr(part, "name", str(part)))
def test_the_table_of_releases_is_the_cost_of_the_plan(solver, budget):
    plan = plan_of(solver, budget)
    shown = totals((release.event, release.times) for release in plan.releases)
    assert shown == totals(accounting.flatten(plan.event))
    assert math.fsum(release.share for release in plan.releases) == pytest.approx(1.0, rel=1e-3)
    assert all(0.0 < release.share <= 1.0 for release in plan.releases)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("solver", "budget"), CASES, ids=lambda part: getattr(part, "name", str(part)))
def test_the_numbers_that_are_shown_describe_the_releases(solver, budget, relation):
    if relation == "add_remove" and solver in OTHER_FORMS[:2]:
        pytest.skip("needs a public number of rows")
    plan = plan_of(solver, budget, relation)
    for release in plan.releases:
        event = rebuilt(release.to_dict(), plan.public.relation)
        if event is None or type(release.event).__name__ == "SampledWithoutReplacementDpEvent":
            continue
        [(leaf, times)] = accounting.flatten(event)
        assert times == release.times
        facts, wanted = accounting.event_to_dict(leaf), accounting.event_to_dict(release.event)
        assert json.dumps(_rounded(facts)) == json.dumps(_rounded(wanted))


def _rounded(fields):
    """Numbers to nine digits: a quotient and its product may differ in the last."""
    return json.loads(json.dumps(fields), parse_float=lambda digits: float(f"{float(digits):.9g}"))


def test_a_release_that_is_forgotten_or_quieter_is_seen():
    """The comparison above can fail."""
    plan = plan_of(SOLVERS["newton"](), BUDGETS[0])
    truth = totals(accounting.flatten(plan.event))
    assert totals((r.event, r.times) for r in plan.releases[1:]) != truth
    louder = replace(plan, mechanism=replace(plan.mechanism, multiplier=2.0 * plan.mechanism.multiplier))
    assert totals((r.event, r.times) for r in louder.releases) != truth


def test_gaussian_shares_are_shares_of_mu_squared():
    plan = plan_of(SOLVERS["newton"](), BUDGETS[0], rows=50_000)
    by_name = Counter()
    for release in plan.releases:
        by_name[release.what.split(":")[0]] += release.share
    assert by_name["scales"] == pytest.approx(0.1, rel=1e-6)
    left = 1.0 - plan.mechanism.shares[LABELS] - plan.mechanism.shares[CALIBRATION]
    wanted = 0.9 * plan.settings.moment_share * left
    assert by_name["second-moment matrix of the rows"] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("relation", RELATIONS)
def test_sampled_noise_is_told_over_the_sensitivity(relation):
    """Batches: the standard deviation is multiplier * C, and a replaced row moves their sum by 2 C."""
    plan = plan_of(SOLVERS["sgd"](), BUDGETS[0], relation)
    [release] = [r for r in plan.releases if r.kind == "sampled Gaussian"]
    factor = plan.public.relation.factor
    assert release.noise_over_sensitivity == pytest.approx(plan.mechanism.multiplier / factor)
    assert release.deviation == pytest.approx(plan.mechanism.multiplier / plan.settings.batch)


@pytest.mark.parametrize("name", ["gd", "cd"])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget.pure(1.0)], ids=str)
def test_the_deviation_that_is_told_is_the_one_that_is_drawn(name, budget):
    """On rows of zeros all gradients but the intercept's are noise. 5 standard errors: 6e-7."""
    solver = SOLVERS[name](**{"gd": {"steps": 1}, "cd": {"passes": 1}}[name], clip=3.0, average=False, scale_share=0.0)
    columns, rows = 400, 50
    public = Public(rows, columns, low=np.full(columns, -1.0), high=np.ones(columns))
    problem = Problem(Logistic(), fit_intercept=False)
    plan = solver.plan(problem, public, budget)
    data = array_rows(np.zeros((rows, columns)), np.array([1.0, -1.0] * (rows // 2)))
    w = solver.solve(problem, data, plan, seeded_generator(0)).w
    clip = 3.0 if name == "gd" else 3.0 / math.sqrt(columns)
    length = solver.step / (0.25 * (columns if name == "gd" else 1.0))
    told = plan.releases[0].deviation * clip * length
    spread = 5.0 * math.sqrt((5.0 if budget.kind == "pure" else 2.0) / (4.0 * columns))
    assert np.std(w) == pytest.approx(told, rel=spread)
    assert np.std(w) != pytest.approx(1.7 * told, rel=spread)


def test_the_noise_of_an_average_follows_from_the_recursion():
    rng = np.random.default_rng(0)
    steps, averaged, memory = 12, 5, 0.7
    noise, x, kept = rng.standard_normal((200_000, steps)), 0.0, []
    for t in range(steps):
        x = memory * x + (1.0 - memory) * noise[:, t]
        kept.append(x)
    assert np.mean(kept[-averaged:], axis=0).std() == pytest.approx(averaged_noise(steps, averaged, memory), rel=0.01)
    assert averaged_noise(10, 10, 0.0) == pytest.approx(math.sqrt(0.1))
    assert averaged_noise(10, 1, 0.0) == 1.0


PREDICTED = [("newton", Logistic()), ("newton", Squared()), ("gd", Logistic()), ("gd", Squared()), ("cd", Logistic())]
PREDICTED += [("cd", Squared()), ("sufficient-statistics", Squared()), ("output-perturbation", Logistic())]


@pytest.mark.parametrize(("name", "loss"), PREDICTED, ids=lambda part: getattr(part, "name", part))
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_predicted_standard_error_is_met_within_a_factor_of_two(name, loss, epsilon):
    """Uncorrelated columns and weak signals, which is what the prediction assumes."""
    rows, columns, runs = 16_000, 5, 24  # the spread is then known to 7 %
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, columns))
    signal = X @ np.linspace(0.3, -0.3, columns)
    y = (
        np.where(signal + rng.logistic(size=rows) > 0, 1.0, -1.0)
        if loss.classification
        else signal + rng.normal(size=rows)
    )
    solver, problem, data = SOLVERS[name](), Problem(loss, L2(1e-6)), array_rows(X, y)
    plan = solver.plan(problem, Public(rows, columns), Budget(epsilon, 1e-6))
    found = np.array([solver.solve(problem, data, plan, seeded_generator(seed)).w for seed in range(runs)])
    spread = math.sqrt(found.var(axis=0, ddof=1).mean()) / (1.0 if loss.classification else y.std())
    assert 0.5 < spread / plan.standard_error < 2.0


def test_what_cannot_be_predicted_is_not():
    plan = plan_of(SOLVERS["sgd"](), BUDGETS[0])
    assert plan.standard_error is None
    assert "not predicted" in str(plan)
    several = SOLVERS["gd"]().plan(Problem(Multinomial(3), L2(0.01)), Public(2_000, 4), BUDGETS[0])
    assert several.standard_error is None
    clipped = SOLVERS["gd"](clip=1.0).plan(Problem(Squared(), L2(0.01)), Public(2_000, 4), BUDGETS[0])
    assert clipped.standard_error is None  # the unit of the threshold is not that of the target


def small_and_large(loss):
    solver, problem = SOLVERS["newton"](), Problem(loss, L2(1e-3))
    small = solver.plan(problem, Public(300, 100), Budget(1.0, 1 / 300**2))
    large = solver.plan(problem, Public(45_312, 8), Budget(1.0, 1 / 45_312**2))
    return small, large


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_a_plan_warns_where_a_constant_may_do_better(loss):
    small, large = small_and_large(loss)
    assert any("a constant may predict better" in warning for warning in small.warnings())
    assert "a constant may predict better" in " ".join(str(small).split())
    assert large.warnings() == []
    assert "warning" not in str(large)


def test_fit_says_so_before_anything_is_spent():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    problem, told = Problem(Logistic(), L2(1e-3)), []
    with pytest.warns(discreet.UtilityWarning, match="predicts the same for every row"):
        discreet.solve(problem, X, y, "newton", 0.1, bounds=(-4.0, 4.0), callback=lambda *_: told.append(len(told)))
    assert told  # it ran all the same
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", discreet.NotPrivateWarning)  # of an epsilon of 100
        discreet.solve(problem, X, y, "newton", 100.0, bounds=(-4.0, 4.0))


def test_a_constant_does_better_where_the_plan_warns_and_worse_where_it_does_not():
    """Log-losses of the models on a strong signal: the warning is true, and so is its absence."""
    from sklearn.metrics import log_loss

    def excess(rows, columns, epsilon):
        rng = np.random.default_rng(3)
        X = rng.standard_normal((rows, columns))
        y = np.where(X[:, 0] * 2.0 + rng.logistic(size=rows) > 0, 1.0, -1.0)
        problem, solver = Problem(Logistic(), L2(1e-3)), SOLVERS["newton"]()
        plan = solver.plan(problem, Public(rows, columns), Budget(epsilon, 1 / rows**2))
        models = [solver.solve(problem, array_rows(X, y), plan, seeded_generator(seed)) for seed in range(10)]
        losses = [log_loss(y, 1.0 / (1.0 + np.exp(-(X @ m.w + m.intercept)))) for m in models]
        return bool(plan.warnings()), float(np.median(losses)) - math.log(2.0)

    warned, worse = excess(200, 30, 0.1)
    assert warned
    assert worse > 0.0
    warned, worse = excess(20_000, 8, 1.0)
    assert not warned
    assert worse < 0.0


def test_the_text_of_a_plan_is_aligned_and_complete():
    plan = small_and_large(Logistic())[1]
    text = str(plan)
    lines = text.splitlines()
    top = next(k for k, line in enumerate(lines) if line.startswith("what is spent on what"))
    table = lines[top : lines.index("", top)]
    assert {line.index(line.split("  ")[0]) for line in table} == {0}
    ends = [len(line.split("%")[0]) for line in table[1:]]
    assert len(set(ends)) == 1  # the shares stand below each other
    for part in ("mean gradients of all rows", "Hessian", "rows per count", "standard error", "mu^2", "block by block"):
        assert part in text
    assert max(map(len, lines)) <= 130


def test_json_carries_the_same_facts():
    small, large = small_and_large(Logistic())
    for plan in (small, large):
        said = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
        assert said["standard_error"] == plan.standard_error
        assert said["warnings"] == plan.warnings()
        assert [r["times"] for r in said["releases"]] == [r.times for r in plan.releases]
        assert sum(r["share"] for r in said["releases"]) == pytest.approx(1.0, rel=1e-3)


def test_without_noise_there_is_nothing_to_spend():
    plan = plan_of(SOLVERS["gd"](), Budget(math.inf, 1e-6))
    assert plan.releases == []
    assert plan.warnings() == []
    assert "what is spent on what" not in str(plan)
