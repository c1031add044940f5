"""A fairness certificate from one private release: noisy counts of labels, groups and states of the rows.

Ratios of such counts have confidence limits by Fieller's method with exact quantiles (Theorem 2). Bins are made of the
label, the group and the state of a row, with bins for what was not declared. Theorems and proofs:
docs/guarantees/private-evaluation.md, section 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet._common.checks import number_in
from discreet._common.docstrings import with_options
from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.data.rows import Data, on_term_grid
from discreet.data.validation import check_weights
from discreet.fairness.cells import CellTable, Quantity, favourable_labels, quantities
from discreet.fairness.certificates.certify import all_rows_reach
from discreet.fairness.certificates.classifier import LinearClassifier, linear_classifier, margins_of
from discreet.fairness.certificates.record import PrivateCertificate, PrivateStatement
from discreet.fairness.evaluation.gradient_distance import is_leaking
from discreet.fairness.notions import notion_of
from discreet.metrics.classification import codes_of
from discreet.metrics.released_sums import last_rejected
from discreet.preprocessing.base import facts_of
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.theory.distance import DistanceLaw

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts of disjoint bins with independent noise.

    Attributes
    ----------
    counts : array of shape (bins,)
        What was released.
    scale : float
        Standard deviation of normal noise, or scale of Laplace noise; 0: there is none.
    step : float
        Step of the grid that counts and noise were rounded to.
    law : {"normal", "laplace"}
        The law of the noise.
    """

    counts: FloatArray
    scale: float
    step: float
    law: Literal["normal", "laplace"]

    @classmethod
    def of(cls, counts: FloatArray, grid: NoisyGrid) -> NoisyCounts:
        """Counts that were released by a grid."""
        return cls(counts, grid.scale, grid.step, "laplace" if grid.law == "laplace" else "normal")

    def estimate(self, event: Mask, base: Mask) -> float:
        """The ratio of two noisy sums, moved into [0, 1]; NaN where the denominator is not positive."""
        whole = float(self.counts[base].sum())
        return float(np.clip(self.counts[event].sum() / whole, 0.0, 1.0)) if whole > 0.0 else math.nan

    def lower(self, event: Mask, base: Mask, failure: float) -> float:
        """What the ratio of the true sums over `event` and `base` is below with probability at most `failure`.

        `event` must be a part of `base`.
        """
        part, whole, noise = self._line(event, base, failure)
        return last_rejected(lambda u: part - u * whole > noise(u))

    def upper(self, event: Mask, base: Mask, failure: float) -> float:
        """What the ratio of the true sums over `event` and `base` exceeds with probability at most `failure`."""
        part, whole, noise = self._line(event, base, failure)
        return 1.0 - last_rejected(lambda u: part - (1.0 - u) * whole < -noise(1.0 - u))

    def _line(self, event: Mask, base: Mask, failure: float) -> tuple[float, float, Callable[[float], float]]:
        """Both noisy sums A and N, and the level that the noise of A - u N exceeds with probability `failure`."""
        inside, outside = int(event.sum()), int((base & ~event).sum())
        bins = max(inside + outside, 1)
        part, whole = float(self.counts[event].sum()), float(self.counts[base].sum())
        if self.law == "laplace":
            each = self.scale * math.log(max(bins / (2.0 * failure), 1.0)) + self.step
            return part, whole, lambda u: each * (inside * (1.0 - u) + outside * u)
        from scipy.special import ndtri

        unit = -float(ndtri(min(failure, 0.5))) * self.scale + self.step * math.sqrt(bins)
        return part, whole, lambda u: unit * math.sqrt(inside * (1.0 - u) ** 2 + outside * u**2)


# The states of a row: whether the model is right about it, and whether its noise-free twin may predict otherwise.
RIGHT, RIGHT_IN_DOUBT, WRONG_IN_DOUBT, WRONG = STATES = range(4)


@dataclass(frozen=True)
class Bins:
    """Which bins there are: labels x (groups and "other") x states, and one for labels that are not declared."""

    labels: int
    groups: int

    @property
    def size(self) -> int:
        return self.labels * (self.groups + 1) * len(STATES) + 1

    def of(self, labels: IntArray, groups: IntArray, states: IntArray) -> IntArray:
        """The bin of each row; the code of what is not declared is the number of what is."""
        place = (labels * (self.groups + 1) + groups) * len(STATES) + states
        return np.where(labels == self.labels, self.size - 1, place)

    def mask(self, labels: Sequence[int], groups: Sequence[int] | None, states: Sequence[int] = STATES) -> Mask:
        """The bins of these labels, groups (None: all, "other" included) and states."""
        chosen = np.zeros((self.labels, self.groups + 1, len(STATES)), dtype=bool)
        which = range(self.groups + 1) if groups is None else groups
        chosen[np.ix_(list(labels), list(which), list(states))] = True
        return np.append(chosen.ravel(), False)


