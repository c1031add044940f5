"""Docstrings that list inherited parameters and attributes too, so that `help()` shows all of them.

Each parameter is described once: in the docstring of the class that declares it, or here for the options of releases.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc, signature
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# The options that most functions take that release something.
OPTIONS = """
relation : {"replace", "zero_out", "add_remove"}, default="replace"
    Which tables count as neighbours.
delta : float, optional
    Failure probability of the promise; None means 1/n^2, 0 asks for pure epsilon-DP.
public_n : int, optional
    With relation="add_remove": a public estimate of the number of rows.
sample_weight : array of shape (n_samples,), optional
    Weights between 0 and 1, as private as the rows.
invalid_rows : {"error", "neutral"}, default="error"
    Whether a row that cannot be read (NaN, text, a weight out of range) is refused, or counts as an empty row, which
    adds nothing: refusing tells that there is such a row.
ledger : Ledger or str, optional
    Where the cost is booked before any row is used.
dataset : str, optional
    The name under which the data set's budget was opened in the ledger.
random_state : int, optional
    None draws secure noise; a seed makes it reproducible, hence removable, and is named in the guarantee's leaks.
"""
INHERITED_SECTIONS = ("Parameters", "Attributes")
_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


class InheritedDocstring:
    """Completes the sections "Parameters" and "Attributes" of each subclass with the entries of its parents.

    A class's own entries come first. An entry that the class describes itself is not taken from a parent.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("__doc__") is None:  # python -OO removes docstrings
            return
        parents = [base.__doc__ for base in cls.__bases__ if issubclass(base, InheritedDocstring) and base.__doc__]
        cls.__doc__ = completed(str(cls.__doc__), parents)


def with_options(function: Function) -> Function:
    """Describe those of `OPTIONS` that a function takes, and does not describe itself, in its docstring."""
    if function.__doc__ is not None:
        taken = [entry for entry in entries_of(OPTIONS.strip()) if names_in(entry) <= {*signature(function).parameters}]
        parent = "\n".join(["Parameters", "----------", *taken])
        function.__doc__ = completed(function.__doc__, [parent])
    return function


def completed(docstring: str, parents: list[str]) -> str:
    """The docstring with the parents' parameters and attributes after its own.

    Examples
    --------
    >>> child, parent = "Parameters\\n----------\\nb : int", "Parameters\\n----------\\na : int"
    >>> print(completed("A child.\\n\\n" + child, [parent]))
    A child.
    <BLANKLINE>
    Parameters
    ----------
    b : int
    a : int
    """
    text, sections = sections_of(docstring)
    for parent in parents:
        inherited = sections_of(parent)[1]
        for title in INHERITED_SECTIONS:
            known = names_in(sections.get(title, ""))
            missing = [entry for entry in entries_of(inherited.get(title, "")) if not names_in(entry) <= known]
            if missing:
                sections[title] = "\n".join(filter(None, [sections.get(title, ""), *missing]))
    first = {title: sections.pop(title) for title in INHERITED_SECTIONS if title in sections}
    parts = [f"{title}\n{'-' * len(title)}\n{body}" for title, body in {**first, **sections}.items()]
    return "\n\n".join([text, *parts])


def sections_of(docstring: str) -> tuple[str, dict[str, str]]:
    """The text before the first heading of a NumPy docstring, and the body below each heading."""
    text, *rest = _HEADING.split(cleandoc(docstring))
    return text.strip(), {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}


def entries_of(section: str) -> list[str]:
    """The entries of a section: a line that starts at the margin, and the indented lines below it."""
    return [entry.rstrip() for entry in re.split(r"\n(?=\S)", section) if entry]


def names_in(section: str) -> set[str]:
    """The names that a section describes; an entry may name several, separated by commas.

    Examples
    --------
    >>> sorted(names_in("low_, high_ : arrays\\n    The ends.\\nmean_ : array"))
    ['high_', 'low_', 'mean_']
    """
    heads = (entry.split("\n")[0].split(" : ")[0] for entry in entries_of(section))
    return {name.strip() for head in heads for name in head.split(",")} - {""}
