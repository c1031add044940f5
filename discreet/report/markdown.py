"""A report as Markdown: the same texts and numbers as the page, without its pictures."""

from __future__ import annotations

import re
from functools import singledispatch

from discreet._common.text import one_line
from discreet.report.blocks import (
    LONGEST,
    Blanks,
    Block,
    Facts,
    Figure,
    Heading,
    Items,
    Notice,
    Report,
    Section,
    Table,
    Text,
)

_MARKS = re.compile(r"([\\`*_{}\[\]#|~!])")
# What begins a list, or makes a heading of the line above.
_LINE_START = re.compile(r"^(\d*)([.)](?=\s|$)|[-+](?=\s|$)|[-=]+$)")


def escaped(text: str) -> str:
    """A plain text as Markdown, in one line: nothing in it becomes a link, a tag, a table or a list."""
    safe = one_line(text, LONGEST).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = _MARKS.sub(r"\\\1", safe).replace("://", "&#58;//").replace("@", "&#64;")
    safe = re.sub(r"(?i)(www)\.", r"\1&#46;", safe)
    return _LINE_START.sub(r"\1\\\2", safe)


def document(report: Report) -> str:
    """The whole document."""
    parts = [f"# {escaped(report.title)}", escaped(report.subtitle)]
    parts += [_markdown(notice) for notice in report.notices]
    parts.append(_markdown(Facts(report.numbers)))
    parts += [_section(part) for part in report.sections]
    return "\n\n".join(parts) + "\n"


def _section(part: Section) -> str:
    texts = [_markdown(block) for block in part.blocks]
    return "\n\n".join([f"## {escaped(part.title)}", *(text for text in texts if text)])


@singledispatch
def _markdown(block: Block) -> str:
    raise TypeError(f"no way to write {type(block).__name__}.")


@_markdown.register
def _(block: Text) -> str:
    return escaped(block.text)


@_markdown.register
def _(block: Heading) -> str:
    return f"### {escaped(block.text)}"


@_markdown.register
def _(block: Items) -> str:
    return "\n".join(f"- {escaped(item)}" for item in block.items)


@_markdown.register
def _(block: Facts) -> str:
    return "\n".join(f"- **{escaped(name)}**: {escaped(value)}" for name, value in block.facts)


@_markdown.register
def _(block: Table) -> str:
    rule = ["---:" if k in block.numbers else "---" for k in range(len(block.header))]
    rows = [[escaped(cell) for cell in row] for row in (block.header, *block.rows)]
    lines = [rows[0], rule, *rows[1:]]
    return "\n".join([f"**{escaped(block.caption)}**\n", *(f"| {' | '.join(cells)} |" for cells in lines)])


@_markdown.register
def _(_: Figure) -> str:
    return ""


@_markdown.register
def _(block: Notice) -> str:
    title = f"# {escaped(block.title)}" if block.kind == "danger" else f"**{escaped(block.title)}**"
    return "\n>\n".join(f"> {text}" for text in (title, *map(escaped, block.paragraphs)))


@_markdown.register
def _(block: Blanks) -> str:
    return "\n\n".join(f"{escaped(name)}: {'.' * 40}" for name in block.names)
