"""What a noisy fixed-point iteration costs, the noise that it draws, the error that it reaches, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.solvers import SOLVERS, FixedPoint
from discreet.solvers.fixed_point import Projection, clipped_rows, contraction_of, releases_of
from tests.statistics import both_arms

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

BUDGET = Budget(1.0, 1e-6)
BLOCKS = [0, 1, 1, 2, 0, 2, 2]
RULES = [{"activation": rule} for rule in ("all", "cyclic", "uniform")]
RULES += [{"activation": "independent", "probability": 0.4}]


def iteration(**changes):
    settings = {"size": 7, "steps": 20, "contribution": 2.0, "rows": 100, "scale": 0.01, "blocks": BLOCKS}
    return FixedPoint(**(settings | changes))


def nothing(u, entries, step):
    return np.zeros(entries.size)


class Recorder:
    """A query that notes how often each block was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, u, entries, step):
        self.asked += list(np.unique(np.array(BLOCKS)[entries]))
        return np.zeros(entries.size)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("row_blocks", ["all", "one"])
def test_the_cost_is_that_of_all_releases_that_concern_one_row(rule, row_blocks):
    """A row that moves every answer that it may by the whole sensitivity: squares of shift over noise are added up."""
    found, recorder = iteration(row_blocks=row_blocks, **rule), Recorder()
    plan = found.plan(BUDGET, random_state=1)
    found.run(recorder, plan, random_state=2)
    moves = np.bincount(recorder.asked, minlength=3)
    count = moves.sum() if row_blocks == "all" else moves.max()
    shifts = count * (found.sensitivity.l2 / plan.mechanism.deviation(found.sensitivity)) ** 2
    mu = accounting.mu_of(plan.event, found.relation)
    assert math.sqrt(shifts) == pytest.approx(mu, rel=1e-12)
    assert accounting.fits(plan.event, BUDGET, found.relation)
    assert not accounting.fits(accounting.gaussian_event(plan.mechanism.multiplier, count + 1), BUDGET, found.relation)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_blocks_are_active_as_often_as_the_rule_says(rule):
    """5 standard deviations of a binomial: a false alarm in 3e-6 of the runs."""
    found, recorder = iteration(steps=600, **rule), Recorder()
    found.run(recorder, found.plan(BUDGET, random_state=1), random_state=2)
    moves, chance = np.bincount(recorder.asked, minlength=3), found.active.frequency or 1.0 / 3.0
    spread = 5.0 * math.sqrt(600 * chance * (1.0 - chance))
    assert (np.abs(moves - 600 * chance) <= spread).all()
    if rule["activation"] == "cyclic":
        assert recorder.asked[:7] == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize(("budget", "law"), [(BUDGET, "normal"), (Budget.pure(1.0), "laplace")], ids=str)
@pytest.mark.parametrize("relation", ["replace", "zero_out"])
def test_the_noise_on_the_operator_has_the_planned_law(budget, law, relation):
    found = iteration(
        size=3_000, steps=1, blocks=None, relation=relation, public_part=np.zeros_like, scale=0.5, step_size=0.25
    )
    plan = found.plan(budget)
    noise = found.run(nothing, plan, random_state=3).last / 0.25
    scale = 0.5 * plan.mechanism.scale(found.sensitivity)
    both_arms(noise, stats.norm(scale=scale) if law == "normal" else stats.laplace(scale=scale))
    factor = 2.0 if relation == "replace" else 1.0
    expected = factor * 2.0 * (1.0 if law == "normal" else math.sqrt(3_000))
    assert plan.mechanism.scale(found.sensitivity) == pytest.approx(plan.mechanism.multiplier * expected)


rows_of_terms = st.lists(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3), min_size=1, max_size=4
)


@given(rows=rows_of_terms, step=st.sampled_from([0.0, 2.0**-20]), clip=st.sampled_from([1e-3, 1.0, 1e5]))
def test_no_row_adds_more_than_its_clipped_term(rows, step, clip):
    """Hostile rows included: the sum of any rows moves by at most `clip` and the rounding when one is left out."""
    terms = np.array(rows)

    def total(part):
        return clipped_rows(lambda u, entries: part[:, entries], clip)(np.zeros(3), np.arange(3), step)

    moved = np.linalg.norm(total(terms) - total(terms[1:]))
    slack = 1e-12 * clip * len(rows) + step * math.sqrt(3)
    assert moved <= clip + slack
    if np.isfinite(terms[0]).all() and np.abs(terms[0]).max() > 1.1 * clip:
        assert moved > 0.9 * clip - slack  # and the bound is reached
    if step > 0.0:
        assert (total(terms) / step == np.rint(total(terms) / step)).all()


