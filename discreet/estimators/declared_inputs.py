"""The public inputs of an estimator: checked, and with labels as the losses expect them."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.data.public_inputs import PublicModel, PublicTable, check_names
from discreet.data.validation import declared_classes


def public_inputs_of(model: Any) -> dict[str, Any]:
    """What the parameters `start` and `public_table` say, as arguments of `Public.of`."""
    start, table = model.start, model.public_table
    if start is not None and not isinstance(start, PublicModel):
        raise ValueError(
            f"start must be a PublicModel, such as PublicModel.of(fitted_model); got {type(start).__name__}."
        )
    if table is not None and not isinstance(table, PublicTable):
        raise ValueError(f"public_table must be a PublicTable(X, y); got {type(table).__name__}.")
    if model._regression:
        if start is not None and start.classes is not None:
            raise ValueError("start is a classifier, but this estimator is a regressor.")
        if table is not None and table.y is not None and table.y.dtype.kind not in "fiu":
            raise ValueError("the target of the public table must be numbers.")
        return {"start": start, "table": table}
    classes = _classes(model, table)
    own = None if start is None else start.classes
    if own is not None and classes is not None and not np.array_equal(np.asarray(own), np.asarray(classes)):
        raise ValueError(
            f"start was fitted for classes {list(own)}, but this model has {np.asarray(classes).tolist()}."
        )
    return {"start": start, "table": table if table is None else table.coded(classes)}


def check_input_names(model: Any) -> None:
    """Refuse public inputs for columns of other names than those that `fit` has seen."""
    names = getattr(model, "feature_names_in_", None)
    for what in ("start", "public_table"):
        given = getattr(model, what)
        if given is not None:
            check_names(what, getattr(given, "feature_names", None), names)


def _classes(model: Any, table: PublicTable | None) -> Any:
    """The labels: as declared, as seen in `fit`, or those of the public table, where a plan is asked for before."""
    if model.classes is not None:
        return declared_classes(model.classes)
    seen = getattr(model, "classes_", None)
    if seen is not None or table is None or table.y is None:
        return seen
    return np.unique(table.y)
