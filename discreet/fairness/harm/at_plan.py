"""Choose epsilon by harm: how much unfairness can the noise of a planned model add? No row is read.

The law of the noise in the scores, before the scales of the columns are known (theorem 5), and the sums over rows that
may change (theorems 3 and 4). Theorems, proofs and assumptions: docs/guarantees/harm.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet._common.checks import number_in, one_of, whole
from discreet._common.types import FloatArray
from discreet.fairness.cells import CellTable, Quantity, quantities
from discreet.fairness.harm.margin_profiles import LABELS, BallCurve, FlipCurve, MarginProfile, NoiseCurve
from discreet.fairness.harm.result import GroupChange, Harm, Mode
from discreet.fairness.notions import notion_of
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.relation import Relation, relation_from
from discreet.problem.column_scaling import identity_scaling
from discreet.scaling.learn import declared_scaling
from discreet.solvers import Plan
from discreet.solvers.output_perturbation import OutputPerturbation
from discreet.theory.distance import DistanceLaw, GaussianDistance

FAR_MARGIN = 50.0  # beyond it the slopes of the losses of labels vanish
VAST = 1e150  # a scale so large that no user's penalty is left in a scaled column


@dataclass(frozen=True)
class ScoreNoise:
    """What is known of the noise in a score.

    Attributes
    ----------
    law : DistanceLaw
        How far the private weights are from the noise-free ones.
    row_norm : float
        The largest norm of a scaled row.
    proved : bool
        Whether a theorem covers the law; if not, it is predicted.
    row_norm_proved : bool
        Whether no row can be longer.
    """

    law: DistanceLaw
    row_norm: float
    proved: bool
    row_norm_proved: bool

    @property
    def per_distance(self) -> float:
        """How far a score moves per unit of distance, at most."""
        return self.row_norm / math.sqrt(float(self.law.weights.min()))

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the noise in a score; None where the law is not Gaussian."""
        return self.per_distance * self.law.deviation if isinstance(self.law, GaussianDistance) else None


def plan_of(estimator: Any, rows: int, columns: int, epsilon: float | None = None) -> Plan:
    """The plan of an estimator that stays as it is."""
    from sklearn.base import clone

    if not callable(getattr(estimator, "plan", None)) or isinstance(estimator, type):
        raise ValueError(
            f"harm is planned for a classifier of discreet, such as LogisticRegression(); got {estimator!r}."
        )
    model = clone(estimator)
    if epsilon is not None:
        model.set_params(epsilon=_with_own_delta(model.epsilon, epsilon))
    if relation_from(model.relation) is Relation.ADD_REMOVE:
        model.set_params(public_n=rows)
    plan: Plan = model.plan(rows, columns)
    if not plan.problem.loss.classification:
        raise ValueError(f"{type(model).__name__} predicts numbers; harm to groups is planned for classifiers.")
    if model.classes is not None and len(model.classes) > 2:
        raise ValueError("harm is planned for two classes; make one of several classes the favourable one.")
    if not plan.is_noisy:
        raise ValueError("epsilon is infinite: there is no noise that could do harm.")
    return plan


def _with_own_delta(own: Any, epsilon: float) -> Any:
    """Another epsilon, with the delta that an estimator's budget was given."""
    if not isinstance(own, Budget):
        return epsilon
    if own.delta is None:
        raise ValueError(f"an epsilon is looked for, but the budget is in other units, {own}; give epsilon and delta.")
    return replace(own, epsilon=epsilon)


def planned_law(plan: Plan) -> DistanceLaw:
    """The law of the distance for every scaling that the run may release; a ValueError where no theorem gives one."""
    if plan.scaling_plan.method in ("declared", "none"):
        return plan.distance_law(declared_scaling(plan.scaling_plan, plan.public))
    if not isinstance(plan.solver, OutputPerturbation):
        raise ValueError(
            f"no theorem bounds the noise of {plan.solver.name} before the scales of the columns are known."
        )
    columns = plan.public.columns
    worst = replace(identity_scaling(columns), scale=np.full(columns, VAST))
    return plan.distance_law(worst)


