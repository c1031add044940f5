"""DP-GD and DP-SGD: what noisy gradient steps over all rows, or over Poisson samples of them, achieve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from discreet._common.checks import at_least_zero, number_in, whole
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation, clipped_sum, relation_from
from discreet.theory.bound import Bound, epsilon_and_delta, log_of_delta
from discreet.theory.steps import NoisyGradientSteps

_PAGE = "docs/guarantees/utility.md, theorem"
THEOREMS = {  # where each bound is proved, and for what
    "Lipschitz": (
        f"Thakurta's chapter, (6.46); {_PAGE} G2",
        "convex losses whose gradients have norm at most lipschitz",
    ),
    "smooth": (f"{_PAGE} G3", "convex, smooth mean loss; no penalty and no constraint"),
    "proximal": (f"{_PAGE} G4", "convex, smooth mean loss; exact proximal map of the penalty"),
    "strongly convex": (
        f"{_PAGE} G1",
        "strongly convex objective without a constraint, whose gradients are not clipped: a loss of each row with "
        "gradients of norm at most lipschitz, and a ridge that is the same for all rows",
    ),
}
SHORTEST, LONGEST, TRIED = 1e-6, 1.99, 60  # step lengths that are tried, in units of 1 / smoothness
MOST_STEPS = 2**24  # that are tried where the number is left open
NEARLY = 1.01  # more steps are not worth less than this


def gd_bound(
    rows: int,
    columns: int,
    budget: Budget,
    *,
    lipschitz: float,
    radius: float,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    steps: int | None = None,
    step: float | None = None,
    relation: Relation | str = "replace",
) -> Bound:
    """Return what full-batch gradient descent with Gaussian noise achieves on the mean loss.

    The mean of the iterates at which gradients were taken, with exactly calibrated noise. Steps are projected onto a
    set that contains the optimum, or go anywhere.

    Parameters
    ----------
    rows, columns : int
        Shape of the table; one weight per column.
    budget : Budget
        For all steps; not pure, since the noise is Gaussian.
    lipschitz : float
        Largest norm of the gradient of a row's loss.
    radius : float
        Largest distance of the start from the optimum.
    smoothness : float, optional
        Largest curvature of the mean loss; without it only the Lipschitz constant is used. The bound then is for steps
        that are not projected.
    strong_convexity : float, default=0
        Of the mean loss with its ridge; needs `smoothness`.
    steps, step : int and float, optional
        By default those with the least bound; fewer steps if the bound is within 1 % of it.
    relation : Relation or str

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.theory import gd_bound
    >>> bound = gd_bound(10_000, 10, Budget(1.0, 1e-6), lipschitz=1.0, radius=1.0)
    >>> round(bound.value, 5), bound.proved
    (0.00269, True)
    """
    rows, columns = whole("rows", rows, least=1), whole("columns", columns, least=1)
    lipschitz, radius = at_least_zero("lipschitz", lipschitz), at_least_zero("radius", radius)
    sensitivity = clipped_sum(relation_from(relation)).l2 * lipschitz / rows
    run = _one_step(1.0 if step is None else step, radius, lipschitz, smoothness, strong_convexity)

    counts = [1 << k for k in range(MOST_STEPS.bit_length())] if steps is None else [whole("steps", steps, least=1)]

    def noise(count: int) -> float:
        return columns * (math.sqrt(count) / budget.gaussian_mu() * sensitivity) ** 2

    return best_run(run, step, counts, noise)


def _one_step(
    step: float, radius: float, lipschitz: float, smoothness: float | None, strong_convexity: float
) -> NoisyGradientSteps:
    """A step without noise, from which runs of more steps are made."""
    if strong_convexity > 0.0 and smoothness is None:
        raise ValueError("strong_convexity needs smoothness: gradient steps converge at their ratio.")
    curvature = math.inf if smoothness is None else number_in("smoothness", smoothness, 0.0, above=True)
    return NoisyGradientSteps(step, 1, 0, 0.0, radius, math.inf, lipschitz, curvature, strong_convexity)


def best_run(
    run: NoisyGradientSteps, step: float | None, counts: Iterable[int], noise: Callable[[int], float]
) -> Bound:
    """The fewest steps with nearly the least bound, which is also sought over step lengths if none was asked for."""
    found = []
    for count in counts:
        runs = replace(run, steps=count, noise=noise(count))
        lengths = [step] if step is not None else _lengths(runs)
        found.append(least_bound([replace(runs, step=length) for length in lengths]))
    least = min(bound.value for bound in found)
    return next(bound for bound in found if bound.value <= NEARLY * least)


def least_bound(runs: Iterable[NoisyGradientSteps], *assumptions: str) -> Bound:
    """The least bound on the excess that is proved for any of the runs."""
    found = [(value, name, run) for run in runs for name, value in run.excess().items()]
    if not found:
        raise ValueError("no theorem covers this step: it must be below 2 / smoothness.")
    value, name, run = min(found, key=lambda entry: entry[0])
    settings = {"step": run.step, "steps": float(run.steps), "noise": run.noise}
    if run.squared_distance() < math.inf:
        settings["expected_squared_distance"] = run.squared_distance()
    quantity = "expected excess of the objective"
    source, told = THEOREMS[name]
    return Bound(value, quantity, source, True, (told, *assumptions), settings)


def _lengths(run: NoisyGradientSteps) -> list[float]:
    """Step lengths to try: the best one by the Lipschitz constant alone, and up to 2 / smoothness."""
    size = math.sqrt(run.steps * (run.lipschitz**2 + run.noise))
    lengths = [run.radius / size] if size > 0.0 and run.radius > 0.0 else []
    if run.smoothness < math.inf:
        lengths += [float(part) / run.smoothness for part in np.geomspace(SHORTEST, LONGEST, TRIED)]
        lengths.append(2.0 / (run.smoothness + run.strong_convexity))
    return lengths or [1.0]


def batch_noise(rows: int, columns: int, batch: float, lipschitz: float, multiplier: float) -> float:
    """Expected squared norm of the noise in the mean gradient of a Poisson batch: of the sample and of privacy.

    `batch` is the expected size, by which sums are divided; `multiplier` is the deviation on the sum over lipschitz.
    """
    sampled = (1.0 - batch / rows) * lipschitz**2 / batch
    return sampled + columns * (multiplier * lipschitz / batch) ** 2


def sgd_bound(
    rows: int,
    columns: int,
    budget: Budget,
    *,
    lipschitz: float,
    radius: float,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    batch: int | None = None,
    steps: int | None = None,
    step: float | None = None,
    relation: Relation | str = "replace",
) -> Bound:
    """Return what stochastic gradient descent with Gaussian noise achieves on the mean loss.

    With `batch` and `steps`: proved, for Poisson batches with exactly calibrated noise and the mean of the iterates
    at which gradients were taken. Without them: the order of growth for the best choice, with an unknown constant.

    Parameters
    ----------
    rows, columns, budget, lipschitz, radius, smoothness, strong_convexity, step, relation : as for `gd_bound`
        `radius` is not used by the order for strongly convex losses.
    batch, steps : int, optional
        Expected batch size and number of steps.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.theory import sgd_bound
    >>> bound = sgd_bound(10_000, 10, Budget(1.0, 1e-6), lipschitz=1.0, radius=1.0)
    >>> round(bound.value, 5), bound.proved
    (0.00118, False)
    """
    rows, columns = whole("rows", rows, least=1), whole("columns", columns, least=1)
    lipschitz, radius = at_least_zero("lipschitz", lipschitz), at_least_zero("radius", radius)
    if (batch is None) != (steps is None):
        raise ValueError("batch and steps belong together.")
    if batch is None or steps is None:
        return _order(rows, columns, budget, lipschitz, radius, strong_convexity)
    run = _one_step(1.0, radius, lipschitz, smoothness, strong_convexity)
    batch, steps = int(number_in("batch", whole("batch", batch, least=1), 1, rows)), whole("steps", steps, least=1)
    kind = relation_from(relation)

    def event(multiplier: float) -> object:
        return accounting.poisson_event(batch / rows, multiplier, steps)

    multiplier = 0.0 if budget.is_infinite else accounting.calibrate(event, budget, kind)
    noise = batch_noise(rows, columns, batch, lipschitz, multiplier)
    return best_run(run, step, [steps], lambda _: noise)


def _order(rows: int, columns: int, budget: Budget, lipschitz: float, radius: float, strong_convexity: float) -> Bound:
    epsilon, delta = epsilon_and_delta(budget)
    rate = math.sqrt(columns * log_of_delta(delta)) / (rows * epsilon)
    value = lipschitz**2 * rate**2 / strong_convexity if strong_convexity > 0.0 else lipschitz * radius * rate
    kind = "strongly convex" if strong_convexity > 0.0 else "convex"
    return Bound(
        value,
        "expected excess of the objective",
        "Bassily, Smith and Thakurta (2014); Mangold's thesis, theorem 3.2.3",
        False,
        (f"{kind} losses with gradients of norm at most lipschitz", "about rows^2 steps where a batch is one row"),
    )
