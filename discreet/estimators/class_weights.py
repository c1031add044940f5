"""The parameter `class_weight` of the classifiers: public weights, the largest of which becomes 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def class_weights(given: Any, labels: list[Any] | None, classes: int) -> tuple[float, ...]:
    """The weights in the order of the labels, divided by the largest; classes that are not named weigh 1 before that.

    Parameters
    ----------
    given : dict
        Public weights by label.
    labels : list or None
        The labels in order; None if a plan is asked for before they are known: those of the dict then.
    classes : int
        Their number.
    """
    checked = _checked(given)
    if labels is None:
        labels = sorted(checked)
        if len(labels) != classes:
            raise ValueError("class_weight needs classes=[...] here: which weight belongs to which class is not known.")
    unknown = [label for label in checked if label not in labels]
    if unknown:
        raise ValueError(f"class_weight has a weight for {unknown[0]!r}, which is not in classes={labels}.")
    largest = largest_weight(given)
    weights = tuple(checked.get(label, 1.0) / largest for label in labels)
    if not max(weights) > 0.0:
        raise ValueError("class_weight must leave a class with a weight above 0.")
    return weights


def largest_weight(given: Any) -> float:
    """What the weights are divided by: the largest, 1 if it is smaller, since a class that is not named weighs 1."""
    return max(1.0, *_checked(given).values())


def _checked(given: Any) -> dict[Any, float]:
    if isinstance(given, str):
        raise ValueError(
            f"class_weight={given!r} would read the shares of the labels from the rows; pass public weights by label, "
            "such as class_weight={0: 1, 1: 10}."
        )
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"class_weight must be a dict of weights by label, such as {{0: 1, 1: 10}}; got {given!r}.")
    for label, weight in given.items():
        number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not number or not 0.0 <= weight < math.inf:
            raise ValueError(f"class_weight of {label!r} must be a finite number, at least 0; got {weight!r}.")
    return {_plain(label): float(weight) for label, weight in given.items()}


def _plain(label: Any) -> Any:
    """A label as a Python value, as the classes are compared."""
    return label.item() if hasattr(label, "item") else label
