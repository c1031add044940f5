"""What a report is made of, before it becomes HTML or Markdown: both are written from the same blocks.

Texts are plain: whoever writes the page escapes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class Block:
    """A part of a section; the templates know how to write each kind."""

    @property
    def kind(self) -> str:
        """The name of the class in small letters."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Text(Block):
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Heading(Block):
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Items(Block):
    """A list of points."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts(Block):
    """Names and values."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table(Block):
    """Lines of cells under a header; `numbers` are the places of the columns that hold numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Figure(Block):
    """A picture for pages that can show one; every number in it that matters stands in a table or a text as well."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Notice(Block):
    """What nobody may overlook: "danger" (there is no privacy), "caution" (it has gaps) or "note"."""

    level: Literal["danger", "caution", "note"]
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Blanks(Block):
    """Lines to be filled in by hand."""

    names: tuple[str, ...]


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
        from discreet.report.render import html

        return html(self)

    def markdown(self) -> str:
        """Return the same content as Markdown, without the pictures."""
        from discreet.report.render import markdown

        return markdown(self)


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
