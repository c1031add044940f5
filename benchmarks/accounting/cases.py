"""Compositions: random ones of each family, and fixed ones, with their events and their exact moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.privacy import accounting
from tests import exact_privacy as exact


@dataclass(frozen=True)
class Case:
    """A composition: its event, the exact moments in each direction, and what dp-accounting is given."""

    event: object
    relation: str
    directions: tuple[tuple[tuple[exact.Moment, int], ...], ...]
    theirs: tuple[tuple[object, int], ...] | None = None
    their_relation: str = "ADD_OR_REMOVE_ONE"
    rdp: bool = True
    mu: float | None = None

    def truth(self, delta: float) -> float:
        if self.mu is not None:
            return exact_gaussian(delta, self.mu)
        return max(exact.Profile(parts).epsilon(delta, points=800) for parts in self.directions)


def exact_gaussian(delta: float, mu: float) -> float:
    """The epsilon of mu-GDP at delta in 60-digit arithmetic."""
    import mpmath

    with mpmath.workdps(60):

        def excess(epsilon: mpmath.mpf) -> mpmath.mpf:
            s = epsilon / mu - mpmath.mpf(mu) / 2
            return mpmath.log(mpmath.ncdf(-s) - mpmath.exp(epsilon) * mpmath.ncdf(-s - mu)) - mpmath.log(delta)

        start = accounting.gaussian_epsilon(delta, mu)
        return float(mpmath.findroot(excess, (start, 1.001 * start)))


def gaussians(rng: np.random.Generator) -> Case:
    import dp_accounting as dp

    parts = [(float(z), int(k)) for z, k in zip(rng.uniform(5, 40, 3), rng.integers(1, 100, 3), strict=True)]
    event = accounting.compose([accounting.gaussian_event(z, k) for z, k in parts])
    theirs = tuple((dp.GaussianDpEvent(z), k) for z, k in parts)
    return Case(event, "replace", (), theirs, mu=math.sqrt(sum(k / z**2 for z, k in parts)))


def laplace(rng: np.random.Generator) -> Case:
    import dp_accounting as dp

    z, k, w = float(rng.uniform(5, 40)), int(rng.integers(20, 200)), float(rng.uniform(2, 20))
    event = accounting.compose([accounting.laplace_event(z, k), accounting.gaussian_event(w)])
    moments = ((exact.laplace_moment(1 / z), k), (exact.gaussian_moment(1 / w), 1))
    return Case(event, "replace", (moments,), ((dp.LaplaceDpEvent(z), k), (dp.GaussianDpEvent(w), 1)))


def selection(rng: np.random.Generator) -> Case:
    import dp_accounting as dp

    e, z, k = float(rng.uniform(0.1, 1.0)), float(rng.uniform(5, 40)), int(rng.integers(1, 100))
    event = accounting.compose([accounting.gaussian_event(z, k), accounting.selection_event(e)])
    moments = ((exact.bounded_range_moment(e), 1), (exact.gaussian_moment(1 / z), k))
    return Case(event, "replace", (moments,), ((dp.ZCDpEvent(e**2 / 8), 1), (dp.GaussianDpEvent(z), k)))


def poisson(relation: str) -> Callable[[np.random.Generator], Case]:
    def case(rng: np.random.Generator) -> Case:
        import dp_accounting as dp

        q, z = float(10 ** rng.uniform(-2.5, -1)), float(rng.uniform(0.6, 3.0))
        k = int(rng.uniform(0.5, 8) / q)
        theirs = ((dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), k),)
        event = accounting.poisson_event(q, z, k)
        if relation == "replace":
            directions = (((exact.poisson_replace_moment(q, 1 / z), k),),)
            return Case(event, relation, directions, theirs, "REPLACE_ONE", rdp=False)
        return Case(event, relation, tuple(((m, k),) for m in exact.poisson_moments(q, 1 / z)), theirs)

    return case


def fixed_size(rng: np.random.Generator) -> Case:
    n, b, z = 1000, int(rng.integers(1, 100)), float(rng.uniform(0.6, 3.0))
    k = int(rng.uniform(0.5, 10) * n / b)
    event = accounting.fixed_size_event(n, b, z, k)
    return Case(event, "replace", (((exact.fixed_size_moment(b / n, 1 / z), k),),))


def mixture(rng: np.random.Generator) -> Case:
    from dp_accounting.dp_event import MixtureOfGaussiansDpEvent

    z, k = float(rng.uniform(0.8, 4.0)), int(rng.integers(1, 20))
    moves, weights = [0.0, 0.5, 1.0], [0.9, 0.05, 0.05]
    event = accounting.mixture_event(z, moves, weights, k)
    directions = tuple(((m, k),) for m in exact.mixture_moments([c / z for c in moves], weights))
    return Case(event, "zero_out", directions, ((MixtureOfGaussiansDpEvent(z, moves, weights), k),))


FAMILIES = {
    "Gaussians": gaussians,
    "Laplace and a Gaussian": laplace,
    "Gaussians and a selection": selection,
    "Poisson batches, zero_out": poisson("zero_out"),
    "Poisson batches, replace": poisson("replace"),
    "batches of fixed size": fixed_size,
    "mixtures of Gaussians": mixture,
}


def at_small_delta(name: str) -> Case:
    """A composition whose delta is made smaller and smaller."""
    import dp_accounting as dp

    if name == GAUSSIANS:
        given = ((dp.GaussianDpEvent(10.0), 100),)
        return Case(accounting.gaussian_event(10.0, 100), "replace", (), given, mu=1.0)
    rate, times = BATCHES[name]
    moments = tuple(((m, times),) for m in exact.poisson_moments(rate, 1.0))
    given = ((dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(1.0)), times),)
    return Case(accounting.poisson_event(rate, 1.0, times), "zero_out", moments, given)


def rare(q: float, k: int, z: float) -> Case:
    """Nearly all losses are tiny, a few are large."""
    import dp_accounting as dp

    given = ((dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), k),)
    moment = exact.poisson_moments(q, 1 / z)[0]  # this direction is the worse one
    return Case(accounting.poisson_event(q, z, k), "zero_out", (((moment, k),),), given)


GAUSSIANS = "100 Gaussians, multiplier 10"
BATCHES = {f"{times} Poisson batches, q = {rate}, z = 1": (rate, times) for rate, times in ((0.01, 1000), (0.02, 500))}
