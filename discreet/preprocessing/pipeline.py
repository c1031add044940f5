"""What a whole pipeline promises: the events of all its steps, composed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from discreet._common.exceptions import PrivacyLeakWarning
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.relation import Relation


def pipeline_guarantee(pipeline: Any, delta: float | None = None, also: Sequence[Any] = ()) -> Guarantee:
    """Return the guarantee of everything that a fitted pipeline learned from its training rows.

    Nested pipelines, feature unions and column transformers are opened. A step that learned from the rows
    without a guarantee of its own (scikit-learn's StandardScaler, say) is named in `leaks`, with a
    PrivacyLeakWarning. Epsilons are not added: the events of all steps are composed and stated at one delta.

    Guarantee: holds for all private steps together, provided that each step transforms row by row and all
    steps were fitted on the same rows. Under zero_out a null row is one of weight 0, so weights must have reached
    all private steps or none.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted.
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
    steps = list(_leaves(pipeline, ""))
    promises = [step.guarantee_ for _, step in steps if hasattr(step, "guarantee_")]
    leaks = [f"the parameters of {_name(path, step)}" for path, step in steps if _learns_openly(step)]
    if not promises:
        raise ValueError("no step of the pipeline has a guarantee_: nothing in it is private.")
    _check_weights([*also, *(step for _, step in steps if hasattr(step, "guarantee_"))])
    if leaks:
        warnings.warn(f"{leaks[0]} were learned without privacy; use a private step.", PrivacyLeakWarning, stacklevel=2)
    return _together([*map(_promise, also), *promises], delta, leaks)


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


def _together(promises: list[Guarantee], delta: float | None, leaks: list[str]) -> Guarantee:
    """One guarantee for releases that were made in this order."""
    relations = {promise.relation for promise in promises}
    if len(relations) > 1:
        raise ValueError(f"the steps use different relations, {sorted(map(str, relations))}; they do not compose.")
    relation = relations.pop()
    event = accounting.compose([promise.event for promise in promises])
    delta = max(promise.delta for promise in promises) if delta is None else delta
    epsilon = accounting.epsilon_of(event, delta, relation)
    declared = [leak for promise in promises for leak in promise.leaks]
    return Guarantee(epsilon, delta, relation, event, tuple(dict.fromkeys([*declared, *leaks])))


def _leaves(step: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every estimator that does the work, in the order fitted, with the path of names that leads to it."""
    parts: Any = None
    for attribute in ("steps", "transformers_", "transformer_list"):
        parts = parts or getattr(step, attribute, None)
    if parts is None:
        yield path, step
        return
    for name, part, *_ in parts:
        if part is not None and not isinstance(part, str):
            yield from _leaves(part, f"{path}.{name}" if path else str(name))


def _learns_openly(step: Any) -> bool:
    return not hasattr(step, "guarantee_") and get_tags(step).requires_fit


def _name(path: str, step: Any) -> str:
    return f"step {path!r} ({type(step).__name__})" if path else type(step).__name__
