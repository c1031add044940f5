"""Private values as numbers of declared ones; whatever was not declared has a number as well, and is no error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import IntArray


def codes_of(values: Any, declared: Sequence[Any]) -> IntArray:
    """The place of each value among the declared ones; whatever is none of them gets their number.

    No value is an error, however strange: an error would tell that a row with it exists.
    """
    places = {value: place for place, value in enumerate(declared)}
    return np.array([_place(places, value, len(declared)) for value in _listed(values)], dtype=np.int64)


def _place(places: dict[Any, int], value: Any, other: int) -> int:
    try:
        return places.get(value, other)
    except Exception:  # not hashable, or not comparable
        return other


def _listed(values: Any) -> list[Any]:
    array = np.asarray(values) if hasattr(values, "__array__") else _objects(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"labels and sensitive values must be one value per row; got an array of shape {array.shape}.")
    return array.tolist()


def _objects(values: Any) -> npt.NDArray[Any]:
    """A list as it is: NumPy would turn numbers beside texts into texts."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    for place, value in enumerate(listed):
        array[place] = value
    return array
