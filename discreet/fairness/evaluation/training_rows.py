"""The rows that a model was trained on, passed a second time: what must agree with the fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.data.rows import Data
from discreet.data.validation import check_sparse_bounds, encode_labels, load_features


def training_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> Data:
    """The rows with their labels encoded; a ValueError where they cannot be those of the fit."""
    if model.guarantee_.unit == "person":
        raise ValueError("the model was trained for whole persons (groups=), and this knows rows alone.")
    if sample_weight is None and getattr(model, "weighted_", False):
        raise ValueError("the model was trained with sample_weight; pass the same weights.")
    data = load_features(X, sample_weight)
    labels = np.asarray(y).ravel()
    if data.columns != model.n_features_in_:
        raise ValueError(f"X has {data.columns} columns, but the model was trained on {model.n_features_in_}.")
    if labels.size != data.rows:
        raise ValueError(f"y has {labels.size} values but X has {data.rows} rows; pass one value per row.")
    if data.sparse:
        check_sparse_bounds(*model.ranges_)
    return replace(data, y=encode_labels(labels, model.classes_))


def check_same_mean(model: Any, rows: int) -> None:
    """Refuse another public number of rows than that of the fit: its objective would have another optimum."""
    plan, facts = getattr(model, "plan_", None), getattr(model, "_plan_facts", None)
    fitted = plan.public.rows if plan is not None else rows if facts is None else facts.rows
    if rows != fitted:
        raise ValueError(
            f"the objective of the model divides by {fitted} rows, this one by {rows}; pass the training rows, with "
            "the public_n of the fit under add_remove."
        )
