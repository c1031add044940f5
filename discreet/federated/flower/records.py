"""The messages of a round as Flower records, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from discreet._common.types import FloatArray
from discreet.federated.messages import Refusal, Reply, Request

UNREADABLE = "the answer could not be read"


def request_to_record(request: Request, plan: bytes) -> RecordDict:
    """Write a request, with the digest of the plan that the server follows."""
    head = {"round": int(request.round), "accepted": int(request.accepted), "plan": plan}
    return RecordDict({"request": ConfigRecord(head), "weights": _vector_record(request.weights)})


def request_from_record(record: RecordDict) -> tuple[Request, bytes]:
    """Read a request and the digest of the server's plan; a ValueError says what is wrong with it."""
    try:
        head = record["request"]
        request = Request(_integer(head["round"]), _vector(record["weights"]), _integer(head["accepted"]))
        return request, bytes(head["plan"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a request of discreet: {error!r}") from error


def answer_to_record(answer: Reply | Refusal) -> RecordDict:
    """Write a reply or a refusal."""
    head: dict[str, Any] = {"client": answer.client, "round": int(answer.round)}
    if isinstance(answer, Refusal):
        return RecordDict({"refusal": ConfigRecord({**head, "reason": answer.reason})})
    reply = ConfigRecord({**head, "number": int(answer.number)})
    return RecordDict({"reply": reply, "gradient": _vector_record(answer.gradient)})


def answer_from_record(record: RecordDict) -> Reply | Refusal:
    """Read a reply or a refusal; a ValueError says what is wrong with it."""
    try:
        if "refusal" in record:
            head = record["refusal"]
            return Refusal(str(head["client"]), _integer(head["round"]), str(head["reason"]))
        head = record["reply"]
        gradient = _vector(record["gradient"])
        return Reply(str(head["client"]), _integer(head["round"]), _integer(head["number"]), gradient)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an answer of discreet: {error!r}") from error


def _vector_record(values: FloatArray) -> ArrayRecord:
    return ArrayRecord({"values": Array(np.asarray(values, dtype=np.float64))})


def _vector(record: ArrayRecord) -> FloatArray:
    """Read the numbers; their count and size are judged by whoever uses them."""
    values = record["values"].numpy()
    if values.dtype != np.float64:
        raise ValueError(f"numbers of type {values.dtype}, not float64")
    return np.asarray(values, dtype=np.float64)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value
