"""Choose epsilon by harm: how much unfairness can the noise of a planned model add? No row is read.

Theorems, proofs and assumptions: docs/guarantees/harm.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.checks import number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.fairness.cells import CellTable
from discreet.fairness.harm.flip_curves import BallCurve
from discreet.fairness.harm.margin_profiles import LABELS, MarginProfile
from discreet.fairness.harm.planned_noise import ScoreNoise, largest_score, plan_of, score_noise
from discreet.fairness.harm.result import Harm, Mode
from discreet.fairness.harm.sums import HarmSums
from discreet.fairness.notions import notion_of
from discreet.fairness.quantities import Quantity, quantities

if TYPE_CHECKING:
    from discreet.solvers import Plan


POSSIBLE = 0.9  # of a cell must have margins that the ridge allows; a normal law has a tail that it does not


class ContradictoryMarginsError(ValueError):
    """The assumed margins are larger than those of any noise-free model of the plan."""


@dataclass(frozen=True)
class HarmQuestion:
    """What is asked, whatever the estimator, the epsilon and the number of rows; checked when it is made.

    The parameters are those of `harm_of`.
    """

    columns: int
    groups: Mapping[str, int]
    margins: MarginProfile
    notion: str = "equality of opportunity"
    failure: float = 0.01
    mode: Mode = "bound"
    row_norm: float | None = None
    evaluation_epsilon: float | None = None
    cells: FloatArray = field(init=False)
    statements: list[Quantity] = field(init=False)

    def __post_init__(self) -> None:
        whole("columns", self.columns, least=1)
        if not isinstance(self.groups, Mapping):
            raise ValueError("groups must name each group and its rows, such as {'a': 9000, 'b': 1000}.")
        for group, size in self.groups.items():
            whole(f"groups[{group!r}]", size, least=1)
        if not isinstance(self.margins, MarginProfile):
            raise ValueError("margins must be a NormalMargins, a MarginDensity or a MarginSample.")
        if not self.groups:
            raise ValueError("groups is empty: name each group and its rows, such as {'a': 9000, 'b': 1000}.")
        notion = notion_of(self.notion)
        if len(self.groups) < 2 and notion.groups:
            raise ValueError(f"{notion.name} compares groups: give two or more, such as {{'a': 9000, 'b': 1000}}.")
        number_in("failure", self.failure, 0.0, 1.0, above=True)
        one_of("mode", self.mode, ("bound", "expected"))
        for name in ("row_norm", "evaluation_epsilon"):
            if getattr(self, name) is not None:
                number_in(name, getattr(self, name), 0.0, above=True)
        sizes = np.array(list(self.groups.values()), dtype=np.float64)
        rates = np.array([self.margins.base_rate(group) for group in self.groups])
        cells = np.stack([sizes * (1.0 - rates), sizes * rates])
        table = CellTable(np.array(LABELS), np.array(list(self.groups)), cells, np.zeros_like(cells))
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "statements", quantities(table, self.notion, favourable=1))
        object.__setattr__(self, "notion", notion.name)

    def at(self, estimator: Any, rows: int, epsilon: float | None = None) -> Harm:
        """The harm of an estimator's plan, with another epsilon if one is given."""
        plan = plan_of(estimator, whole("rows", rows, least=2), self.columns, epsilon)
        noise = score_noise(plan, self.row_norm, predicted=self.mode == "expected")
        changes = HarmSums(self, noise)
        self._check_margins(plan, changes, largest_score(plan, noise))
        groups = tuple(changes.of(statement, plan) for statement in self.statements)
        promised = plan.budget if plan.budget.epsilon is not None else plan.guarantee
        return Harm(
            notion=self.notion,
            mode=self.mode,
            failure=self.failure,
            epsilon=float(promised.epsilon or 0.0),
            delta=float(promised.delta or 0.0),
            rows=rows,
            columns=self.columns,
            solver=plan.solver.name,
            noise=noise.deviation,
            proved=noise.proved,
            groups=groups,
            aggregate=changes.aggregate([group.change for group in groups]),
            reference=noise.law.reference,
            assumptions=tuple(_assumptions(self, plan, noise)),
        )

    def _check_margins(self, plan: Plan, changes: HarmSums, largest: float) -> None:
        """Refuse margins that no noise-free model of the plan can have, since its ridge keeps scores small."""
        if float(changes.sides(BallCurve(largest))[2].min()) >= POSSIBLE:
            return
        raise ContradictoryMarginsError(
            f"margins contradict the plan: with the ridge {plan.settings.to_dict()['ridge']:.3g} no noise-free score "
            f"exceeds {largest:.3g}, but more than {1.0 - POSSIBLE:.0%} of a label of a group are assumed to have "
            "larger ones. Assume the scores that a model with this ridge has, or make the ridge smaller."
        )