def states_of(right: Mask, in_doubt: Mask) -> IntArray:
    """The state of each row."""
    return np.where(right, np.where(in_doubt, RIGHT_IN_DOUBT, RIGHT), np.where(in_doubt, WRONG_IN_DOUBT, WRONG))


def declared_groups(groups: Any) -> tuple[Any, ...]:
    """The declared groups: different values that can be told apart, at least one."""
    if isinstance(groups, str) or not np.iterable(groups):
        raise ValueError(f"groups must list the public values of the sensitive column, such as [0, 1]; got {groups!r}.")
    values = tuple(np.asarray(groups).tolist()) if hasattr(groups, "__array__") else tuple(groups)
    try:
        different = len(set(values)) == len(values) > 0 and not any(value != value for value in values)  # noqa: PLR0124
    except TypeError:
        different = False
    if not different:
        raise ValueError(f"groups must be different texts or numbers, at least one; got {groups!r}.")
    return values


@dataclass(frozen=True, eq=False)
class Question:
    """One number that a notion asks about: P(event | part) - P(event | whole), or P(event | whole) without a part.

    Attributes
    ----------
    notion : str
        Its name.
    label, group : object or None
        Which label and group it is about; None where it is about all of them.
    whole, part : masks of bins
        The rows compared with, and those of the group among them; part is None for accuracy.
    event, lost, gained : masks of bins
        Where the event holds, and where the noise-free twin may lose or gain it.
    """

    notion: str
    label: Any
    group: Any
    whole: Mask
    part: Mask | None
    event: Mask
    lost: Mask
    gained: Mask

    @property
    def sides(self) -> int:
        """How many one-sided limits its statement needs."""
        return 4 if self.part is None else 10


def questions_of(classes: Any, groups: tuple[Any, ...], notions: Any, favourable: Any) -> list[Question]:
    """Everything that the named notions ask; classes, groups and notions are public."""
    bins = Bins(len(classes), len(groups))
    names = np.empty(len(groups), dtype=object)
    names[:] = groups
    ones = np.ones((len(classes), len(groups)))
    wanted = quantities(CellTable(np.asarray(classes), names, ones, ones), notions, favourable)
    good = favourable_labels(classes, favourable)
    listed = np.asarray(classes).tolist()
    return [_question(bins, asked, listed, groups, good) for asked in wanted]


def _question(bins: Bins, asked: Quantity, classes: list[Any], groups: tuple[Any, ...], good: list[Any]) -> Question:
    known = notion_of(asked.notion)
    labels = [classes.index(asked.label)] if asked.within_label else range(len(classes))
    whole = bins.mask(labels, None)
    part = None if asked.group is None else bins.mask(labels, [groups.index(asked.group)])
    wrong = [i for i in labels if known.counts_wrong(classes[i], good)]
    right = [i for i in labels if i not in wrong]

    def where(for_right: list[int], for_wrong: list[int]) -> Mask:
        return bins.mask(right, None, for_right) | bins.mask(wrong, None, for_wrong)

    event = where([RIGHT, RIGHT_IN_DOUBT], [WRONG, WRONG_IN_DOUBT])
    lost, gained = where([RIGHT_IN_DOUBT], [WRONG_IN_DOUBT]), where([WRONG_IN_DOUBT], [RIGHT_IN_DOUBT])
    return Question(asked.notion, asked.label, asked.group, whole, part, event, lost, gained)


def statements_of(questions: list[Question], counts: NoisyCounts, failure: float) -> list[PrivateStatement]:
    """The statements, which hold together with probability 1 - failure over the noise of the counts."""
    each = failure / max(sum(question.sides for question in questions), 1)
    return [_answer(question, counts, each) for question in questions]


