"""The law of a release: how far its statistic moves between two tables, and the exact privacy loss of what was told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import accounting, mechanisms
from discreet.privacy.mechanisms.additive import NoisyGrid, noise_scale
from discreet.privacy.relation import Relation

# What a noise claims: the most its statistic may move (in the norm of the law), and its law.
Claim = tuple[float, "Law"]


@dataclass(frozen=True)
class Law:
    """Noise of an unknown law, on a statistic that is measured in the Euclidean norm."""

    scale: float

    def distance(self, first: FloatArray, second: FloatArray) -> float:
        """How far apart two statistics are."""
        return float(np.linalg.norm(np.ravel(first - second)))

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        """log P[output | first] - log P[output | second]; None where it is not known."""
        return None

    def residual(self, statistic: FloatArray, output: Any) -> FloatArray | None:
        """The noise in units of its scale; None where there is none to see."""
        return None

    def event(self, distance: float) -> Any:
        """What the noise costs on a statistic that moves by this distance; None where it is not known."""
        return accounting.no_event() if distance == 0.0 else None


@dataclass(frozen=True)
class GaussianLaw(Law):
    """Independent normal noise on every entry; `scale` is its standard deviation."""

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        to_first, to_second = np.ravel(output - first), np.ravel(output - second)
        return float((to_second - to_first) @ (to_second + to_first)) / (2.0 * self.scale**2)

    def residual(self, statistic: FloatArray, output: Any) -> FloatArray | None:
        return np.ravel(output - statistic) / self.scale

    def event(self, distance: float) -> Any:
        return accounting.gaussian_event(self.scale / distance) if distance > 0.0 else accounting.no_event()


@dataclass(frozen=True)
class SymmetricGaussianLaw(GaussianLaw):
    """Gaussian noise on symmetric matrices that is white in their Frobenius norm."""

    def residual(self, statistic: FloatArray, output: Any) -> FloatArray | None:
        noise = (output - statistic) / self.scale
        above = noise[np.triu_indices_from(noise, 1)]
        return np.concatenate([np.diag(noise), math.sqrt(2.0) * above])


@dataclass(frozen=True)
class SampledGaussianLaw(GaussianLaw):
    """The same on a sum over a random batch, here known: the loss of an attacker who does not know it is smaller.

    All releases of one law are priced together, by `mechanism.event`: in each of them the row may take part.
    """

    mechanism: Any

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        return None

    def event(self, distance: float) -> Any:
        return None


@dataclass(frozen=True)
class ObjectiveLaw(GaussianLaw):
    """A Gaussian linear term in an objective: the determinants of Hessians come on top."""

    def event(self, distance: float) -> Any:
        return None


@dataclass(frozen=True)
class LaplaceLaw(Law):
    """Independent Laplace noise of this scale on every entry; distances are L1 norms."""

    def distance(self, first: FloatArray, second: FloatArray) -> float:
        return float(np.abs(first - second).sum())

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        return float((np.abs(output - second) - np.abs(output - first)).sum()) / self.scale

    def residual(self, statistic: FloatArray, output: Any) -> FloatArray | None:
        """As normal numbers, by the distribution functions: one test fits all laws."""
        from scipy.special import ndtri

        units = np.ravel(output - statistic) / self.scale
        tails = 0.5 * np.exp(-np.abs(units))
        return -np.sign(units) * ndtri(np.maximum(tails, 1e-300))

    def event(self, distance: float) -> Any:
        return accounting.laplace_event(self.scale / distance) if distance > 0.0 else accounting.no_event()


@dataclass(frozen=True)
class SphericalLaw(Law):
    """Noise with density proportional to exp(-||z|| / scale)."""

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        return float(np.linalg.norm(output - second) - np.linalg.norm(output - first)) / self.scale

    def event(self, distance: float) -> Any:
        return accounting.pure_event(distance / self.scale) if distance > 0.0 else accounting.no_event()


@dataclass(frozen=True)
class SelectionLaw(Law):
    """An index drawn with probability proportional to exp(score / scale); no score may move by more than claimed."""

    def distance(self, first: FloatArray, second: FloatArray) -> float:
        return float(np.abs(first - second).max())

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        return float(self._log_chances(first)[output] - self._log_chances(second)[output])

    def _log_chances(self, scores: FloatArray) -> FloatArray:
        from scipy.special import logsumexp

        return np.asarray(scores / self.scale - logsumexp(scores / self.scale))

    def event(self, distance: float) -> Any:
        return accounting.selection_event(2.0 * distance / self.scale) if distance > 0.0 else accounting.no_event()


@dataclass(frozen=True)
class OtherSelectionLaw(SelectionLaw):
    """A selection by Laplace noise on the scores, whose probabilities have no closed form."""

    def loss(self, first: FloatArray, second: FloatArray, output: Any) -> float | None:
        return None

    def event(self, distance: float) -> Any:
        return accounting.pure_event(2.0 * distance / self.scale) if distance > 0.0 else accounting.no_event()


@dataclass(frozen=True)
class DensityLaw(Law):
    """A point drawn with density proportional to exp(-energy): the energies' difference may have a claimed range."""

    def distance(self, first: FloatArray, second: FloatArray) -> float:
        return float(np.ptp(first - second))

    def event(self, distance: float) -> Any:
        return accounting.selection_event(distance) if distance > 0.0 else accounting.no_event()


LAWS: Mapping[str, type[Law]] = {"normal": GaussianLaw, "laplace": LaplaceLaw, "spherical": SphericalLaw}


def claim_of(mechanism: Any, grid: NoisyGrid, relation: Relation) -> Claim:
    """What a mechanism claims about the grid that it has made: the sensitivity of rounded values, and the noise."""
    claimed = grid.scale / mechanism.multiplier
    if isinstance(mechanism, mechanisms.PoissonGaussian):  # its multiplier is for the contribution of one row
        return mechanisms.clipped_sum(relation).l2 * claimed, SampledGaussianLaw(grid.scale, mechanism)
    if isinstance(mechanism, mechanisms.FixedSizeGaussian):
        return claimed, SampledGaussianLaw(grid.scale, mechanism)
    return claimed, LAWS[grid.law](grid.scale)


def selection_of(mechanism: Any, sensitivity: Any) -> Claim:
    """What a selection claims about its scores."""
    if isinstance(mechanism, mechanisms.LaplaceGreedy):
        return sensitivity.l1, OtherSelectionLaw(noise_scale(mechanism.multiplier, sensitivity.l1))
    if isinstance(mechanism, mechanisms.GumbelGreedy | mechanisms.TopSelections):
        return sensitivity.l2, SelectionLaw(noise_scale(mechanism.multiplier, sensitivity.l2))
    return sensitivity.l1, OtherSelectionLaw(math.nan)
