"""What a report is made of, and how it becomes HTML or Markdown: both are written from the same blocks, by templates.

Texts are plain: every text is escaped when the page is written, here and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from discreet._common.blocks import Block, plain_line, template


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
        """Return one self-contained page of HTML: the browser runs nothing and fetches nothing."""
        return template("page.html", plain_line, __package__).render(report=self)

    def markdown(self) -> str:
        """Return the same content as Markdown, without the pictures."""
        return template("page.md", _as_markdown, __package__).render(report=self)


_MARKS = re.compile(r"([\\`*_{}\[\]#|~!])")
# What begins a list, or makes a heading of the line above.
_LINE_START = re.compile(r"^(\d*)([.)](?=\s|$)|[-+](?=\s|$)|[-=]+$)")


def _as_markdown(line: str) -> str:
    """Nothing in the line becomes a link, a tag, a table or a list."""
    from markupsafe import Markup

    safe = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = _MARKS.sub(r"\\\1", safe).replace("://", "&#58;//").replace("@", "&#64;")
    safe = re.sub(r"(?i)(www)\.", r"\1&#46;", safe)
    return Markup(_LINE_START.sub(r"\1\\\2", safe))