def mean_iteration(rule, rows=50, size=4, steps=40, step_size=1.0):
    """R(u) = u + 0.3 (mean - u), which contracts with factor 0.7; no row is long enough to be clipped."""
    x = np.random.default_rng(5).uniform(-1.0, 1.0, (rows, size))
    found = FixedPoint(
        size=size, steps=steps, contribution=12.0, rows=rows, scale=0.3 / rows, blocks=range(size), **rule,
        step_size=step_size,
    )  # fmt: skip
    query = clipped_rows(lambda u, entries: (x - u)[:, entries], 12.0)
    return found, query, x.mean(axis=0)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule["activation"] != "cyclic"], ids=str)
@pytest.mark.parametrize("step_size", [1.0, 0.4])
def test_the_error_of_runs_is_the_one_that_the_plan_foretells(rule, step_size):
    """This operator reaches the bound. 5 standard errors of a mean: a false alarm in 6e-7 of the cases."""
    found, query, best = mean_iteration(rule, step_size=step_size)
    errors, bounds = [], []
    for seed in range(150):
        plan = found.plan(Budget.gdp(50.0), random_state=seed)
        u = found.run(query, plan, random_state=seed).last
        errors.append(((u - best) ** 2).sum())
        bounds.append(contraction_of(plan, 0.7).after(found.steps, (best**2).sum()))
    gap, spread = np.mean(errors) - np.mean(bounds), np.std(errors) / math.sqrt(len(errors))
    assert abs(gap) < 5.0 * spread
    assert np.mean(errors) - 0.4 * np.mean(bounds) > 5.0 * spread  # a bound with a planted smaller constant


def test_blocks_in_turn_and_several_step_sizes_have_no_bound():
    with pytest.raises(ValueError, match="blocks in turn"):
        contraction_of(iteration(activation="cyclic").plan(BUDGET), 0.5)
    with pytest.raises(ValueError, match="one step size"):
        contraction_of(iteration(step_size=np.linspace(0.1, 1.0, 20)).plan(BUDGET), 0.5)


def test_step_sizes_and_the_map_after_a_step_are_applied():
    ball = Projection(lambda u: u / max(1.0, np.linalg.norm(u)))
    sizes = [1.0, 0.5, 0.25]
    found = FixedPoint(
        size=2, steps=3, contribution=10.0, rows=1, scale=1.0, step_size=sizes, after=lambda u, entries: ball(u)
    )
    plan = found.plan(Budget(np.inf, 0.5))
    result = found.run(lambda u, entries, step: np.array([0.8, 0.4]), plan, keep=True)
    u = np.zeros(2)
    for size, kept in zip(sizes, result.iterates[1:], strict=True):
        u = ball(u + size * np.array([0.8, 0.4]))
        np.testing.assert_allclose(kept, u)
    assert np.array_equal(result.last, result.iterates[-1])
    assert not result.guarantee.is_private


def test_blocks_that_are_not_active_stay():
    found = iteration(activation="cyclic", steps=3, after=lambda u, entries: u[entries] + 1.0)
    result = found.run(nothing, found.plan(BUDGET), random_state=0, keep=True)
    for step in range(3):
        still = np.array(BLOCKS) != step
        assert np.array_equal(result.iterates[step + 1][still], result.iterates[step][still])
        assert (result.iterates[step + 1][~still] != result.iterates[step][~still]).all()


def test_a_seed_repeats_a_run_is_named_as_a_leak_and_differs_between_plans():
    found = iteration()
    low, high = found.plan(BUDGET), found.plan(Budget(2.0, 1e-6))
    first, again, other = (found.run(nothing, plan, random_state=4).last for plan in (low, low, high))
    assert np.array_equal(first, again)
    ratio = first / other  # the same draws would be proportional to the noise
    assert np.ptp(ratio) > 0.1
    assert found.run(nothing, low, random_state=4).guarantee.leaks
    assert not found.run(nothing, low).guarantee.leaks
    assert not np.array_equal(found.run(nothing, low).last, found.run(nothing, low).last)


def test_the_plan_says_what_is_released_and_what_is_promised():
    found = iteration(activation="uniform")
    plan = found.plan(BUDGET)
    assert plan.guarantee.epsilon == 1.0
    assert plan.guarantee.relation == "replace"
    (release,) = releases_of(plan)
    assert (release.times, release.kind) == (20, "Gaussian")
    assert release.deviation == pytest.approx(plan.mechanism.deviation(found.sensitivity))
    assert release.share == pytest.approx(1.0, rel=1e-3)