def _assumptions(question: HarmQuestion, plan: Plan, noise: ScoreNoise) -> list[str]:
    counted = int(sum(question.groups.values()))
    shares = ", ".join(f"{group} {size / counted:.3g}" for group, size in question.groups.items())
    told = [
        question.margins.describe(),
        f"shares of the groups among the {counted} rows on which harm is counted: {shares}",
    ]
    if not noise.row_norm_proved:
        usual = "" if question.row_norm is not None else ", the root mean square of rows with columns of mean square 1"
        told.append(f"scaled rows have norm at most {noise.row_norm:.4g}{usual}")
    if plan.scaling_plan.method not in ("declared", "none"):
        told.append("the scales of the columns are taken as released: their own noise is no part of this change")
    if not noise.proved:
        told.append("the noise of a coefficient is the one that the plan predicts; no theorem proves it")
    settings = plan.settings.to_dict()
    if "ridge" in settings:
        told.append(
            f"these margins are those of a model with the ridge {settings['ridge']:.3g}, whose scores are smaller than "
            "the log-odds of the population"
        )
    if "ridge" in settings and None in (getattr(plan.solver, "ridge", 0), getattr(plan.solver, "row_norm", 0)):
        told.append(
            f"they hold at this epsilon: its ridge ({settings['ridge']:.3g}) and its row norm "
            f"({settings['row_norm']:.3g}) follow from epsilon unless the solver is given both"
        )
    return told


def harm_of(
    estimator: Any,
    rows: int,
    columns: int,
    groups: Mapping[str, int],
    *,
    margins: MarginProfile,
    notion: str = "equality of opportunity",
    failure: float = 0.01,
    mode: Mode = "bound",
    row_norm: float | None = None,
    evaluation_epsilon: float | None = None,
) -> Harm:
    """Return how much unfairness the noise of a planned model can add. No row is read.

    Parameters
    ----------
    estimator : PrivateClassifier
        The classifier of two classes that would be fitted, with its epsilon and solver.
    rows, columns : int
        Size of the training table, without the target.
    groups : dict
        For each group the number of rows on which harm is counted, such as {"men": 25000, "women": 20000}.
    margins : NormalMargins, MarginDensity or MarginSample
        What is assumed of how near people are to the decision boundary, and of base rates.
    notion : str
        "equalised odds", "equality of opportunity", "demographic parity", "accuracy parity" or "accuracy".
    failure : float
        Probability with which a bound may fail, for all groups together.
    mode : {"bound", "expected"}
        A bound with probability 1 - `failure`, or a bound on the mean. Solvers without a proved law have the latter.
    row_norm : float, optional
        Largest norm of a scaled row, with the 1 of the intercept; by default sqrt(columns + 1).
    evaluation_epsilon : float, optional
        Also tell the noise of a private evaluation with this budget.

    Returns
    -------
    Harm
        Change per group and aggregate, the law and the assumptions; printable.

    Examples
    --------
    >>> from discreet import LogisticRegression
    >>> from discreet.fairness import NormalMargins, harm_of
    >>> model = LogisticRegression(epsilon=1.0, solver="newton")
    >>> harm = harm_of(model, 45_000, 10, {"a": 36_000, "b": 9_000}, margins=NormalMargins(), mode="expected")
    >>> harm.worst.group, harm.proved, harm.worst.change < 0.01
    ('b', False, True)
    """
    question = HarmQuestion(columns, groups, margins, notion, failure, mode, row_norm, evaluation_epsilon)
    return question.at(estimator, rows)
