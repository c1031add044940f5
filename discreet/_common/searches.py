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
    name = _refitting_search()
    if name is None:
        return ()
    warnings.warn(
        f"{name} chose these settings by exact scores of the rows, and the guarantee does not cover the choice; "
        "use discreet.model_selection.PrivateGridSearch.",
        PrivacyLeakWarning,
        stacklevel=3,
    )
    return (f"the settings, which {name} chose by exact scores,",)


def _refitting_search() -> str | None:
    """The class of the search that is now fitting its winner, if one is among the callers."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        function = frame.f_code.co_name
        if function == "_fit_and_score":  # one of the models that are compared
            return None
        if function == "fit" and _is_search(frame.f_locals.get("self")):
            return type(frame.f_locals["self"]).__name__
        frame = frame.f_back
    return None


def _is_search(caller: object) -> bool:
    """By name, as scikit-learn is slow to import."""
    return any(base.__name__ == "BaseSearchCV" for base in type(caller).__mro__)