def score_noise(plan: Plan, row_norm: float | None, predicted: bool) -> ScoreNoise:
    """The noise in the scores of a plan; where no theorem covers it and `predicted` allows it, the planned one."""
    parameters = plan.public.columns + plan.problem.fit_intercept
    # Declared scales map every column into [-1, 1].
    known = row_norm is None and plan.scaling_plan.method == "declared"
    norm = math.sqrt(parameters) if row_norm is None else row_norm
    try:
        return ScoreNoise(planned_law(plan), norm, True, known)
    except ValueError as missing:
        if not predicted:
            raise ValueError(
                f"{str(missing).rstrip('.')}; use solver='output-perturbation', or mode='expected', which takes the "
                "noise that the plan predicts where nothing is proved."
            ) from None
        if plan.standard_error is None:
            raise ValueError(
                f"the noise of {plan.solver.name} is neither proved nor predicted for this plan."
            ) from None
    reference = "the noise-free model, with the noise that the plan predicts"
    law = GaussianDistance(np.ones(parameters), 1, reference, deviation=plan.standard_error)
    return ScoreNoise(law, norm, False, known)


def largest_score(plan: Plan, noise: ScoreNoise) -> float:
    """What no noise-free score exceeds, since its model has a ridge: docs/guarantees/harm.md, Theorem 7."""
    if not (isinstance(plan.solver, OutputPerturbation) and noise.proved and plan.problem.constraint is None):
        return math.inf
    margins = np.linspace(0.0, FAR_MARGIN, 10_001)
    slope, labels = plan.problem.loss.slope, (-1.0, 1.0)
    each = [-label * margins * slope(label * margins, np.full_like(margins, label)) for label in labels]
    most = float(np.max(each))
    return noise.per_distance * math.sqrt(most)


def has_proved_law(estimator: Any, rows: int, columns: int) -> bool:
    """Whether a theorem gives the noise of an estimator's plan before its scales are known."""
    try:
        planned_law(plan_of(estimator, rows, columns))
    except ValueError:
        return False
    return True


FAILURES = 10.0 ** -np.arange(0.5, 12.0, 0.5)  # tried for the mean, where only quantiles of the noise are known


