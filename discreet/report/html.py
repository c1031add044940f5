"""A report as one page of HTML: its style sheet and its pictures are in it, and nothing is fetched from anywhere.

Every text goes through `escaped`, which also makes control characters visible; only the pictures, which escape
their own texts, are written as they are.
"""

from __future__ import annotations

from functools import cache, singledispatch
from html import escape
from importlib.resources import files
from itertools import groupby

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

# Whatever a name in a model file contains, the browser runs nothing and fetches nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def escaped(text: str) -> str:
    """A plain text as HTML, in one line; a number stays together with its per cent sign."""
    return escape(one_line(text, LONGEST)).replace(" %", "\u00a0%")


def page(report: Report) -> str:
    """The whole page."""
    links = "".join(f'<li><a href="#{part.name}">{escaped(part.title)}</a></li>' for part in report.sections)
    numbers = "".join(f"<div><dt>{escaped(n)}</dt><dd>{escaped(v)}</dd></div>" for n, v in report.numbers)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">',
            f"<title>{escaped(report.title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>",
            f"<header><h1>{escaped(report.title)}</h1><p>{escaped(report.subtitle)}</p></header>",
            *(_html(notice) for notice in report.notices),
            f'<dl class="numbers">{numbers}</dl>',
            f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
            *(_section(part) for part in report.sections),
            "</main>\n</body>\n</html>\n",
        ]
    )


@cache
def _style() -> str:
    return files("discreet.report").joinpath("style.css").read_text(encoding="utf-8")


def _section(part: Section) -> str:
    """A section; pictures that follow each other stand side by side where there is room."""
    inner = []
    for drawn, group in groupby(part.blocks, key=lambda block: isinstance(block, Figure)):
        blocks = "\n".join(_html(block) for block in group)
        inner.append(f'<div class="figures">{blocks}</div>' if drawn else blocks)
    title = f'<h2 id="{part.name}-heading">{escaped(part.title)}</h2>'
    body = "\n".join(inner)
    return f'<section id="{part.name}" aria-labelledby="{part.name}-heading">\n{title}\n{body}\n</section>'


@singledispatch
def _html(block: Block) -> str:
    raise TypeError(f"no way to write {type(block).__name__}.")


@_html.register
def _(block: Text) -> str:
    return f"<p>{escaped(block.text)}</p>"


@_html.register
def _(block: Heading) -> str:
    return f"<h3>{escaped(block.text)}</h3>"


@_html.register
def _(block: Items) -> str:
    return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in block.items)}</ul>"


@_html.register
def _(block: Facts) -> str:
    rows = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in block.facts)
    return f'<dl class="facts">{rows}</dl>'


@_html.register
def _(block: Table) -> str:
    """Wide tables scroll inside a box, which can be reached by keyboard."""
    head = "".join(
        f'<th scope="col"{_kind(k, block)}>{escaped(text)}</th>' if text else "<td></td>"
        for k, text in enumerate(block.header)
    )
    body = "".join(f"<tr>{_cells(row, block)}</tr>" for row in block.rows)
    caption = escaped(block.caption)
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table>'
        f"<caption><span>{caption}</span></caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(row: tuple[str, ...], block: Table) -> str:
    first, *rest = row
    begin = f'<th scope="row"{_kind(0, block)}>{escaped(first)}</th>'
    return begin + "".join(f"<td{_kind(k, block)}>{escaped(text)}</td>" for k, text in enumerate(rest, start=1))


def _kind(column: int, block: Table) -> str:
    return ' class="number"' if column in block.numbers else ""


@_html.register
def _(block: Figure) -> str:
    return f"<figure>{block.svg}<figcaption>{escaped(block.caption)}</figcaption></figure>"


@_html.register
def _(block: Notice) -> str:
    inner = "".join(f"<p>{escaped(text)}</p>" for text in block.paragraphs)
    return f'<aside class="notice {block.kind}" role="note"><p class="title">{escaped(block.title)}</p>{inner}</aside>'


@_html.register
def _(block: Blanks) -> str:
    lines = "".join(f'<div><span class="blank"></span><span>{escaped(name)}</span></div>' for name in block.names)
    return f'<div class="blanks">{lines}</div>'
