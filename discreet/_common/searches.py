"""Notices that scikit-learn's grid search is refitting its winner.

The winner was chosen by exact scores of private rows. The fitted model cannot tell this from its parameters, so the
callers are looked at, while the search is still running. A search that lives in another process or in another package
is not seen: the documentation says that no choice made by looking at the rows is covered.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from discreet._common.exceptions import PrivacyLeakWarning


def leaks_of_search() -> tuple[str, ...]:
    """What a search of scikit-learn read from the rows to choose the settings of the fit that calls this.

    Warns if there is something. Empty outside a search, and for the models that a search only compares: it keeps the
    last fit alone, that of the winner.
    """
    search = _refitting_search()
    if search is None:
        return ()
    name = type(search.f_locals["self"]).__name__
    warnings.warn(
        f"{name} chose these settings by exact scores of the rows, and the guarantee covers neither the choice nor the "
        "other fits; use discreet.model_selection.PrivateSearchCV.",
        PrivacyLeakWarning,
        stacklevel=3,
    )
    return (
        f"the settings, which {name} chose by exact scores,",
        f"{name} also fitted {_other_fits(search)} to these rows in order to choose. This promise is about the last "
        "fit alone: it counts neither the cost of the others nor what their scores tell. A ledger, if one was used, "
        "has booked the fits, and not the scores.",
    )


def _refitting_search() -> FrameType | None:
    """The call of `fit` of the search that is now fitting its winner, if there is one among the callers."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        function = frame.f_code.co_name
        if function == "_fit_and_score":  # one of the models that are compared
            return None
        if function == "fit" and _is_search(frame.f_locals.get("self")):
            return frame
        frame = frame.f_back
    return None


def _other_fits(search: FrameType) -> str:
    """How many models were compared, where this version of scikit-learn lets it be seen."""
    results = search.f_locals.get("results")
    if not isinstance(results, dict) or "params" not in results:
        return "other models"
    folds = {name.partition("_")[0] for name in results if name.startswith("split")}
    return f"{len(folds) * len(results['params'])} other models"


def _is_search(caller: object) -> bool:
    """By name, as scikit-learn is slow to import."""
    return any(base.__name__ == "BaseSearchCV" for base in type(caller).__mro__)