def test_it_is_no_entry_of_the_table_of_solvers():
    assert FixedPoint not in SOLVERS.values()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps"),
        ({"rows": 1.5}, "rows"),
        ({"contribution": 0.0}, "contribution"),
        ({"contribution": math.inf}, "contribution"),
        ({"contribution": None}, "contribution"),
        ({"relation": "other"}, "relation"),
        ({"blocks": [0, 1, 1]}, "blocks"),
        ({"blocks": [0, 2, 2, 0, 0, 0, 0]}, "blocks"),
        ({"blocks": [-1, 0, 0, 0, 0, 0, 0]}, "blocks"),
        ({"blocks": [0.5] * 7}, "blocks"),
        ({"scale": [1.0, 2.0]}, "scale"),
        ({"scale": math.nan}, "scale"),
        ({"step_size": 1.1}, "step_size"),
        ({"step_size": [0.5] * 3}, "step_size"),
        ({"step_size": math.nan}, "step_size"),
        ({"activation": "some"}, "activation"),
        ({"activation": "independent"}, "probability"),
        ({"probability": 0.5}, "probability"),
        ({"activation": "independent", "probability": 0.0}, "probability"),
        ({"row_blocks": "two"}, "row_blocks"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        iteration(**wrong)


def test_wrong_runs_are_refused():
    found = iteration()
    plan = found.plan(BUDGET)
    with pytest.raises(ValueError, match="plan again"):
        iteration().run(nothing, plan)
    with pytest.raises(ValueError, match="start"):
        found.run(nothing, plan, start=np.zeros(3))
    with pytest.raises(ValueError, match="start"):
        found.run(nothing, plan, start=np.full(7, np.nan))
    with pytest.raises(ValueError, match="7 numbers"):
        found.run(lambda u, entries, step: np.zeros(3), plan)
    with pytest.raises(ValueError, match="not finite"):
        found.run(lambda u, entries, step: np.full(7, np.nan), plan)
    with pytest.raises(ValueError, match="one row of 7 numbers"):
        found.run(clipped_rows(lambda u, entries: np.zeros(7), 1.0), plan)
    with pytest.raises(ValueError, match="clip must be a number"):
        clipped_rows(lambda u, entries: np.zeros((1, 7)), None)


def test_terms_may_not_be_clipped_to_more_than_is_declared():
    found = iteration()

    def terms(u, entries):
        return np.ones((100, 7))

    plan = found.plan(BUDGET)
    with pytest.raises(ValueError, match=r"clips the terms to 2\.5, but the iteration declares a contribution of 2"):
        found.run(clipped_rows(terms, 2.5), plan)
    assert found.run(clipped_rows(terms, 2.0), plan).last.shape == (7,)


@pytest.mark.parametrize("name", ["public_part", "after"])
def test_public_maps_of_a_wrong_shape_are_refused(name):
    for wrong in (lambda *args: 0.0, lambda *args: np.zeros(9)):
        found = iteration(**{name: wrong})
        with pytest.raises(ValueError, match=f"{name} must return 7 numbers"):
            found.run(nothing, found.plan(BUDGET))


def test_a_public_part_may_work_in_place():
    def shifted(u):
        u += 1.0
        return u

    found = iteration(public_part=shifted, scale=0.0)
    result = found.run(nothing, found.plan(BUDGET), keep=True)
    np.testing.assert_array_equal(result.iterates, np.outer(np.arange(21.0), np.ones(7)))


def test_two_starts_under_one_seed_have_independent_noise():
    """With equal draws the difference of two runs would be free of noise."""
    found = iteration()
    plan = found.plan(BUDGET)
    first, second = (found.run(nothing, plan, start=np.full(7, at), random_state=4).last for at in (0.0, 1.0))
    assert np.ptp(second - first) > 0.1


def test_a_query_cannot_change_the_iterate_or_choose_what_moves():
    found = iteration(activation="cyclic")

    def meddling(u, entries, step):
        u[:] = 1e9
        entries[:] = 0
        return np.zeros(entries.size)

    plan = found.plan(BUDGET)
    own = list(found.iterates(meddling, plan, seeded_generator(0), np.zeros(7)))
    honest = list(found.iterates(nothing, plan, seeded_generator(0), np.zeros(7)))
    np.testing.assert_array_equal(own, honest)
