"""The methods of accounting, called routes: closed form, pure composition, zCDP, bounded range, PLD.

Each turns a composition into an upper bound on epsilon or delta; the least counts, and a certificate names its route.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.privacy.accounting.composition import Composition
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon
from discreet.privacy.accounting.pairs import Array, SampledGaussianPair
from discreet.privacy.accounting.pld.convolution import compose, tightest_delta, tightest_epsilon
from discreet.privacy.accounting.pld.discretisation import Parts
from discreet.privacy.accounting.pld.selections import Profile, profile
from discreet.privacy.accounting.renyi import zcdp_delta, zcdp_epsilon

# Larger losses are not put on a grid: discretisation.loss_range.
_LARGEST_LOSS = 1e6

# Values of delta around which a whole privacy curve is computed.
_ANCHORS = (0.5, 0.1, 1e-2, 1e-4, 1e-7)


class Route(Protocol):
    """A way to account; `exact` means that no other route can do better."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def applies(self, composition: Composition) -> bool:
        """Whether the route can say anything about the composition."""
        ...

    def epsilon(self, composition: Composition, delta: float) -> float:
        """Return an epsilon that holds with the given delta, perhaps infinite."""
        ...

    def deltas(self, composition: Composition, epsilons: Array) -> Array:
        """Return a delta that holds with each epsilon."""
        ...


@dataclass(frozen=True)
class ClosedForm:
    """Gaussian releases compose exactly: mu^2 adds up (Dong, Roth and Su 2022, corollary 3.3)."""

    name: str = "closed form (Gaussian DP)"
    exact: bool = True

    def applies(self, composition: Composition) -> bool:
        return composition.only_gaussian

    def epsilon(self, composition: Composition, delta: float) -> float:
        return gaussian_epsilon(delta, composition.gaussian_mu)

    def deltas(self, composition: Composition, epsilons: Array) -> Array:
        return np.array([gaussian_delta(float(x), composition.gaussian_mu) for x in epsilons])


@dataclass(frozen=True)
class PureComposition:
    """Pure epsilons add up; below their sum E, delta = (e^E - e^epsilon) / (e^E + 1)."""

    name: str = "pure composition"
    exact: bool = False

    def applies(self, composition: Composition) -> bool:
        return composition.pure_epsilon() < math.inf

    def epsilon(self, composition: Composition, delta: float) -> float:
        return composition.pure_epsilon()

    def deltas(self, composition: Composition, epsilons: Array) -> Array:
        total = composition.pure_epsilon()
        return -np.expm1(np.minimum(epsilons - total, 0.0)) / (1.0 + math.exp(-total))


@dataclass(frozen=True)
class Zcdp:
    """Values of rho add up (Bun and Steinke 2016), converted at the best Renyi order."""

    name: str = "zCDP"
    exact: bool = False

    def applies(self, composition: Composition) -> bool:
        return composition.rho() < math.inf

    def epsilon(self, composition: Composition, delta: float) -> float:
        return zcdp_epsilon(composition.rho(), delta)

    def deltas(self, composition: Composition, epsilons: Array) -> Array:
        return np.array([zcdp_delta(composition.rho(), float(x)) for x in epsilons])


@dataclass(frozen=True)
class Recursion:
    """The worst adaptive choice at each selection, computed backwards (see `pld.selections`)."""

    name: str = "bounded-range recursion"
    exact: bool = False

    def applies(self, composition: Composition) -> bool:
        return composition.order is not None and not composition.others

    def epsilon(self, composition: Composition, delta: float) -> float:
        upper = min(zcdp_epsilon(composition.rho(), delta), composition.pure_epsilon())
        found = _selection_profile(composition, upper)
        if found is None or not delta or float(found.delta(np.array([upper]))[0]) > delta:
            return math.inf
        low, high = 0.0, upper
        while high - low > 1e-7 * high:
            trials = np.linspace(low, high, 34)
            fits = np.flatnonzero(found.delta(trials) <= delta)
            first = int(fits[0]) if fits.size else 33
            low, high = (float(trials[first - 1]), float(trials[first])) if first else (0.0, 0.0)
        return high

    def deltas(self, composition: Composition, epsilons: Array) -> Array:
        found = _selection_profile(composition, float(np.max(epsilons)))
        return np.ones(epsilons.shape) if found is None else found.delta(epsilons)