def _answer(asked: Question, counts: NoisyCounts, failure: float) -> PrivateStatement:
    own = asked.whole if asked.part is None else asked.part
    rows = float(counts.counts[own].sum())
    low, high = (side(asked.event & own, own, failure) for side in (counts.lower, counts.upper))
    value = counts.estimate(asked.event & own, own)
    lost, gained = (counts.upper(mask & own, own, failure) for mask in (asked.lost, asked.gained))
    about = (asked.notion, asked.label, asked.group, rows)
    if (low <= 0.0 and high >= 1.0) or math.isnan(value):
        least = 0.0 if asked.part is None else -1.0
        return PrivateStatement(*about, math.nan, least - 1.0, 1.0 - least, value_low=least)
    if asked.part is None:
        return PrivateStatement(*about, value, -lost, gained, value_low=low, value_high=high)
    rest = asked.whole & ~asked.part
    least, most = (1.0 - side(asked.part, asked.whole, failure) for side in (counts.upper, counts.lower))
    other_low, other_high = (side(asked.event & rest, rest, failure) for side in (counts.lower, counts.upper))
    other_lost, other_gained = (counts.upper(mask & rest, rest, failure) for mask in (asked.lost, asked.gained))
    value -= counts.estimate(asked.event & asked.whole, asked.whole)
    ends = (_least(least, most, low - other_high), -_least(least, most, other_low - high))
    change = (-most * (lost + other_gained), most * (gained + other_lost))
    return PrivateStatement(*about, float(np.clip(value, *ends)), *change, value_low=ends[0], value_high=ends[1])


def _least(least: float, most: float, difference: float) -> float:
    """The least product of a share between two limits and of a difference that is at least the given one."""
    return min(least * difference, most * difference)


def plan_counts(public: Public, budget: Budget, bins: Bins, radius: float) -> ReleasePlan:
    """One release of the counts of all bins."""
    noise, settings = mechanisms.additive(budget, WHOLE), {"bins": bins, "radius": radius}
    return ReleasePlan("certificate", public, budget, {"mechanism": noise}, settings)


def learn_counts(plan: ReleasePlan, rows: EvaluationRows, rng: RandomGenerator) -> NoisyCounts:
    """The counts with noise.

    Guarantee: costs exactly the event of the plan.
    """
    grid = plan.mechanism.grid(mechanisms.one_hot_counts(plan.public.relation, 1), plan.bins.size)
    return NoisyCounts.of(grid.release(rng, rows.counts(plan.bins, plan.radius)), grid)


@dataclass(frozen=True, eq=False)
class EvaluationRows:
    """The rows of an evaluation, with the public things that their bins depend on."""

    classifier: LinearClassifier
    law: DistanceLaw
    table: Any
    y: Any
    sensitive: Any
    groups: tuple[Any, ...]
    weight: FloatArray | None

    def counts(self, bins: Bins, radius: float) -> FloatArray:
        """The sum of weights in each bin: every row adds its weight to one bin. Not private."""
        labels = codes_of(self.y, np.asarray(self.classifier.classes).tolist())
        groups = codes_of(self.sensitive, self.groups)
        known = np.minimum(labels, bins.labels - 1)  # rows of other labels get any margin: their bin ignores it
        margins = margins_of(self.classifier, self.law, self.table, known)
        places = bins.of(labels, groups, states_of(margins.correct, margins.needed <= radius))
        weight = None if self.weight is None else on_term_grid(self.weight)
        return np.bincount(places, weights=weight, minlength=bins.size).astype(np.float64)


