"""Reconstruction from gradients: which record gives the gradients that were seen?

The attacker knows every row but one and all released gradients, as the server of a federated training does, and looks
for the record d with the least ||gradient(d) - seen||^2. Without noise this finds the record. With noise the chance of
finding one of k equally probable records is at most what the trade-off curve allows at a rate of 1/k of false alarms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.lower_bound import at_least, at_most
from discreet.audit.replays.replay import record
from discreet.audit.targets import target_of
from discreet.data.rows import Data
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator, secure_generator


@dataclass(frozen=True)
class Reconstruction:
    """How often the missing record was found.

    Attributes
    ----------
    found : int
        How often it was found exactly.
    trials : int
    candidates : int
        From how many equally probable records.
    guarantee : Guarantee or None
    """

    found: int
    trials: int
    candidates: int
    guarantee: Guarantee | None

    @property
    def rate(self) -> float:
        """The share of records that were found."""
        return self.found / self.trials

    @property
    def allowed(self) -> float:
        """The largest chance of finding the record that the guarantee allows."""
        return 1.0 if self.guarantee is None else allowed_rate(self.guarantee, self.candidates)

    def limits(self, failure: float = 1e-3) -> tuple[float, float]:
        """Clopper-Pearson limits of the rate."""
        found = np.array(self.found)
        return float(at_least(found, self.trials, failure)), float(at_most(found, self.trials, failure))

    @property
    def passed(self) -> bool:
        """Whether no more was found than is allowed, up to chance of 1 in 1,000."""
        return self.limits()[0] <= self.allowed


def allowed_rate(guarantee: Guarantee, candidates: int) -> float:
    """The largest chance of naming the right one of so many equally probable records.

    Guarantee: for a table with any fixed record in place of the unknown one, the chances of naming each candidate add
    up to at most 1; the trade-off curve turns a chance on that table into the largest chance on a neighbouring one, and
    is concave.
    """
    false, missed = guarantee.tradeoff(2_000)
    return float(np.interp(1.0 / candidates, false, 1.0 - missed))


def distant_records(attributes: int) -> FloatArray:
    """Twice as many records as there are yes-or-no attributes (-1 and +1), any two of which differ in half or in all.

    They are easier to tell apart than records that differ in one attribute; the number must be a power of two.
    """
    from scipy.linalg import hadamard

    rows = hadamard(attributes).astype(np.float64)
    return np.vstack([rows, -rows])


def reconstruction_attack(
    audited: Any,
    others: Data,
    candidates: FloatArray,
    label: float = 1.0,
    trials: int = 200,
    rng: RandomGenerator | None = None,
) -> Reconstruction:
    """Try to find a record from the gradients that a run releases.

    The record is appended to the other rows. The first release is computed for every candidate, without noise; the mean
    of all releases is compared with these, so that steps must be short.

    Parameters
    ----------
    audited : Plan or Target
        Releases gradients, for tables with one row more than `others`.
    others : Data
        The rows that the attacker knows.
    candidates : ndarray of shape (k, n_features)
        The records that are possible, all alike.
    label : float
        The label of the record, which the attacker knows.
    trials : int
        How often a record is drawn and looked for.
    rng : RandomGenerator, optional
        Draws records and noise.

    Returns
    -------
    Reconstruction
    """
    target, generator = target_of(audited), rng or secure_generator()

    def table(row: FloatArray) -> Data:
        return Data(np.vstack([others.X, row]), np.append(others.y, label))

    expected = np.stack([np.ravel(record(target, table(row), generator).releases[0].statistic) for row in candidates])
    found = 0
    for chosen in generator.integers(len(candidates), trials):
        seen = record(target, table(candidates[chosen]), generator).releases
        mean = np.mean([np.ravel(entry.output) for entry in seen], axis=0)
        found += int(np.argmin(((expected - mean) ** 2).sum(axis=1)) == chosen)
    return Reconstruction(found, trials, len(candidates), target.guarantee_for(table(candidates[0])))
