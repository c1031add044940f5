"""What a client must not forget between rounds, and how it is kept on disk.

The count of replies is what the privacy promise rests on, so that it is written, and flushed to the disk, before a
reply leaves. A file that is damaged or belongs to another run is refused, never replaced.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.codec import Count, Format, UsualArray, built, plain, read_json_file, written
from discreet._common.types import FloatArray
from discreet.federated.rounds import Reply

FORMAT = Format("discreet federated client", 1)


@dataclass(frozen=True, eq=False)
class ClientState:
    """A client's memory of a run.

    Attributes
    ----------
    run : str
        Digest of the plan, in hexadecimal digits.
    client : str
        The name of the client.
    number : int
        How many replies it has made: every one of them counts, whether or not it arrived.
    base_number : int
        The number of the last reply that the server said to have used; 0: none.
    base_dual : ndarray of shape (p,)
        The dual variable after that reply.
    dual : ndarray of shape (p,)
        The dual variable after the latest reply.
    reply : Reply, optional
        The latest reply: asked again for its round, the client sends it again, without new noise.
    booked : bool
        Whether the cost of the run is in the client's ledger.
    """

    run: str
    client: str
    number: Count
    base_number: Count
    base_dual: UsualArray
    dual: UsualArray
    reply: Reply | None
    booked: bool

    @classmethod
    def new(cls, run: str, client: str, dimension: int) -> ClientState:
        """The state before the first reply."""
        return cls(run, client, 0, 0, np.zeros(dimension), np.zeros(dimension), None, booked=False)

    def after(self, reply: Reply, base_number: int, base_dual: FloatArray, dual: FloatArray) -> ClientState:
        """The state after one more reply, made from the dual variable `base_dual`."""
        return replace(self, number=reply.number, base_number=base_number, base_dual=base_dual, dual=dual, reply=reply)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values. Not private: it is for the client alone."""
        reply = self.reply and {"round": self.reply.round, "gradient": plain(self.reply.gradient)}
        return FORMAT.head | written(self) | {"reply": reply}

    @classmethod
    def from_dict(cls, content: Any) -> ClientState:
        """Return what `to_dict` wrote; anything else is a ValueError, KeyError or TypeError."""
        fields = FORMAT.body(content)
        if fields["reply"] is not None:
            own = {"client": fields["client"], "number": fields["number"]}
            fields["reply"] = built(Reply, fields["reply"] | own, "the latest reply")
        state = built(cls, fields)
        if state.base_number > state.number or (state.reply is None) != (state.number == 0):
            raise ValueError("its latest reply and its numbers of replies do not fit together.")
        vectors = [state.base_dual, state.dual, *([state.reply.gradient] if state.reply else [])]
        if state.dual.ndim != 1 or {vector.shape for vector in vectors} != {state.dual.shape}:
            raise ValueError("its vectors have different lengths.")
        return state


class StateFile:
    """A client's state in a file, replaced as a whole: after a crash it holds the old or the new state.

    Only the owner may read the file, since the dual variables in it may be exact.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def load(self) -> ClientState | None:
        """Return the state, or None if there is no file; a damaged file is a ValueError."""
        if not self.path.exists():
            return None
        return read_json_file(self.path, ClientState.from_dict, f"{self.path} is not the state of a client")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from the state for a block, by a lock on a second file, which stays."""
        if sys.platform == "win32":
            yield
            return
        import fcntl

        with open(self.path.with_name(f"{self.path.name}.lock"), "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed
            yield

    def save(self, state: ClientState) -> None:
        """Write the state; when this returns, it is on the disk."""
        write_durably(self.path, json.dumps(state.to_dict(), allow_nan=False))


class StateInMemory:
    """A client's state for as long as the object lives: for simulations."""

    def __init__(self) -> None:
        self._state: ClientState | None = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else has it."""
        yield

    def load(self) -> ClientState | None:
        """Return the state, or None before the first."""
        return self._state

    def save(self, state: ClientState) -> None:
        """Keep the state."""
        self._state = state


def write_durably(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file by one with this text, and wait until the disk has it; by default only its owner may read it."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # left by a crash, perhaps with other permissions
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    if sys.platform == "win32":  # folders cannot be opened there
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
