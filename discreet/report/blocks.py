"""What a report is made of, and how it becomes HTML or Markdown: both are written from the same blocks, by templates.

Texts are plain: every text is escaped when the page is written, here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from discreet._common.text import one_line

if TYPE_CHECKING:
    from jinja2 import Template


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
        """Return one self-contained page of HTML: the browser runs nothing and fetches nothing."""
        return _template("page.html", _plain).render(report=self)

    def markdown(self) -> str:
        """Return the same content as Markdown, without the pictures."""
        return _template("page.md", _as_markdown).render(report=self)


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


LONGEST = 5_000  # characters of a text, at most: a name in a file may have any length
_MARKS = re.compile(r"([\\`*_{}\[\]#|~!])")
# What begins a list, or makes a heading of the line above.
_LINE_START = re.compile(r"^(\d*)([.)](?=\s|$)|[-+](?=\s|$)|[-=]+$)")


@cache
def _template(name: str, prepared: Callable[[str], str]) -> Template:
    """A template; every text in it that is not its own markup is prepared, and escaped if that is still needed."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return value if isinstance(value, Markup) else prepared(one_line(str(value), LONGEST))

    environment = Environment(
        loader=PackageLoader("discreet.report"),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def _plain(line: str) -> str:
    """A number stays together with its per cent sign; what remains is escaped as HTML."""
    return line.replace(" %", "\u00a0%")


def _as_markdown(line: str) -> str:
    """Nothing in the line becomes a link, a tag, a table or a list."""
    from markupsafe import Markup

    safe = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = _MARKS.sub(r"\\\1", safe).replace("://", "&#58;//").replace("@", "&#64;")
    safe = re.sub(r"(?i)(www)\.", r"\1&#46;", safe)
    return Markup(_LINE_START.sub(r"\1\\\2", safe))
