"""Notices what of scikit-learn calls a fit: pipelines, searches, cross-validation, ensembles, one model for each class.

The fit sees rows that such a caller has changed, chosen or scored without noise, and cannot tell this from its
parameters. So the frames of the callers are looked at: which class or function of scikit-learn runs, and the settings
of steps that came first, never a row. Steps that treat every row on its own or are private are fine, as for
`pipeline_guarantee`; whatever is not known to be fine is named. What runs in another process is seen as far as
scikit-learn's own functions show there; what another package does is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from scipy.sparse import issparse

from discreet._common.callers import callers, module_of, warn
from discreet._common.exceptions import PrivacyLeakWarning


class Noticed(NamedTuple):
    """What to warn of, and what the statement names."""

    warning: str
    leaks: tuple[str, ...]


QUIET = ("sklearn.base", "sklearn.utils")  # wrap every call, and read nothing
HAND_ON = {"_fit_transform_one", "_fit_one"}  # functions that hand rows on as they are
HARMLESS = {"ColumnTransformer", "FeatureUnion", "FixedThresholdClassifier"}  # their parts get rows as they are
# Of classes from other packages, those are noticed that extend one of these.
EXTENDED = {"BaseSearchCV", "Pipeline", "BaseEnsemble", "_BaseHeterogeneousEnsemble"}
SCORING = {"cross_val_score", "cross_validate", "learning_curve", "validation_curve", "permutation_test_score"}
COMPARING = "_fit_and_score"  # fits one of the models of a cross-validation, or of those that a search compares
UNKNOWN = "may have looked at the rows to choose what this fit gets, and may fit other models to them"


def leaks_of_callers() -> tuple[str, ...]:
    """What scikit-learn reads from the rows around the fit that calls this; warns if there is something.

    Empty for the models that a search only compares: it keeps the last fit alone, that of the winner.
    """
    noticed = _noticed()
    for each in noticed:
        warn(each.warning, PrivacyLeakWarning)
    return tuple(dict.fromkeys(leak for each in noticed for leak in each.leaks))


def _noticed() -> list[Noticed]:
    """What each caller reads, the nearest first."""
    noticed: list[Noticed] = []
    function, compares = "", False
    for frame, owner in _frames_of_scikit_learn():
        if owner is None:  # a function is named for what stands above it, or for itself if nothing does
            function = frame.f_code.co_name
            compares = compares or (function == COMPARING and frame.f_locals.get("parameters") is not None)
        elif _is_a(owner, {"BaseSearchCV"}) and compares:
            return []
        else:
            noticed += _of_estimator(owner, frame)
            function = ""
    return noticed if not function or (compares and function == COMPARING) else [*noticed, _of_function(function)]


def _frames_of_scikit_learn() -> Iterator[tuple[FrameType, Any]]:
    """Frames that run code of scikit-learn's estimators, each estimator once, or of its functions (then None)."""
    seen: set[int] = set()
    for frame in callers(3):
        own = module_of(frame).startswith("sklearn.") and not module_of(frame).startswith(QUIET)
        is_method = frame.f_code.co_varnames[:1] == ("self",)
        owner = frame.f_locals.get("self") if is_method else None
        if owner is None and own and frame.f_code.co_name not in HAND_ON:
            yield frame, None
        elif owner is not None and id(owner) not in seen and (own or _is_a(owner, EXTENDED)):
            seen.add(id(owner))
            yield frame, owner


def _is_a(owner: object, names: set[str]) -> bool:
    """Whether the class extends one of these of scikit-learn; by name, as scikit-learn is slow to import."""
    return any(base.__name__ in names and base.__module__.startswith("sklearn.") for base in type(owner).__mro__)


def _of_estimator(owner: Any, frame: FrameType) -> list[Noticed]:
    """What an estimator of scikit-learn reads that is now fitting one of its parts."""
    if _is_a(owner, {"BaseSearchCV"}):
        return [_of_search(owner, frame)]
    if _is_a(owner, {"Pipeline"}):
        return _of_pipeline(owner, frame)
    if _is_a(owner, HARMLESS):
        return []
    from discreet.data.pipeline_steps import known_reason, targets_are_row_by_row

    if targets_are_row_by_row(owner):
        return []
    name, reason = type(owner).__name__, known_reason(owner) or UNKNOWN
    what = reason.partition("; ")[0]
    alone = f"{name}, of which this fit is a part, {what}. This promise is about this fit alone."
    return [Noticed(f"{name} {reason}. The guarantee covers this fit alone.", (alone,))]


def _of_search(owner: Any, frame: FrameType) -> Noticed:
    """What a search read that is now refitting its winner."""
    name = type(owner).__name__
    return Noticed(
        f"{name} chose these settings by exact scores of the rows, and the guarantee covers neither the choice nor the "
        "other fits; use discreet.model_selection.PrivateSearchCV.",
        (
            f"the settings, which {name} chose by exact scores,",
            f"{name} also fitted {_other_fits(frame)} to these rows in order to choose. This promise is about the last "
            "fit alone: it counts neither the cost of the others nor what their scores tell. A ledger, if one was "
            "used, has booked the fits, and not the scores.",
        ),
    )


def _other_fits(search: FrameType) -> str:
    """How many models were compared, where this version of scikit-learn lets it be seen."""
    results = search.f_locals.get("results")
    if not isinstance(results, dict) or "params" not in results:
        return "other models"
    folds = {name.partition("_")[0] for name in results if name.startswith("split")}
    return f"{len(folds) * len(results['params'])} other models"


def _of_pipeline(owner: Any, frame: FrameType) -> list[Noticed]:
    """What the steps before the one that is now fitted learned from the rows."""
    from discreet.data.pipeline_steps import refusals_between

    last = len(owner.steps) - 1
    now = frame.f_locals.get("step_idx", last) if frame.f_code.co_name == "_fit" else last
    before = [(name, step) for name, step in owner.steps[:now] if step is not None and not isinstance(step, str)]
    found = refusals_between(before, dense=_has_dense_rows(owner, frame))
    return [Noticed(f"{refusal}.", (f"The rows came through a pipeline: {refusal.fact}.",)) for refusal in found]


def _has_dense_rows(owner: Any, frame: FrameType | None) -> bool:
    """Whether the rows that the pipeline was given are of a type that is not sparse."""
    while frame is not None and not (frame.f_code.co_name.startswith("fit") and frame.f_locals.get("self") is owner):
        frame = frame.f_back
    return frame is not None and "X" in frame.f_locals and not issparse(frame.f_locals["X"])


def _of_function(name: str) -> Noticed:
    """What a function of scikit-learn reads that fits models of its own."""
    if name in SCORING or name == COMPARING:
        who = "cross-validation by scikit-learn" if name == COMPARING else name
        return Noticed(
            f"{who} computes exact scores of held-out rows, which no guarantee covers, and every fit costs; use "
            "discreet.model_selection.cross_val_score_private.",
            (f"The model was scored: {who} computed exact scores of held-out rows, which nothing here covers.",),
        )
    alone = (
        f"The function {name} of scikit-learn, which called this fit, {UNKNOWN}. This promise is about this fit alone."
    )
    return Noticed(f"{name} of scikit-learn {UNKNOWN}; the guarantee covers this fit alone.", (alone,))
