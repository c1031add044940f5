"""DP-SGD: what noisy gradient steps over Poisson samples of the rows achieve."""

from __future__ import annotations

import math

from discreet._common.checks import at_least_zero, number_in, whole
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation, relation_from
from discreet.theory.bound import Bound
from discreet.theory.budgets import epsilon_and_delta, log_of_delta
from discreet.theory.gd import best_run
from discreet.theory.gradient_steps import NoisyGradientSteps


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
    if strong_convexity > 0.0 and smoothness is None:
        raise ValueError("strong_convexity needs smoothness: gradient steps converge at their ratio.")
    batch, steps = int(number_in("batch", whole("batch", batch, least=1), 1, rows)), whole("steps", steps, least=1)
    kind = relation_from(relation)

    def event(multiplier: float) -> object:
        return accounting.poisson_event(batch / rows, multiplier, steps)

    multiplier = 0.0 if budget.is_infinite else accounting.calibrate(event, budget, kind)
    noise = batch_noise(rows, columns, batch, lipschitz, multiplier)
    run = NoisyGradientSteps(
        step=1.0,
        steps=steps,
        first=0,
        noise=noise,
        radius=radius,
        lipschitz=lipschitz,
        smoothness=math.inf if smoothness is None else number_in("smoothness", smoothness, 0.0, above=True),
        strong_convexity=strong_convexity,
    )
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
