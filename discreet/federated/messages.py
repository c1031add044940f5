"""What server and clients send each other in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.codec import Count, UsualArray
from discreet._common.types import FloatArray


@dataclass(frozen=True, eq=False)
class Request:
    """What the server asks a client.

    Attributes
    ----------
    round : int
        The number of the round, from 1.
    weights : array of shape (p,)
        The current model, in scaled columns, the intercept last.
    accepted : int
        The number of this client's last reply that the server has used; 0: none yet.
    """

    round: int
    weights: FloatArray
    accepted: int


@dataclass(frozen=True, eq=False)
class Reply:
    """What a client answers: its clipped gradient, with its own noise.

    Attributes
    ----------
    client : str
    round : int
        The round of the request.
    number : int
        How many replies this client has made in this run, this one included.
    gradient : array of shape (p,)
    """

    client: str
    round: Count
    number: Count
    gradient: UsualArray


@dataclass(frozen=True)
class Refusal:
    """A client's answer without any number from its rows, and why."""

    client: str
    round: int
    reason: str


def fault_of(gradient: Any, dimension: int) -> str:
    """What is wrong with the numbers of a message; empty if nothing is."""
    if not isinstance(gradient, np.ndarray):
        return f"a message of type {type(gradient).__name__}"
    if gradient.dtype != np.float64:
        return f"numbers of type {gradient.dtype}, not float64"
    if gradient.shape != (dimension,):
        return f"a message of shape {gradient.shape}, not ({dimension},)"
    return "" if np.isfinite(gradient).all() else "NaN or infinity in the message"
