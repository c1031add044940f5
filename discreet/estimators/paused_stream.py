"""Paused streams as files: a stream lies in memory or in one file, never in both.

The file is as secret as the rows: it holds exact sums, from which the noise of published models follows. Who
goes on twice from the same state spends twice, so a pause closes the stream and a resume removes the file. A ledger
makes this hold for copies of the file too: it keeps the key of what it booked. docs/guarantees/ftrl.md says why.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet._common.codec import Format, checked, described, parse_json, read, read_json_file, written
from discreet.estimators import model_file
from discreet.estimators.streaming import is_capped, stream_plan
from discreet.privacy import accounting
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.chain import ChainError
from discreet.privacy.ledger.ledger import Reservation
from discreet.privacy.relation import Relation
from discreet.privacy.release import reserve
from discreet.solvers.ftrl.solver import FTRL
from discreet.solvers.ftrl.stream import Stream

FORMAT = Format("discreet stream", 2)
SEALED = Format("discreet sealed stream", 1)  # of a ledger, which holds the key: without its token it cannot be read
NONCE = 12  # bytes, as AES-GCM is used with
_FIELDS = ("model", "solver", "problem", "plan", "state", "token")


@dataclass(frozen=True)
class Token:
    """An entry of the ledger that is committed when the stream is resumed, so that it can be resumed once."""

    id: int
    dataset: str
    hash: str


def pause_stream(model: Any, path: str | Path) -> None:
    """Move the stream of an estimator into a new file, readable by its owner only; the estimator takes no more rows.

    The stream is closed before its state is written: if the disk fails then, the stream is lost, and not doubled.

    Not private: the file holds exact sums. Keep it where the rows are kept; to publish the model use `save_model`.

    Parameters
    ----------
    model : PrivateLinearModel
        An estimator that has read rows by `partial_fit`.
    path : str or Path
        A file that does not exist yet.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression, pause_stream, resume_stream
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], public_n=2000)
    >>> model = model.partial_fit(X, X[:, 0] > 0.0)
    >>> pause_stream(model, "visits.stream")
    >>> model = resume_stream("visits.stream")  # the file is gone
    >>> model = model.partial_fit(X, X[:, 0] > 0.0)
    """
    stream: Stream | None = getattr(model, "stream_", None)
    if stream is None:
        raise ValueError("there is no stream to pause: call partial_fit first.")
    with stream.alone():
        content = _content(model, stream)
        _rebuilt(json.loads(json.dumps(content, allow_nan=False)), None)  # refuse now what could not be resumed
        with _new_file(path, stream) as file:  # still empty: a name that is taken does not cost the stream
            if stream.booked is not None:
                content = _sealed(content, _book_token(*stream.booked, stream.plan.public.relation))
            stream.close("it was paused; go on with the model that resume_stream returns")
            file.write(json.dumps(content, allow_nan=False))


def resume_stream(path: str | Path, *, ledger: Any = None, dataset: str | None = None, random_state: Any = None) -> Any:
    """Take a paused stream out of its file, which is deleted, and return the estimator, ready for the next chunk.

    A stream that was paused under a ledger needs that ledger again, which lets each pause be resumed once.

    Guarantee: resumed once, the stream costs what was booked when it began and nothing more.

    Parameters
    ----------
    path : str or Path
        A file that `pause_stream` wrote.
    ledger : Ledger or str, optional
        The ledger under which the stream was paused.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    random_state : int, optional
        None draws secure noise; a seed makes it reproducible, hence removable, and is named in the guarantee's leaks.

    Returns
    -------
    PrivateLinearModel
        The estimator; go on with `partial_fit`.

    Examples
    --------
    See `pause_stream`.
    """
    taken = Path(f"{path}.{secrets.token_hex(8)}.taken")
    os.rename(path, taken)  # of two processes that try, one finds no file
    try:
        failure = f"{path} is not a paused stream that this version of discreet can resume"
        content = _unsealed(read_json_file(taken, lambda content: content, failure), ledger, dataset, failure)
        model, token = described(lambda: _read(content, random_state), failure)
        model.ledger, model.dataset = ledger, dataset
        if ledger is not None and not model.stream_.source.secure:
            Ledger.of(ledger).check_seeded()
        if token is not None:
            with _asked(token, ledger, dataset) as reservation:
                reservation.commit()
        model.stream_.booked = None if token is None else (ledger, dataset)
    except BaseException:
        os.rename(taken, path)
        raise
    taken.unlink()
    return model


@contextmanager
def _new_file(path: str | Path, stream: Stream) -> Iterator[TextIO]:
    """A file that did not exist, for its owner alone; after a failure it is gone, and so is a stream closed by then."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if stream.closed:
            stream.close("its state could not be written when it was paused, so it is lost; begin a new stream")
        if stream.closed and isinstance(error, OSError):
            raise OSError(f"the stream is lost: its state could not be written ({error}).") from error
        raise


