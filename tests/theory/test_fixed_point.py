"""The bounds on noisy contractions hold in simulations and cannot be smaller; what is not proved is marked."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.theory.bound import Bound
from discreet.theory.fixed_point import NoisyContraction, printed_rate

RUNS, ENTRIES = 4_000, 6
STANDARD_ERRORS = 5.0  # of a mean over the runs: a false alarm in a test has probability below 1e-6


def simulated(run, steps, start, deviation, error=0.0, seed=0):
    """Mean of |u - u*|^2 over many runs with R(u) = tau u, u* = 0, and its standard error.

    Errors point away from the fixed point, which is the worst they can do.
    """
    rng = np.random.default_rng(seed)
    u = np.full((RUNS, ENTRIES), math.sqrt(start / ENTRIES))
    for _ in range(steps):
        away = error * u / np.linalg.norm(u, axis=1, keepdims=True)
        moved = run.contraction * u + away + rng.normal(0.0, deviation, u.shape)
        active = rng.uniform(size=u.shape) < run.frequency
        u = np.where(active, u + run.step_size * (moved - u), u)
    squares = (u**2).sum(axis=1)
    return squares.mean(), squares.std() / math.sqrt(RUNS)


CASES = [(0.5, 1.0, 1.0), (0.9, 0.5, 1.0), (0.8, 1.0, 0.3), (0.6, 0.4, 0.5)]


@pytest.mark.parametrize(("tau", "size", "frequency"), CASES)
def test_the_bound_without_errors_is_what_the_worst_operator_does(tau, size, frequency):
    """R(u) = tau u reaches the bound, so that it holds and no smaller constant does."""
    deviation, steps, start = 0.3, 25, 2.0
    run = NoisyContraction(tau, ENTRIES * deviation**2, size, frequency)
    mean, spread = simulated(run, steps, start, deviation)
    assert abs(mean - run.after(steps, start)) < STANDARD_ERRORS * spread
    for planted in [
        replace(run, noise=0.8 * run.noise),
        replace(run, contraction=run.contraction - 0.15),
    ]:
        assert mean > planted.after(steps, start) + STANDARD_ERRORS * spread


@pytest.mark.parametrize(("tau", "size", "frequency"), CASES)
def test_the_bound_with_errors_holds_and_one_for_smaller_errors_does_not(tau, size, frequency):
    deviation, steps, start, error = 0.1, 60, 2.0, 0.4
    run = NoisyContraction(tau, ENTRIES * deviation**2, size, frequency, error)
    mean, spread = simulated(run, steps, start, deviation, error)
    assert mean < run.after(steps, start)
    for planted in (0.0, 0.7 * error):
        assert mean > replace(run, error=planted).after(steps, start) + STANDARD_ERRORS * spread


@given(
    tau=st.floats(0.0, 0.99),
    size=st.floats(0.01, 1.0),
    frequency=st.floats(0.01, 1.0),
    noise=st.floats(0.0, 10.0),
    error=st.floats(0.0, 3.0),
    start=st.floats(0.0, 100.0),
    steps=st.integers(0, 50),
)
def test_the_closed_form_is_the_recursion(tau, size, frequency, noise, error, start, steps):
    run, bound, c = NoisyContraction(tau, noise, size, frequency, error), start, 1.0 - size * (1.0 - tau)
    for _ in range(steps):
        kept, extra = (c, size**2 * error**2 / (1.0 - c)) if error > 0.0 else (c**2, 0.0)
        bound = (1.0 - frequency) * bound + frequency * (kept * bound + extra + size**2 * noise)
    assert run.after(steps, start) == pytest.approx(bound, rel=1e-9, abs=1e-12)


@given(
    tau=st.floats(0.0, 0.95),
    noise=st.floats(0.0, 1.0),
    frequency=st.floats(0.1, 1.0),
    error=st.sampled_from([0.0, 0.3]),
    ratio=st.floats(1.01, 10.0),
)
def test_the_number_of_steps_is_the_least_that_reaches_the_target(tau, noise, frequency, error, ratio):
    run = NoisyContraction(tau, noise, 1.0, frequency, error)
    start, target = 5.0 + 100.0 * run.limit, ratio * max(run.limit, 1e-3)
    steps = run.steps_to(target, start)
    assert run.after(steps, start) <= target
    assert steps == 0 or run.after(steps - 1, start) > target


def test_a_target_below_the_limit_is_refused_with_the_limit():
    run = NoisyContraction(0.5, 0.03)
    with pytest.raises(ValueError, match=r"below 0\.04.*smaller step size"):
        run.steps_to(0.03, 4.0)
    assert replace(run, step_size=0.2).steps_to(0.03, 4.0) > 0


@pytest.mark.parametrize(("steps", "noise", "error"), [(5, 0.1, 0.0), (50, 0.1, 0.0), (500, 2.0, 0.0), (50, 0.1, 0.2)])
def test_no_other_step_size_has_a_smaller_bound(steps, noise, error):
    run = NoisyContraction(0.7, noise, error=error)
    best = run.with_best_step_size(steps, 3.0)
    others = [replace(run, step_size=size).after(steps, 3.0) for size in np.geomspace(1e-4, 1.0, 2_000)]
    assert best.after(steps, 3.0) <= min(others) * (1.0 + 1e-12)
    assert best.after(steps, 3.0) < run.after(steps, 3.0) or best.step_size == 1.0


def test_without_noise_the_whole_step_is_best():
    assert NoisyContraction(0.7, 0.0).with_best_step_size(20, 3.0).step_size == 1.0


@given(
    tau=st.floats(0.0, 0.99),
    frequency=st.floats(0.05, 1.0),
    noise=st.floats(1e-6, 10.0),
    error=st.floats(0.0, 3.0),
    steps=st.integers(0, 200),
)
def test_the_printed_rate_is_marked_as_an_order_and_never_smaller(tau, frequency, noise, error, steps):
    printed = printed_rate(steps, 4.0, tau, noise, frequency, error)
    assert isinstance(printed, Bound)
    assert not printed.proved
    assert "units" in printed.source
    assert NoisyContraction(tau, noise, 1.0, frequency, error).after(steps, 4.0) <= printed.value


def test_the_printed_rate_mixes_units_and_the_bound_does_not():
    """In millimetres instead of metres every squared distance is a million times as large."""
    metres, millimetres = NoisyContraction(0.5, 0.02, error=0.1), NoisyContraction(0.5, 0.02e6, error=0.1e3)
    assert millimetres.after(7, 3.0e6) == pytest.approx(1e6 * metres.after(7, 3.0))
    printed = printed_rate(7, 3.0, 0.5, 0.02, 1.0, 0.1).value
    assert printed_rate(7, 3.0e6, 0.5, 0.02e6, 1.0, 0.1e3).value < 0.9e6 * printed


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"contraction": 1.0}, "below 1"),
        ({"contraction": -0.1}, "contraction"),
        ({"contraction": math.nan}, "contraction"),
        ({"noise": -1.0}, "noise"),
        ({"noise": math.inf}, "noise"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": 1.5}, "step_size"),
        ({"frequency": 0.0}, "frequency"),
        ({"frequency": 2}, "frequency"),
        ({"error": -0.5}, "error"),
    ],
)
def test_assumptions_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        NoisyContraction(**({"contraction": 0.5, "noise": 1.0} | wrong))


@pytest.mark.parametrize(("steps", "start"), [(-1, 1.0), (2.5, 1.0), (3, -1.0), (3, math.inf)])
def test_steps_and_start_are_checked(steps, start):
    with pytest.raises(ValueError, match=r"steps|start"):
        NoisyContraction(0.5, 1.0).after(steps, start)


def exact_after(run, steps, start):
    """The closed form in 60 digits, with the constants of the theorem written out."""
    with localcontext() as context:
        context.prec = 60
        tau, size, q = Decimal(run.contraction), Decimal(run.step_size), Decimal(run.frequency)
        noise, error = Decimal(run.noise), Decimal(run.error)
        away = size * (1 - tau)
        lost = away if error else away * (2 - away)
        limit = size**2 * (error**2 / away + noise) / lost
        left = (1 - q * lost) ** steps if steps else 1  # 0^0 is no number for Decimal
        return float(limit + left * (Decimal(start) - limit))


@pytest.mark.parametrize("steps", [0, 1, 3, 1_000])
@pytest.mark.parametrize(
    "run",
    [
        NoisyContraction(1.0 - 1e-15, 1e10),
        NoisyContraction(1.0 - 2.0**-53, 1.0, step_size=0.1),
        NoisyContraction(0.5, 1.0, frequency=1e-20),
        NoisyContraction(0.9, 1e-3, frequency=1e-12, error=1e5),
        NoisyContraction(0.0, 0.03),
        NoisyContraction(0.0, 0.03, step_size=1e-9, error=1e-9),
    ],
    ids=str,
)
def test_the_bound_is_accurate_where_the_limit_is_far_away(run, steps):
    """The limit may be 1e25 times what the first steps add: their difference would lose every digit."""
    assert run.after(steps, 1.0) == pytest.approx(exact_after(run, steps, 1.0), rel=1e-12)


def test_extreme_assumptions_give_numbers_or_infinity():
    assert NoisyContraction(0.5, 1.0, error=1e200).limit == math.inf
    assert NoisyContraction(0.5, 1.0, error=1e200).after(3, 1.0) == math.inf
    assert NoisyContraction(0.5, 0.03).after(10**400, 4.0) == pytest.approx(0.04)
    assert NoisyContraction(0.5, 0.03, step_size=1e-200, frequency=1e-300).limit == pytest.approx(3e-202)
    assert NoisyContraction(0.5, 0.0).after(5, 1e308) == pytest.approx(1e308 / 4**5)
    assert NoisyContraction(0.0, 0.0).after(5, 1e308) == 0.0
    assert printed_rate(3, 1.0, 0.5, 1.0, 1e-150, 0.0).value == math.inf
    assert printed_rate(3, 1.0, 0.5, 1.0, 0.5, 1e200).value == math.inf


def test_the_number_of_steps_is_found_where_a_step_hardly_moves():
    """The factor rounds to 1: about log(2) / (2e-17) steps halve the distance."""
    run = NoisyContraction(1.0 - 2.0**-53, 0.0, step_size=0.1)
    assert run.steps_to(0.5, 1.0) == pytest.approx(math.log(2.0) / (0.2 * 2.0**-53), rel=1e-12)
    assert NoisyContraction(0.5, 0.0).steps_to(5e-324, 4.0) == 538
    assert NoisyContraction(0.5, 0.03, frequency=1e-300).steps_to(1.0, 4.0) > 1e300


def test_nothing_to_gain_leaves_the_step_size():
    """Without noise and at the fixed point every step size has the bound 0."""
    assert NoisyContraction(0.5, 0.0, step_size=0.3).with_best_step_size(10, 0.0).step_size == 0.3
