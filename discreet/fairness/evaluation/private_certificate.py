"""A fairness certificate from one private release: noisy counts of labels, groups and states of the rows.

Theorems and proofs: docs/guarantees/private-evaluation.md, section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.checks import number_in
from discreet._common.docstrings import with_options
from discreet._common.types import FloatArray
from discreet.data.rows import Data, on_term_grid
from discreet.data.validation import check_weights
from discreet.fairness.certificates.change import all_rows_reach
from discreet.fairness.certificates.classifier import LinearClassifier, linear_classifier
from discreet.fairness.certificates.margins import margins_of
from discreet.fairness.evaluation.gradient_laws import is_leaking
from discreet.fairness.evaluation.noisy_ratios import NoisyCounts
from discreet.fairness.evaluation.record import PrivateCertificate
from discreet.fairness.evaluation.statements import Bins, declared_groups, questions_of, statements_of, states_of
from discreet.metrics.classification import codes_of
from discreet.preprocessing.base import facts_of
from discreet.privacy import mechanisms
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.theory.distance import DistanceLaw

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator


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
