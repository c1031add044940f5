"""The synthetic tables on which defaults are judged: drawn anew for every seed, none of them a benchmark table.

Rows are x = offset + scale * z, where z has unit variance and is

    normal      independent standard normal entries;
    correlated  sqrt(0.2) * own noise + sqrt(0.8) * (three common factors, mixed at random);
    heavy       Student's t with 3 degrees of freedom, divided by its deviation;
    mixed       one half normal, the other half indicators of rates between 0.02 and 0.5 (neither centred nor scaled).

Scales are 1 with offset 0, or "uneven": 10^U(-1.5, 2.5) with offsets of up to 10 scales on one half of the columns. The
margin is a random direction of unit deviation, times 2 for labels, whose intercept gives the stated rate of positives;
the target of a regression is the margin plus noise of deviation 0.5 with the tails of the rows, times 30, plus 100.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.problem.losses import Logistic, Loss, Squared

FloatArray = npt.NDArray[np.float64]
FACTORS = 3


@dataclass(frozen=True)
class Table:
    """One member of the family; `draw` gives its rows for a seed."""

    task: Literal["labels", "target"]
    rows: int
    columns: int
    epsilon: float
    shape: Literal["normal", "correlated", "heavy", "mixed"] = "normal"
    uneven: bool = False
    positives: float = 0.5

    @property
    def name(self) -> str:
        words = [self.task, f"{self.rows:,} x {self.columns}", f"epsilon {self.epsilon:g}", self.shape]
        words += ["uneven"] * self.uneven
        words += [f"{self.positives:.0%} positive"] * (self.positives < 0.5)
        return ", ".join(words)

    @property
    def loss(self) -> Loss:
        return Logistic() if self.task == "labels" else Squared()

    def draw(self, seed: int) -> tuple[FloatArray, FloatArray]:
        """X and y: labels -1 and +1, or a target."""
        rng = np.random.default_rng([seed, self.rows, self.columns])
        X = self._entries(rng)
        direction = rng.standard_normal(self.columns)
        margin = (X - X.mean(axis=0)) @ direction
        margin /= margin.std()
        if self.uneven:
            X = X * 10.0 ** rng.uniform(-1.5, 2.5, self.columns)
            X += X.std(axis=0) * rng.uniform(-10.0, 10.0, self.columns) * (rng.permutation(self.columns) % 2)
        if self.task == "target":
            noise = heavy(rng, (self.rows,)) if self.shape == "heavy" else rng.standard_normal(self.rows)
            return X, 100.0 + 30.0 * (margin + 0.5 * noise)
        logits = 2.0 * margin + rng.logistic(size=self.rows)
        return X, np.where(logits > np.quantile(logits, 1.0 - self.positives), 1.0, -1.0)

    def _entries(self, rng: np.random.Generator) -> FloatArray:
        shape = (self.rows, self.columns)
        if self.shape == "heavy":
            return heavy(rng, shape)
        X = rng.standard_normal(shape)
        if self.shape == "correlated":
            mixing = rng.standard_normal((FACTORS, self.columns))
            common = rng.standard_normal((self.rows, FACTORS)) @ (mixing / np.linalg.norm(mixing, axis=0))
            X = np.sqrt(0.2) * X + np.sqrt(0.8) * common
        if self.shape == "mixed":
            half = self.columns // 2
            X[:, :half] = rng.random((self.rows, half)) < rng.uniform(0.02, 0.5, half)
        return X


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Student's t with 3 degrees of freedom and unit variance."""
    return rng.standard_t(3.0, shape) / np.sqrt(3.0)


FAMILY = (
    Table("labels", 500, 5, 1.0),
    Table("labels", 2_000, 20, 4.0, "correlated"),
    Table("labels", 5_000, 10, 1.0, "heavy"),
    Table("labels", 10_000, 10, 1.0, "mixed", positives=0.03),
    Table("labels", 10_000, 30, 1.0, "correlated", uneven=True),
    Table("labels", 10_000, 60, 0.5, "mixed"),
    Table("labels", 20_000, 10, 4.0, "heavy", uneven=True, positives=0.1),
    Table("target", 1_000, 5, 1.0),
    Table("target", 5_000, 20, 4.0, "heavy"),
    Table("target", 10_000, 10, 0.5, "mixed", uneven=True),
    Table("target", 10_000, 30, 1.0, "correlated"),
    Table("target", 20_000, 10, 4.0, "heavy", uneven=True),
)
LABELS = tuple(table for table in FAMILY if table.task == "labels")
TARGETS = tuple(table for table in FAMILY if table.task == "target")
EVEN = tuple(table for table in FAMILY if not table.uneven)  # for sets that bind all columns together
SMALL = (
    Table("labels", 500, 2, 1.0),
    Table("labels", 2_000, 2, 1.0, "correlated"),
    Table("labels", 1_000, 2, 0.5, "heavy"),
    Table("target", 500, 2, 1.0),
    Table("target", 2_000, 2, 1.0, "heavy"),
)
