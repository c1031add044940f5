"""Evaluation of a model on rows that lie on workers or in files: sums over blocks of them are enough."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from discreet._common.types import FloatArray
from discreet.data.loading import table_elsewhere
from discreet.estimators.base import PrivateLinearModel
from discreet.metrics.label_codes import codes_of

if TYPE_CHECKING:
    from discreet.data.rows import Data, Rows

# Of a fitted model: what predictions do not need, and what must not travel.
NOT_NEEDED = ("solution_", "plan_", "stream_", "_guarantee", "_plan_facts", "feature_names_in_")
PARAMETERS = ("ledger", "dataset", "random_state", "public_table", "start")


def rows_elsewhere(model: Any, X: Any, y: Any, sample_weight: Any) -> Rows | None:
    """The checked rows of a Dask or stored table, with numbers for the model's classes; None if X is in memory.

    A label that is none of them gets the next number, as in memory.
    """
    inner = getattr(model, "best_estimator_", model)
    classes = getattr(inner, "classes_", None)
    table = table_elsewhere(X, y, classes=classes)
    if table is None:
        return None
    if sample_weight is not None:
        raise ValueError("sample_weight is for tables in memory; a table that is read block by block has none.")
    if not isinstance(inner, PrivateLinearModel):
        kind = type(inner).__name__
        raise ValueError(f"a table that is read block by block is evaluated for linear models alone, not {kind}.")
    if table.schema.target.name is None:
        raise ValueError("y is missing: pass the name of the target's column, or a Dask series cut like X.")
    names = getattr(inner, "feature_names_in_", None)
    if len(table.names) != inner.n_features_in_ or (table.named and names is not None and table.names != [*names]):
        raise ValueError("the columns of the table are not those that the model was trained on, in that order.")
    return table.encoded(np.asarray if classes is None else partial(_codes, classes=tuple(classes.tolist())))


def totals(measure: Any, rows: Rows) -> FloatArray:
    """The exact sums of all parts of a release. Not private."""
    lean = replace(measure, model=_lean(getattr(measure.model, "best_estimator_", measure.model)))
    return rows.sum(partial(_block_totals, measure=lean))


def _codes(labels: Any, classes: tuple[Any, ...]) -> FloatArray:
    return codes_of(labels, classes).astype(np.float64)


def _lean(model: PrivateLinearModel) -> PrivateLinearModel:
    """A copy with nothing but what predictions need: all of that is released."""
    lean = copy.copy(model)
    for name in NOT_NEEDED:
        lean.__dict__.pop(name, None)
    for name in PARAMETERS:
        setattr(lean, name, None)
    return lean


def _block_totals(block: Data, measure: Any) -> FloatArray:
    from discreet.metrics.released_sums import check_one_each, totals_of

    labels = block.y
    if is_classifier(measure.model):
        known = np.empty(len(measure.classes) + 1, dtype=object)
        known[:] = [*measure.classes, Unknown()]
        labels = known[block.y.astype(np.int64)]
    with np.errstate(all="ignore"):  # a warning could tell about single rows
        found = measure.contributions(block.X, labels)
    check_one_each(found, block.rows)
    return totals_of(measure.parts, found, block.weight)


class Unknown:
    """A label that no model knows."""
