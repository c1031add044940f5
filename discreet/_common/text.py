"""Texts that come from outside, such as names in a file, made fit for messages and statements."""

from __future__ import annotations

LONGEST = 500  # characters of a message about a file


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


def aligned(lines: list[list[str]]) -> list[str]:
    """The lines of a table, the first two columns to the left and the others to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        "  ".join(
            f"{text:<{width}}" if i < 2 else f"{text:>{width}}"
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
