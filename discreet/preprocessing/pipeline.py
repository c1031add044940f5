"""What a whole pipeline promises: the events of all its steps, composed, or a refusal that names what must change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from discreet.data.pipeline_steps import is_private, leaves, refusals
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee, record_of_parts
from discreet.privacy.relation import Relation


def check_pipeline(pipeline: Any) -> None:
    """Refuse a pipeline of which no statement could be made, before its budget is spent.

    Pipelines, feature unions and column transformers are opened. A part must be private, or be known to treat every
    row on its own: `Binarizer`, `Normalizer`, `PolynomialFeatures`, encoders with declared categories,
    `FunctionTransformer` with a NumPy ufunc, `SimpleImputer` with a constant, `RBFSampler` with a number as gamma,
    `DeclaredOneHotEncoder`, `DeclaredImputer`, `discreet.fairness.FairFeatures`.
    Anything else is refused, searches and ensembles of scikit-learn included.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted or not.

    Raises
    ------
    ValueError
        Names every step that does not fit, why, and what to use instead.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discreet import LogisticRegression
    >>> from discreet.preprocessing import check_pipeline
    >>> check_pipeline(make_pipeline(StandardScaler(), LogisticRegression()))
    Traceback (most recent call last):
        ...
    ValueError: no statement can be made: step 'standardscaler' (StandardScaler) learned from the rows without noise, \
so no guarantee holds behind it; use PrivateScaler.
    """
    found = [str(refusal) for refusal in refusals(pipeline)]
    if found:
        listed = found[0] if len(found) == 1 else " ".join(f"({k}) {what}." for k, what in enumerate(found, start=1))
        raise ValueError(f"no statement can be made: {listed.rstrip('.')}.")


def pipeline_guarantee(pipeline: Any, delta: float | None = None, also: Sequence[Any] = ()) -> Guarantee:
    """Return the guarantee of everything that a fitted pipeline learned from its training rows.

    Nested pipelines, feature unions and column transformers are opened. A step that learned from the rows
    without a guarantee of its own (scikit-learn's StandardScaler, say) is refused: it moves every row when one of them
    changes, so nothing holds for the steps behind it. Epsilons are not added: the events of all steps are composed and
    stated at one delta.

    Guarantee: holds for all private steps together, provided that all steps were fitted on the same rows. Under
    zero_out a null row is one of weight 0, so weights must have reached all private steps or none.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted; `check_pipeline` says before the fit whether a statement can be made.
    delta : float, optional
        The delta of the statement; None takes the largest of the parts' deltas.
    also : sequence of Released or of fitted private steps
        Releases from the same rows that came first: `private_smoothness` for a solver of the pipeline, say, or the
        `PrivateBounds` whose ranges were declared to it.

    Returns
    -------
    Guarantee
        Of all releases together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from discreet import LogisticRegression
    >>> from discreet.preprocessing import PrivateScaler, pipeline_guarantee
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> scaler = PrivateScaler(epsilon=0.5, bounds=(-1.0, 1.0), random_state=0)
    >>> model = LogisticRegression(epsilon=0.5, bounds=(-4.0, 4.0), classes=[0, 1], random_state=1)
    >>> pipeline = make_pipeline(scaler, model).fit(X, X[:, 0] > 0.0)
    >>> round(pipeline_guarantee(pipeline).epsilon, 2)  # less than the sum of the two
    0.72
    """
    check_is_fitted(pipeline)
    check_pipeline(pipeline)
    private = [step for _, step in leaves(pipeline) if is_private(step)]
    if not private:
        raise ValueError("no step of the pipeline has a guarantee_: nothing in it is private.")
    _check_weights([*also, *private])
    return compose_guarantees(_promises([*also, *private]), delta)


def _promises(parts: Sequence[Any]) -> list[Guarantee]:
    """The promise of each release, in order: what several parts carry, the very same object, was made together."""
    promises = [_promise(part) for part in parts]  # kept alive while they are told apart by their ids
    first = {id(promise): part for promise, part in zip(reversed(promises), reversed(parts), strict=True)}
    return [promise for promise, part in zip(promises, parts, strict=True) if first[id(promise)] is part]


def _promise(part: Any) -> Guarantee:
    """The guarantee of a fitted step or of a release."""
    promise: Guarantee = part.guarantee_ if hasattr(part, "guarantee_") else part.guarantee
    return promise


def _check_weights(private: list[Any]) -> None:
    """A row that is null for one step and counts for another has been replaced there, not taken out."""
    weighted = {getattr(step, "weighted_", False) for step in private}
    if len(weighted) > 1 and any(_promise(step).relation is Relation.ZERO_OUT for step in private):
        raise ValueError(
            "sample_weight reached some private steps and not others, so relation='zero_out' does not hold for all; "
            "request it for every step (set_fit_request), or for none."
        )


def compose_guarantees(promises: list[Guarantee], delta: float | None) -> Guarantee:
    """One guarantee for releases that were made in this order."""
    relations = {promise.relation for promise in promises}
    if len(relations) > 1:
        raise ValueError(f"the steps use different relations, {sorted(map(str, relations))}; they do not compose.")
    units = {promise.unit for promise in promises}
    if len(units) > 1:
        raise ValueError(
            "some steps promise for persons and others for rows, so that nothing holds for a person with several rows; "
            "private steps before a fit with groups know rows alone: declare bounds to the model instead."
        )
    relation = relations.pop()
    event = accounting.compose([promise.event for promise in promises])
    delta = max(promise.delta for promise in promises) if delta is None else delta
    epsilon = accounting.epsilon_of(event, delta, relation)
    leaks = dict.fromkeys(leak for promise in promises for leak in promise.leaks)
    release = record_of_parts([promise.release for promise in promises])
    inputs = dict.fromkeys(what for promise in promises for what in promise.public_inputs)
    return Guarantee(epsilon, delta, relation, event, tuple(leaks), release, tuple(inputs), units.pop())
