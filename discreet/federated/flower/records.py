"""The messages of a round as Flower records, and back.

Numbers travel as the bytes of little-endian doubles: they arrive as they were, bit for bit, and there is no file format
in which a sender could hide something. Flower's `ArrayRecord` would be three more objects to fetch for each message.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from discreet._common.text import LONGEST, one_line
from discreet._common.types import FloatArray
from discreet.federated.rounds import Refusal, Reply, Request

DOUBLE = np.dtype("<f8")
UNREADABLE = "the answer could not be read"


def request_to_record(request: Request, plan: bytes) -> RecordDict:
    """Write a request, with the digest of the plan that the server follows."""
    head = {"round": int(request.round), "accepted": int(request.accepted), "plan": plan}
    return RecordDict({"request": ConfigRecord(head | {"weights": _bytes_of(request.weights)})})


def request_from_record(record: RecordDict) -> tuple[Request, bytes]:
    """Read a request and the digest of the server's plan; a ValueError says what is wrong with it."""
    try:
        head = record["request"]
        request = Request(_integer(head["round"]), _vector(head["weights"]), _integer(head["accepted"]))
        return request, _digest(head["plan"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a request of discreet: {error!r}") from error


def answer_to_record(answer: Reply | Refusal) -> RecordDict:
    """Write a reply or a refusal."""
    head: dict[str, Any] = {"client": answer.client, "round": int(answer.round)}
    if isinstance(answer, Refusal):
        return RecordDict({"refusal": ConfigRecord({**head, "reason": answer.reason})})
    numbers = {"number": int(answer.number), "gradient": _bytes_of(answer.gradient)}
    return RecordDict({"reply": ConfigRecord(head | numbers)})


def answer_from_record(record: RecordDict) -> Reply | Refusal:
    """Read a reply or a refusal; a ValueError says what is wrong with it."""
    try:
        if "refusal" in record:
            head = record["refusal"]
            reason = one_line(str(head["reason"]), LONGEST)  # it is shown to people, and anybody may have written it
            return Refusal(str(head["client"]), _integer(head["round"]), reason)
        head = record["reply"]
        gradient = _vector(head["gradient"])
        return Reply(str(head["client"]), _integer(head["round"]), _integer(head["number"]), gradient)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an answer of discreet: {error!r}") from error


def _bytes_of(values: FloatArray) -> bytes:
    return np.asarray(values, dtype=DOUBLE).tobytes()


def _vector(content: object) -> FloatArray:
    """Read the numbers; how many they are and how large is judged by whoever uses them."""
    if not isinstance(content, bytes) or len(content) % DOUBLE.itemsize:
        raise TypeError("the numbers are not the bytes of doubles")
    return np.frombuffer(content, dtype=DOUBLE).astype(np.float64)


def _digest(content: object) -> bytes:
    """Read the digest of a plan; `bytes` of a number would be as many zeros."""
    if not isinstance(content, bytes):
        raise TypeError("the digest of the plan is not bytes")
    return content


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value