def _content(model: Any, stream: Stream) -> dict[str, Any]:
    return {
        **FORMAT.head,
        "model": model_file.to_dict(model),
        "solver": asdict(stream.solver),
        "problem": repr(stream.plan.problem),
        "plan": stream.plan.to_dict(),
        "state": stream.state(),
        "token": None,
    }


def _read(content: Any, random_state: Any) -> tuple[Any, Token | None]:
    """The estimator with its stream, and the token of the ledger if there is one."""
    fields = checked(dict.fromkeys(_FIELDS, Any), _FIELDS, FORMAT.body(content), "it")
    model, token = _rebuilt(fields, random_state), read(Token | None, fields["token"], "the token")
    release = model.guarantee_.release
    if token is None and release is not None and release.ledger is not None:
        raise ValueError("a ledger booked the stream, but the token with which it allows one resume was removed.")
    return model, token


def _sealed(content: dict[str, Any], token: Reservation) -> dict[str, Any]:
    """The content, encrypted with the key that the ledger keeps beside the token; without the token it says nothing."""
    nonce, text = secrets.token_bytes(NONCE), json.dumps(content, allow_nan=False).encode()
    box = nonce + AESGCM(bytes.fromhex(token.key)).encrypt(nonce, text, None)
    named = written(Token(token.id, token.dataset, token.hash))
    return {**SEALED.head, "token": named, "sealed": base64.b64encode(box).decode()}


def _unsealed(content: Any, ledger: Any, dataset: str | None, failure: str) -> Any:
    """The content that was sealed, with its token; other content as it is."""
    if not isinstance(content, dict) or content.get("format") != SEALED.name:
        return content

    def parts() -> tuple[Token, bytes]:
        outer = checked({"token": Any, "sealed": str}, ("token", "sealed"), SEALED.body(content), "it")
        return read(Token, outer["token"], "the token"), base64.b64decode(outer["sealed"], validate=True)

    def opened() -> Any:
        try:
            return parse_json(AESGCM(bytes.fromhex(key)).decrypt(box[:NONCE], box[NONCE:], None))
        except (InvalidTag, ValueError):
            raise ValueError("it was altered after it was paused.") from None

    token, box = described(parts, failure)
    with _asked(token, ledger, dataset) as reservation:
        key = reservation.key
    return described(opened, failure) | {"token": content["token"]}


def _rebuilt(content: dict[str, Any], random_state: Any) -> Any:
    """The estimator with its stream; refused if it would not be planned as it was."""
    model: Any = model_file.from_dict(content["model"]).estimator
    model.solver, model.random_state = FTRL(**content["solver"]), random_state
    classes = len(getattr(model, "classes_", (0, 1)))
    plan = stream_plan(model, model.n_features_in_, classes, bool(content["plan"]["public"]["sparse"]))
    again, told = json.loads(json.dumps(plan.to_dict())), content["plan"]
    words = {"warnings": again["warnings"]}  # what is said of a plan is no part of it
    if repr(plan.problem) != content["problem"] or again != told | words:
        raise ValueError(
            "a stream with this estimator cannot be resumed: its file does not hold all its parameters, or this "
            "version of discreet plans it in another way."
        )
    stream = Stream(plan, is_capped(model), random_state)
    stream.restore(content["state"])
    stream.release = model.guarantee_.release
    model.stream_ = stream
    model._keep(stream.solution())
    return model


def _book_token(ledger: Any, dataset: Any, relation: Relation) -> Reservation:
    """An entry of cost 0, with a key, that can be committed once, by whichever process."""
    note = "paused stream; committed when it is resumed"
    return reserve(ledger, dataset, accounting.no_event(), note, relation, key=secrets.token_hex(32))


@contextmanager
def _asked(token: Token, ledger: Any, dataset: str | None) -> Iterator[Reservation]:
    """The entry of the ledger for a token; what the ledger refuses is said in words about the stream."""
    if ledger is None or dataset != token.dataset:
        raise ValueError(f"the stream was paused under a ledger: pass ledger= and dataset={token.dataset!r}.")
    try:
        yield Reservation(Ledger.of(ledger), token.id, token.dataset, token.hash)
    except ChainError:
        raise
    except ValueError:
        raise ValueError("the stream was paused under another ledger; only that one can let it go on.") from None
    except RuntimeError:
        raise ValueError(
            "this stream has been resumed before; going on from the same state again would spend the budget twice."
        ) from None
