"""Plain text for people: names from outside made fit for it, paragraphs, facts and tables."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

LONGEST = 500  # characters of a message about a file
WIDTH = 100  # characters of a line
LABEL = 20  # width of the names on the left


def one_line(text: str, longest: int | None = None) -> str:
    """The text without line breaks and control characters, which could pass for other lines; shortened if asked.

    Examples
    --------
    >>> one_line("a\\n\\x1b[2Jb")
    'a \\\\x1b[2Jb'
    >>> one_line("0123456789", longest=8)
    '01234...'
    """
    words = " ".join(text.split() if longest is None else text[: 2 * longest].split())
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 3]}..."


# Where a spreadsheet could begin a formula: in front of a sign, also where it cuts a file at semicolons or tabs, as it
# does in many countries whatever quotes say.
_FORMULA = re.compile(r"^(?=\s*[=+\-@\u2212]|[\t\r\n])|(?<=[;\t\r\n])(?=\s*[=+\-@\u2212])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def csv_cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet runs: what it would take for a formula gets an apostrophe.

    Signs are those of any width that Unicode has; what is not printed, such as marks of no width, may be passed over.

    Examples
    --------
    >>> [csv_cell(value) for value in ("=1+1", "-1", "ill", -1.0, "a;=1")]
    ["'=1+1", '-1', 'ill', -1.0, "a;'=1"]
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    seen = "".join(unicodedata.normalize("NFKC", c)[0] if c.isprintable() or c in "\t\r\n" else " " for c in value)
    ends = [match.start() for match in _FORMULA.finditer(seen)]
    return "'".join(value[i:j] for i, j in pairwise([0, *ends, len(value)])) if ends else value


def paragraph(text: str, first: str = "", rest: str = "") -> str:
    """Lines of bounded width, each behind an indent; a number stays together with its per cent sign."""
    joined = text.replace(" %", "\u00a0%")
    return textwrap.fill(joined, WIDTH, initial_indent=first, subsequent_indent=rest).replace("\u00a0%", " %")


def facts(named: Iterable[tuple[str, str]], label: int = LABEL) -> str:
    """Names on the left, and what they stand for in lines of bounded width.

    Examples
    --------
    >>> print(facts([("rows", "1,000"), ("", "a second\\nline")], label=6))
    rows  1,000
          a second line
    """
    lines = (paragraph(one_line(text), f"{name:<{label}}", " " * label) or name for name, text in named)
    return "\n".join(lines)


def table(rows: Iterable[Sequence[str]], words: Collection[int] = (0,)) -> str:
    """Columns as wide as their longest cell: those of `words` to the left, numbers to the right.

    Examples
    --------
    >>> print(table([("name", "number"), ("a", "10"), ("bc", "2")]))
    name  number
    a         10
    bc         2
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if k in words else str.rjust for k in range(len(widths))]
    lines = ("  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