class HarmSums:
    """The sums of theorems 3 and 4 for one law of the noise."""

    def __init__(self, question: HarmQuestion, noise: ScoreNoise) -> None:
        self.question, self.noise = question, noise
        self._known: dict[FlipCurve, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def of(self, statement: Quantity, plan: Plan) -> GroupChange:
        """How much one statement can change, and how much of that can be seen."""
        question = self.question

        def down(curve: FlipCurve) -> float:
            return 0.0 - statement.change_within(*self.sides(curve)[:2])[0]

        def up(curve: FlipCurve) -> float:
            return statement.change_within(*self.sides(curve)[:2])[1]

        def either(curve: FlipCurve) -> float:
            return statement.absolute_change(self.sides(curve)[2])

        if question.mode == "expected":
            most = float(np.abs(statement.weights).sum())
            low, high, change = (self.mean(part, most) for part in (down, up, either))
        else:
            failure = question.failure / len(question.statements)
            low, high = (self.bound(part, 0.5 * failure) for part in (down, up))
            change = min(max(low, high), self.bound(either, failure))
        label = statement.label if statement.within_label else None
        changed = self.changed(statement.group, label)
        seen = self.seen(statement, plan)
        return GroupChange(statement.group, label, statement.rows, change, -low, high, changed, *seen)

    def aggregate(self, groups: list[float]) -> float:
        """How much the mean over groups of the absolute values can change, given the changes of the groups."""
        weights = np.mean([np.abs(statement.weights) for statement in self.question.statements], axis=0)

        def sum_of(curve: FlipCurve) -> float:
            return float((weights * self.sides(curve)[2]).sum())

        if self.question.mode == "expected":
            return self.mean(sum_of, float(weights.sum()))
        return min(self.bound(sum_of, self.question.failure), float(np.mean(groups)))

    def sides(self, curve: FlipCurve) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss, gain and both together, per label and group."""
        if curve not in self._known:
            margins, groups = self.question.margins, self.question.groups
            found = [[margins.sides(label, group, curve) for group in groups] for label in LABELS]
            loss, gain, total = np.moveaxis(np.array(found), -1, 0).copy()
            self._known[curve] = loss, gain, total
        return self._known[curve]

    def bound(self, sum_of: Callable[[FlipCurve], float], failure: float) -> float:
        """What a weighted sum over the rows that change exceeds with probability at most `failure`."""
        reach = self.noise.per_distance * self.noise.law.radius(failure)
        curves: list[FlipCurve] = [BallCurve(reach)]
        if self.noise.deviation:
            curves.append(self._gaussian(failure))
        return min(map(sum_of, curves))

    def mean(self, sum_of: Callable[[FlipCurve], float], most: float) -> float:
        """A bound on the mean of a weighted sum over the rows that change, whose weights add up to `most`."""
        if self.noise.deviation:
            return sum_of(self._gaussian(None))
        return min(self.bound(sum_of, failure) + failure * most for failure in FAILURES.tolist())

    def _gaussian(self, failure: float | None) -> NoiseCurve:
        assert self.noise.deviation is not None
        return NoiseCurve(
            self.noise.deviation, self.noise.per_distance * getattr(self.noise.law, "error", 0.0), failure
        )

    def changed(self, group: str | None, label: int | None) -> float:
        """The expected part of the predictions for a group, or a label of it, that the noise changes."""
        own = np.zeros_like(self.question.cells)
        places = slice(None) if group is None else list(self.question.groups).index(group)
        labels = slice(None) if label is None else label
        own[labels, places] = self.question.cells[labels, places]
        own /= own.sum()
        return self.mean(lambda curve: float((own * self.sides(curve)[2]).sum()), 1.0)

    def seen(self, statement: Quantity, plan: Plan) -> tuple[float, float | None]:
        """The smallest differences that stand out from sampling, and from the noise of a private evaluation."""
        from scipy.special import ndtri

        question = self.question
        known = [[question.margins.accuracy(label, group) for group in question.groups] for label in LABELS]
        right = np.array([[0.5 if part is None else part for part in row] for row in known])
        quantile = -float(ndtri(0.5 * question.failure))
        squares = statement.weights**2 / question.cells
        visible = quantile * math.sqrt(float((squares * right * (1.0 - right)).sum()))
        if question.evaluation_epsilon is None:
            return visible, None
        counted = int(sum(question.groups.values()))
        budget = budget_from(question.evaluation_epsilon, None, counted)
        counts = mechanisms.one_hot_counts(plan.public.relation, 1)
        sigma = mechanisms.additive(budget, 1.0).deviation(counts)
        shares = 2.0 * sigma**2 * (right**2 + (1.0 - right) ** 2) / question.cells
        return visible, quantile * math.sqrt(float((squares * shares).sum()))


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
        asked: dict[str, Any] = {"notion": self.notion, "mode": self.mode, "failure": self.failure}
        asked |= {"rows": rows, "columns": self.columns, "solver": plan.solver.name}
        asked |= {"epsilon": float(promised.epsilon or 0.0), "delta": float(promised.delta or 0.0)}
        law: dict[str, Any] = {"noise": noise.deviation, "proved": noise.proved, "reference": noise.law.reference}
        aggregate = changes.aggregate([group.change for group in groups])
        told = tuple(_assumptions(self, plan, noise))
        return Harm(**asked, **law, groups=groups, aggregate=aggregate, assumptions=told)

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