@dataclass(frozen=True)
class LossDistribution:
    """Dominating pairs composed on a grid (see `pld.convolution`), the worse of the two directions."""

    name: str = "PLD"
    exact: bool = False

    def applies(self, composition: Composition) -> bool:
        # For several selections the recursion is never worse, if it can be afforded.
        if composition.others or not composition.selections:
            return True
        count = sum(times for _, times in composition.selections)
        return count == 1 or composition.order is None

    def epsilon(self, composition: Composition, delta: float) -> float:
        if not delta:
            return math.inf
        upper = zcdp_epsilon(composition.order_rho, delta)
        directions = _directions(composition, upper)
        if any(_mass_beyond_grid(parts) >= delta for parts in directions):
            return math.inf
        return max(tightest_epsilon(parts, delta) for parts in directions)

    def deltas(self, composition: Composition, epsilons: Array) -> Array:
        directions = _directions(composition, float(np.max(epsilons)))
        if any(_mass_beyond_grid(parts) > 0.5 for parts in directions):
            return np.ones(epsilons.shape)
        if epsilons.size == 1:
            return np.array([max(tightest_delta(parts, float(epsilons[0])) for parts in directions)])
        # A curve: each composition is tight around one delta, so a few of them cover it.
        tuned = [[compose(parts, delta).delta(epsilons) for delta in _ANCHORS] for parts in directions]
        return np.asarray(np.max(np.min(tuned, axis=1), axis=0))


ROUTES: tuple[Route, ...] = (ClosedForm(), PureComposition(), Zcdp(), Recursion(), LossDistribution())


def _selection_profile(composition: Composition, epsilon: float) -> Profile | None:
    """Return the profile of the ordered releases, wide enough to be read at epsilon."""
    assert composition.order is not None
    rho = composition.order_rho
    # Beyond `reach` the tail exp(-(x - rho)^2 / 4 rho) of the loss has lost a factor 1e5.
    reach = rho + math.sqrt(max(epsilon - rho, 0.0) ** 2 + 46.0 * rho)
    return profile(composition.order, min(reach, 1.01 * composition.pure_epsilon()))


def _mass_beyond_grid(parts: Parts) -> float:
    """The probability that a loss is too large for the grid, where there is almost no noise; a bound on delta below."""
    masses = [(min(1.0, float(pair.above(np.array([_LARGEST_LOSS]))[0][0])), times) for pair, times in parts]
    return 1.0 - math.prod((1.0 - mass) ** times for mass, times in masses)


def _directions(composition: Composition, epsilon: float) -> list[Parts]:
    """Return the pairs to compose, once for each direction in which a pair is not symmetric."""
    mu = composition.gaussian_mu
    common: Parts = []
    grouped = None
    if composition.others and composition.order is not None:
        grouped = _selection_profile(composition, epsilon)
    if grouped is not None:
        common.append((grouped.as_pair(), 1))
        mu = grouped.front
    else:
        common += [(pairs[0], n) for s, n in composition.selections if (pairs := s.pairs()) is not None]
    if mu > 0.0:
        common.append((SampledGaussianPair(1.0, mu), 1))
    both = [(pairs, n) for release, n in composition.others if (pairs := release.pairs()) is not None]
    directions = [common + [(pairs[way], n) for pairs, n in both] for way in (0, 1)]
    return directions if any(pairs[0] is not pairs[1] for pairs, _ in both) else directions[:1]
