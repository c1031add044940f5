"""What a report is made of, before it becomes HTML or Markdown: both are written from the same blocks.

Texts are plain: whoever writes the page escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LONGEST = 5_000  # characters of a text, at most: a name in a file may have any length


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of points."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """Lines of cells under a header; `numbers` are the places of the columns that hold numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A picture for pages that can show one; every number in it that matters stands in a table or a text as well."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Notice:
    """What nobody may overlook: "danger" (there is no privacy), "caution" (it has gaps) or "note"."""

    kind: Literal["danger", "caution", "note"]
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Blanks:
    """Lines to be filled in by hand."""

    names: tuple[str, ...]


Block: TypeAlias = Text | Heading | Items | Facts | Table | Figure | Notice | Blanks


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading; `name` is its address within the page."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """A whole page.

    Attributes
    ----------
    title, subtitle : str
        What the page is about.
    notices : tuple of Notice
        What is shown above everything else.
    numbers : tuple of (str, str)
        The few numbers that everybody asks for first.
    sections : tuple of Section
        The parts of the page, in order.

    Examples
    --------
    See `report_of`.
    """

    title: str
    subtitle: str
    notices: tuple[Notice, ...]
    numbers: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]

    def html(self) -> str:
        """Return one self-contained page of HTML."""
        from discreet.report.html import page

        return page(self)

    def markdown(self) -> str:
        """Return the same content as Markdown, without the pictures."""
        from discreet.report.markdown import document

        return document(self)


def paragraphs(texts: list[str]) -> tuple[Block, ...]:
    """Paragraphs as blocks; those that begin with "- " become one list."""
    found: list[Block] = []
    points: list[str] = []
    for text in texts:
        if text.startswith("- "):
            points.append(text.removeprefix("- "))
            continue
        found += [Items(tuple(points))] if points else []
        points = []
        found.append(Text(text))
    return (*found, Items(tuple(points))) if points else tuple(found)
