"""A report as HTML or as Markdown, by templates; every text in them is escaped, here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet._common.text import one_line

if TYPE_CHECKING:
    from jinja2 import Template

    from discreet.report.blocks import Report

LONGEST = 5_000  # characters of a text, at most: a name in a file may have any length
_MARKS = re.compile(r"([\\`*_{}\[\]#|~!])")
# What begins a list, or makes a heading of the line above.
_LINE_START = re.compile(r"^(\d*)([.)](?=\s|$)|[-+](?=\s|$)|[-=]+$)")


def html(report: Report) -> str:
    """One page whose style sheet and pictures are in it: the browser runs nothing and fetches nothing."""
    return _template("page.html", _plain).render(report=report)


def markdown(report: Report) -> str:
    """The same texts and numbers without the pictures."""
    return _template("page.md", _as_markdown).render(report=report)


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
