"""Private evaluation: how good a model is on private rows, with confidence intervals, paid from a budget.

How to use it: docs/evaluation.md; proofs: docs/guarantees/evaluation.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "evaluate": "evaluation",
    "Evaluation": "record",
    "load_evaluation": "evaluation_file",
    "save_evaluation": "evaluation_file",
    "Limits": "intervals",
    "RocPoint": "curves",
    "CalibrationBin": "curves",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.metrics.curves import CalibrationBin as CalibrationBin
    from discreet.metrics.curves import RocPoint as RocPoint
    from discreet.metrics.evaluation import evaluate as evaluate
    from discreet.metrics.evaluation_file import load_evaluation as load_evaluation
    from discreet.metrics.evaluation_file import save_evaluation as save_evaluation
    from discreet.metrics.intervals import Limits as Limits
    from discreet.metrics.record import Evaluation as Evaluation
