"""Membership inference: was a record among those that a model was trained on?

Of two records a coin puts one into the table. The attacker sees the trained model and both records and names the one
that the model fits better. Non-private models with many columns remember their rows; a private model stays under the
trade-off curve of its guarantee, whatever the attacker does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.targets import Outputs, target_of
from discreet.data.rows import Data
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator, secure_generator
from discreet.privacy.relation import Relation

Losses = Callable[[Outputs, FloatArray, FloatArray], FloatArray]  # outputs, X, y -> one loss per row


@dataclass(frozen=True, eq=False)
class AttackCurve:
    """How often an attack finds a member (true positives) at each rate of false alarms.

    Attributes
    ----------
    false_positives, true_positives : ndarray
        Rates between 0 and 1, both increasing.
    decisions : int
        How many answers the rates are measured from, half of them about members.
    guarantee : Guarantee or None
        What was promised about the model; None or infinite for a model without privacy.
    """

    false_positives: FloatArray
    true_positives: FloatArray
    decisions: int
    guarantee: Guarantee | None

    @property
    def area(self) -> float:
        """The area under the curve: 1/2 for guessing, 1 for certainty."""
        return float(np.trapezoid(self.true_positives, self.false_positives))

    @property
    def advantage(self) -> float:
        """The largest difference of the two rates."""
        return float((self.true_positives - self.false_positives).max())

    def allowed(self, points: int = 200) -> tuple[FloatArray, FloatArray]:
        """The most true positives that the guarantee allows at each rate of false positives."""
        if self.guarantee is None:
            return np.array([0.0, 1.0]), np.array([1.0, 1.0])
        first, second = self.guarantee.tradeoff(points)
        return first, 1.0 - second

    def excess(self, level: float = 1e-3) -> float:
        """By how much the measured curve exceeds the allowed one, beyond what chance explains; not positive if nowhere.

        Both rates may be off by the same amount everywhere, by the inequality of Dvoretzky, Kiefer and Wolfowitz.

        Guarantee: positive with probability at most `level` for a mechanism that keeps its promise, if all answers are
        independent; answers about one model are not quite.
        """
        slack = float(np.sqrt(np.log(4.0 / level) / self.decisions))  # two curves of decisions / 2 answers each
        false, true = self.allowed()
        most = np.interp(np.minimum(self.false_positives + slack, 1.0), false, true)
        return float((self.true_positives - slack - most).max())


def logistic_losses(outputs: Outputs, X: FloatArray, y: FloatArray) -> FloatArray:
    """The logistic loss of rows with labels -1 and +1 under the coefficients of a run."""
    coef = np.ravel(outputs["coef"] if "coef" in outputs else outputs["coef_"])
    intercept = float(np.ravel(outputs["intercept"] if "intercept" in outputs else outputs["intercept_"])[0])
    return np.logaddexp(0.0, -y * (X @ coef + intercept))


def membership_attack(
    audited: Any,
    table: Data,
    models: int = 50,
    *,
    losses: Losses = logistic_losses,
    rng: RandomGenerator | None = None,
) -> AttackCurve:
    """Attack models that are trained on one record of every pair of rows.

    Row 2i and row 2i + 1 of the table are a pair, of which a coin puts one into the training table. Exchanging the two
    replaces one row, so a promise for the relation "replace" bounds how well any attacker can tell which one it was.

    Parameters
    ----------
    audited : classifier with classes [-1, 1], Plan or Target
        What is trained; its relation must be "replace".
    table : Data
        Rows of the population, an even number, with labels -1 and +1.
    models : int
        How many models are trained, each with new coins.
    losses : callable
        losses(outputs, X, y): how badly the outputs of a run fit rows.
    rng : RandomGenerator, optional
        Draws the noise and the coins.

    Returns
    -------
    AttackCurve
    """
    target, generator = target_of(audited), rng or secure_generator()
    if target.relation is not Relation.REPLACE:
        raise ValueError('membership inference exchanges rows: audit a model with relation="replace".')
    first, second = np.arange(0, table.rows - 1, 2), np.arange(1, table.rows, 2)
    guarantee = target.guarantee_for(Data(table.X[first], table.y[first]))
    scores, members = [], []
    for _ in range(models):
        coins = generator.integers(2, first.size).astype(bool)
        chosen = np.where(coins, first, second)
        outputs = target.run(Data(table.X[chosen], table.y[chosen]), generator)
        fit = losses(outputs, table.X, table.y)
        scores.append(fit[second] - fit[first])  # large where the first record fits better
        members.append(coins)
    return _curve(np.concatenate(scores), np.concatenate(members), guarantee)


def _curve(scores: FloatArray, members: Any, guarantee: Guarantee | None) -> AttackCurve:
    order = np.argsort(-scores, kind="stable")
    hits, alarms = np.cumsum(members[order]), np.cumsum(~members[order])
    # A threshold between equal scores does not exist.
    ends = np.append(np.diff(scores[order]) != 0.0, True)
    true = np.append(0.0, hits[ends] / max(int(hits[-1]), 1))
    false = np.append(0.0, alarms[ends] / max(int(alarms[-1]), 1))
    return AttackCurve(false, true, scores.size, guarantee)
