"""A law is a function that raises an error if its subject breaks it; here laws are run, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isfunction
from types import ModuleType
from typing import Any, Literal, NoReturn, TypeVar

Status = Literal["passed", "failed", "expected failure", "skipped"]
OnFail = Literal["raise"] | None
T = TypeVar("T")
Law = Callable[[T], None]


class LawBrokenError(AssertionError):
    """A loss, penalty, constraint or solver breaks a law; the message names both and shows the case."""


class LawSkippedError(Exception):
    """A law has nothing to say about its subject; the message says why."""


@dataclass(frozen=True)
class LawResult:
    """What became of one law.

    Attributes
    ----------
    law : str
        The name of the law.
    status : str
        "passed", "failed", "expected failure" or "skipped".
    message : str
        Why it failed or was skipped; empty if it passed.
    """

    law: str
    status: Status
    message: str = ""


def broken(message: str) -> NoReturn:
    """Say which case breaks the law that is being checked."""
    raise LawBrokenError(message)


def skipped(reason: str) -> NoReturn:
    """Say why the law that is being checked does not apply."""
    raise LawSkippedError(reason)


def laws_of(*modules: ModuleType) -> list[Law[Any]]:
    """The laws of modules, in order: the functions that a module defines, but for those that begin with _."""
    return [
        law
        for module in modules
        for name, law in vars(module).items()
        if isfunction(law) and law.__module__ == module.__name__ and not name.startswith("_")
    ]


def run_laws(
    laws: Sequence[Law[T]],
    subject: T,
    name: str,
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
) -> list[LawResult]:
    """Run all laws on a subject.

    Parameters
    ----------
    laws : sequence of functions
        Each is called with the subject; its name is the name of the law.
    subject : object
        What the laws are about.
    name : str
        What messages call the subject.
    on_fail : {"raise", None}
        Whether to raise the first failure, or to go on and return all results.
    expected_failures : mapping, optional
        For laws that are known to fail the reason; such a failure is not raised, and a pass is an error.

    Returns
    -------
    list of LawResult
        One for each law, in order.

    Raises
    ------
    LawBrokenError
        An AssertionError, on the first law that fails.
    """
    expected = dict(expected_failures or {})
    unknown = sorted(set(expected) - {law.__name__ for law in laws})
    if unknown:
        raise ValueError(f"expected_failures names no law: {unknown[0]!r}; laws are {[law.__name__ for law in laws]}.")
    results = []
    for law in laws:
        error, result = _run(law, subject, name, expected.get(law.__name__))
        if result.status == "failed" and on_fail == "raise":
            raise LawBrokenError(result.message) from error
        results.append(result)
    return results


def _run(law: Law[Any], subject: Any, name: str, reason: str | None) -> tuple[Exception | None, LawResult]:
    """One law; whatever it raises, an error of the subject's own included, is a failure."""
    title = law.__name__
    try:
        law(subject)
    except LawSkippedError as skip:
        return None, LawResult(title, "skipped", str(skip))
    except Exception as error:
        if reason is not None:
            return error, LawResult(title, "expected failure", reason)
        what = str(error) if isinstance(error, LawBrokenError) else f"{type(error).__name__}: {error}"
        return error, LawResult(title, "failed", f"{name} breaks the law {title!r}: {what}")
    if reason is not None:
        message = f"{name} keeps the law {title!r}, which was expected to fail ({reason}): remove it from the list."
        return None, LawResult(title, "failed", message)
    return None, LawResult(title, "passed")
