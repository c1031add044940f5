"""What people are shown, as blocks: the same blocks become plain text, HTML by templates, and what notebooks show.

Texts are plain: every text is escaped when HTML is written, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet._common.text import facts, one_line, table

if TYPE_CHECKING:
    from jinja2 import Template


class Block:
    """A part of what is shown; the templates know how to write each kind."""

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


Groups = Sequence[Sequence[Block]]  # in plain text an empty line stands between two groups


class Shown:
    """What is shown as plain text by `print`, and as HTML by notebooks, from the blocks of `_blocks`."""

    def _blocks(self) -> Groups:
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self._blocks())

    def _repr_html_(self) -> str:
        return as_html(self._blocks())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(str(self))


def as_text(groups: Groups) -> str:
    """Blocks as lines for people."""
    return "\n\n".join("\n".join(map(_text, group)) for group in groups if group)


def as_html(groups: Groups) -> str:
    """Blocks as a part of a page; its colours are those of the page around it, light or dark."""
    return template("notebook.html", plain_line).render(groups=groups)


def _text(block: Block) -> str:
    if isinstance(block, Facts):
        return facts(block.facts)
    if isinstance(block, Table):
        return table([block.header, *block.rows], words=set(range(len(block.header))) - {*block.numbers})
    if isinstance(block, Items):
        return "\n".join(f"- {item}" for item in block.items)
    if isinstance(block, Text | Heading):
        return block.text
    raise TypeError(f"a {block.kind} has no plain text.")


def numbers_of(header: Sequence[str], words: Sequence[int] = (0,)) -> tuple[int, ...]:
    """The places of the columns that hold numbers: all but those of words."""
    return tuple(k for k in range(len(header)) if k not in words)


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


@cache
def template(name: str, prepared: Callable[[str], str], *packages: str) -> Template:
    """A template of this package or of others; what is not its own markup is prepared, and escaped if need be."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return value if isinstance(value, Markup) else prepared(one_line(str(value), LONGEST))

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (__package__, *packages)]),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def plain_line(line: str) -> str:
    """A number stays together with its per cent sign; what remains is escaped as HTML."""
    return line.replace(" %", "\u00a0%")
