"""An attack on low bits: floating-point noise leaves doubles that cannot occur, and they differ between tables.

Noise that is made as `draw * scale` takes only some of the doubles: between two neighbouring draws the product skips
some, and the sampler of draws skips more. Whoever knows the exact value before noise, for either of two tables, can see
whether what was told is that value plus a number that such noise can take. The law of real-valued noise says nothing
about this. First used by Mironov, "On significance of the least significant bits for differential privacy" (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.lower_bound import CONFIDENCE, at_least
from discreet.audit.replays.laws import GaussianLaw, SymmetricGaussianLaw
from discreet.audit.replays.replay import replay
from discreet.audit.replays.tape import Release
from discreet.audit.targets import as_data
from discreet.privacy.random.generator import RandomGenerator, secure_generator

# Candidates for each number of noise -> whether some choice among them can be what a sampler returned.
Sampler = Callable[[list[FloatArray]], bool]
WINDOW = 12  # doubles on either side of the noise that are tried
MOST_CANDIDATES = 6  # of a number; where more doubles round to the same sum, its low bits tell nothing
TURN_STEPS = 2.0**52  # the angles of a sampler by Box and Muller from doubles in (0, 1)


def scaled_draws(noise: FloatArray, scale: float) -> FloatArray:
    """The doubles whose product with `scale` is one of these: the draws that `draw * scale` may have come from."""
    nearest = noise / scale
    steps = np.spacing(np.abs(nearest))
    tried = np.concatenate([nearest + k * steps for k in (-1.0, 0.0, 1.0)])
    return tried[tried * scale == np.tile(noise, 3)]


def candidates(value: float, told: float, scale: float, window: int = WINDOW) -> FloatArray | None:
    """The draws with which `value + draw * scale` is what was told; None if they are too many to tell anything.

    Parameters
    ----------
    value : float
        The exact number before noise, on a table that the attacker suspects.
    told : float
        What was released.
    scale : float
        By what draws are multiplied.
    window : int
        How many doubles on either side of the difference are tried.
    """
    noise = told - value
    tried = noise + np.arange(-window, window + 1) * np.spacing(abs(noise))
    fitting = value + tried == told
    if fitting[0] or fitting[-1] or not fitting.any() or fitting.sum() > MOST_CANDIDATES:
        return None
    return scaled_draws(tried[fitting], scale)


def any_double(found: list[FloatArray]) -> bool:
    """A sampler that may return any double: draws only have to exist."""
    return all(draws.size > 0 for draws in found)


def box_muller(found: list[FloatArray]) -> bool:
    """A sampler by Box and Muller: two numbers are radius * cos and radius * sin of one of 2^52 angles."""
    if len(found) != 2 or not any_double(found):
        return any_double(found)
    first, second = (part.ravel() for part in np.meshgrid(*found))
    near = np.rint(np.arctan2(second, first) / (2.0 * np.pi) % 1.0 * TURN_STEPS - 0.5)
    place = near[:, None] + np.arange(-3.0, 4.0)
    angle = 2.0 * np.pi * ((place + 0.5) / TURN_STEPS)
    cosine, sine = np.cos(angle), np.sin(angle)
    radius = np.hypot(first, second)
    radii = radius[:, None] + np.arange(-6.0, 7.0) * np.spacing(radius)[:, None]
    fits = radii[:, None, :] * cosine[:, :, None] == first[:, None, None]
    fits &= radii[:, None, :] * sine[:, :, None] == second[:, None, None]
    return bool(fits.any())


def impossible(value: FloatArray, told: FloatArray, scale: float, sampler: Sampler = box_muller) -> int:
    """How many pairs of told numbers cannot be the value plus `draw * scale`.

    Parameters
    ----------
    value : ndarray
        The exact numbers before noise, on a table that the attacker suspects.
    told : ndarray of the same shape
        What was released.
    scale : float
        By what draws are multiplied.
    sampler : callable
        Which draws can come together, as by `box_muller` or `any_double`; the i-th number of the first half is drawn
        together with the i-th of the second half.
    """
    found = [candidates(v, t, scale) for v, t in zip(np.ravel(value).tolist(), np.ravel(told).tolist(), strict=True)]
    half = len(found) // 2
    pairs = [found[i :: half or 1][:2] for i in range(half)] if half else []
    groups = [*pairs, *([[found[-1]]] if len(found) % 2 else [])]
    known = [[draws for draws in group if draws is not None] for group in groups]
    return sum(not sampler(group) for group in known)


@dataclass(frozen=True)
class LowBits:
    """How often an attacker named the right one of two tables from low bits.

    Attributes
    ----------
    success : float
        Share of right answers; 1/2 is what guessing gives.
    at_least : float
        Lower confidence limit of it.
    trials : int
    """

    success: float
    at_least: float
    trials: int

    @property
    def found(self) -> bool:
        """Whether low bits tell the tables apart: more than guessing and the noise itself explain."""
        return self.at_least > 0.6


def find_low_bits(
    audited: Any,
    table: Any,
    neighbour: Any,
    trials: int = 100,
    sampler: Sampler = box_muller,
    rng: RandomGenerator | None = None,
) -> LowBits:
    """Tell two neighbouring tables apart by the low bits of everything that Gaussian mechanisms release.

    In each trial one of the tables is chosen by a coin and what is audited runs on it. The attacker knows both tables,
    computes every statistic on both by a replay, and names the table on which fewer of the told numbers are impossible;
    if that tells nothing, a coin decides.

    Parameters
    ----------
    audited : estimator, transformer, Plan, AuditCase or Target
    table, neighbour : Data, (X, y) or (X, y, sample_weight)
        Neighbouring tables that differ by far less than the noise, so that nothing but low bits tells them apart.
    trials : int
    sampler : callable
        What the attacker takes the sampler of draws to be: `box_muller`, or `any_double` for no more than that doubles
        are multiplied by a scale.
    rng : RandomGenerator, optional
        Draws the noise and the coins.

    Returns
    -------
    LowBits
    """
    generator = rng or secure_generator()
    tables = as_data(table), as_data(neighbour)
    right = 0
    for _ in range(trials):
        coin, guess = (int(flip) for flip in generator.integers(2, 2))
        entries = replay(audited, tables[coin], tables[1 - coin], generator).releases
        true = sum(_impossible(entry.statistic, entry, sampler) for entry in entries)
        other = sum(_impossible(entry.other, entry, sampler) for entry in entries)
        right += guess if true == other else int(true < other)
    low = float(at_least(np.array(right), trials, 1.0 - CONFIDENCE))
    return LowBits(right / trials, low, trials)


def _impossible(value: FloatArray | None, entry: Release, sampler: Sampler) -> int:
    """The same for a release; of a symmetric matrix the diagonal is looked at, as the rest is a mean of two draws."""
    if value is None or not isinstance(entry.law, GaussianLaw) or np.shape(entry.output) != np.shape(value):
        return 0
    if isinstance(entry.law, SymmetricGaussianLaw):
        return impossible(np.diag(value), np.diag(entry.output), entry.law.scale, any_double)
    return impossible(value, entry.output, entry.law.scale, sampler)