@with_options
def private_certificate(
    model: Any,
    X: Any,
    y: Any,
    sensitive: Any,
    epsilon: Any = 1.0,
    delta: float | None = None,
    *,
    groups: Sequence[Any],
    notions: Sequence[str] | str | None = None,
    favourable: Any = None,
    distance: DistanceLaw | None = None,
    failure: float = 0.01,
    relation: Any = "replace",
    public_n: int | None = None,
    sample_weight: Any = None,
    ledger: Any = None,
    dataset: str | None = None,
    random_state: Any = None,
) -> PrivateCertificate:
    """Return a fairness certificate whose reading of the rows is itself private, and paid for.

    One release of noisy counts by label, group and state: whether the model is right about a row, and whether its
    noise-free twin may predict otherwise. All intervals include the noise of the counts; where it drowns a group, the
    statement says so.

    Guarantee: the result is differentially private as its `guarantee` states.

    Parameters
    ----------
    model : fitted classifier
        A linear classifier of discreet, or one from a model file. It counts as public.
    X : array, sparse matrix or table of shape (n_samples, n_features)
        The private rows to evaluate on.
    y : array of shape (n_samples,)
        Their labels; what is none of the model's classes is counted apart and enters no statement.
    sensitive : array of shape (n_samples,)
        Their sensitive values; what is none of the declared groups is counted as "other".
    epsilon : float or Budget, default=1.0
        Privacy budget of this release.
    groups : sequence
        The public list of sensitive values, such as [0, 1].
    notions : list of str, optional
        Names of `discreet.fairness.notions.NOTIONS`; None takes all that the classes allow. Fewer are a little tighter.
    favourable : label or list of labels, optional
        The favourable outcome, for equality of opportunity and demographic parity; None is the larger of two classes.
    distance : DistanceLaw, optional
        How far the model can be from its twin, from public facts; None takes the law of the model's own solver.
    failure : float, default=0.01
        Probability with which some statement may be wrong, over the noise of the training and of this release.

    Returns
    -------
    PrivateCertificate
        `statements`, `aggregate` and `guarantee`; `print` shows a table.

    Raises
    ------
    ValueError
        There is no law for the model, or the law was read from private rows without noise.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.fairness import gradient_distance, private_certificate
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.uniform(-1.0, 1.0, (20_000, 2)), rng.integers(0, 2, 20_000)
    >>> y = (X[:, 0] + 0.2 * sex > 0.0).astype(int)
    >>> settings = {"fit_intercept": False, "bounds": (-1.0, 1.0), "classes": [0, 1], "alpha": 0.1}
    >>> model = LogisticRegression(random_state=0, **settings).fit(X, y)  # seeds, so that this example repeats
    >>> law = gradient_distance(model, X, y, epsilon=1.0, random_state=0)
    >>> found = private_certificate(model, X, y, sex, 1.0, groups=[0, 1], distance=law, random_state=0)
    >>> accuracy = found.of("accuracy")[0]
    >>> bool(accuracy.value_low > 0.9), found.guarantee.epsilon
    (True, 1.0)
    """
    failure = number_in("failure", failure, 0.0, 1.0, above=True)
    classifier, declared = linear_classifier(model), declared_groups(groups)
    law = _public_law(classifier, distance)
    questions = questions_of(classifier.classes, declared, notions, favourable)
    table = classifier.features(X)
    weight = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
    _check_lengths(table.shape[0], y, sensitive)
    rows = EvaluationRows(classifier, law, table, y, sensitive, declared, weight)
    promised = {"epsilon": epsilon, "delta": delta, "relation": relation, "public_n": public_n}
    public, budget = facts_of(Data(table, np.zeros(table.shape[0]), weight), None, **promised)
    radius = _radius(classifier, law, 0.5 * failure, public)
    plan = plan_counts(public, budget, Bins(len(classifier.classes), len(declared)), radius)
    depends_on = declared, classifier.weights, law.weights
    with plan.booked("private_certificate", ledger, dataset, random_state, *depends_on) as booking:
        counts = learn_counts(plan, rows, booking.rng)
    statements = statements_of(questions, counts, 0.5 * failure)
    about = failure, law.reference, radius, public.rows
    return PrivateCertificate.of_statements(statements, *about, booking.guarantee)


def _public_law(classifier: LinearClassifier, distance: DistanceLaw | None) -> DistanceLaw:
    law = classifier.law if distance is None else distance
    if is_leaking(law):
        raise ValueError(
            "this distance was read from rows without noise, so a private evaluation may not use it; pay for it with "
            "gradient_distance(..., epsilon=...)."
        )
    if law is None:
        raise ValueError(f"the model has no distance law: {classifier.why_no_law}; pass distance=.")
    if not isinstance(law, DistanceLaw):
        raise ValueError(f"distance must be a law of discreet.theory.distance; got {law!r}.")
    return law


def _radius(classifier: LinearClassifier, law: DistanceLaw, failure: float, public: Public) -> float:
    """How far the twin can be, for all rows at once; the number of rows helps where it is public."""
    if public.relation is Relation.ADD_REMOVE:
        return law.radius(failure)
    return all_rows_reach(law, failure, public.rows, max(len(classifier.classes) - 1, 1))


def _check_lengths(rows: int, y: Any, sensitive: Any) -> None:
    for name, values in (("y", y), ("sensitive", sensitive)):
        if len(values) != rows:
            raise ValueError(f"{name} has {len(values)} values but X has {rows} rows; pass one value per row.")
