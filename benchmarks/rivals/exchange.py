"""How a library in its own environment is asked for scores: named arrays through a pipe, one answer for each question.

An answer says the processor time that it took.

A message is its length in eight bytes and an .npz file. This file needs NumPy only, since each environment imports it.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

LENGTH = 8  # bytes


def send(stream: BinaryIO, **arrays: np.ndarray | float | int | str) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)
    stream.write(len(content.getvalue()).to_bytes(LENGTH, "little") + content.getvalue())
    stream.flush()


def receive(stream: BinaryIO) -> dict[str, np.ndarray] | None:
    """The next message; None at the end of the stream."""
    length = stream.read(LENGTH)
    if len(length) < LENGTH:
        return None
    with np.load(io.BytesIO(stream.read(int.from_bytes(length, "little")))) as found:
        return dict(found)


def answer(scores: Callable[[dict[str, np.ndarray]], np.ndarray]) -> None:
    """Answer questions from standard input until it ends; an error is sent back as text."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    while (question := receive(sys.stdin.buffer)) is not None:
        start = time.process_time()
        try:
            found = np.asarray(scores(question), dtype=np.float64)
            send(replies, scores=found, seconds=time.process_time() - start)
        except Exception as error:  # any failure of a rival is a result
            send(replies, error=f"{type(error).__name__}: {error}")
