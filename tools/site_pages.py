"""Pages of the docs site that are not in docs/: the README, the gallery, the API reference; and the navigation.

MkDocs calls the functions whose names begin with `on_` (mkdocs.yml names this file under `hooks`). The navigation is
docs/README.md: its headings are the tabs, its links the pages, so that a page that is listed there is in the site.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # tests read this file without MkDocs
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Pages that are kept outside docs/, and where the site shows them.
OUTSIDE = {
    "README.md": "project/overview.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
# The rooms that users import from, in the order of the reference.
ROOMS = {
    "discreet": "Estimators, budget, ledger, model files",
    "discreet.preprocessing": "Private transformers",
    "discreet.metrics": "Evaluation on private rows",
    "discreet.model_selection": "Choosing settings",
    "discreet.inference": "Standard errors, intervals and tests",
    "discreet.report": "Reports",
    "discreet.solvers": "Solvers",
    "discreet.problem": "Losses, penalties, sets",
    "discreet.privacy": "Meaning of a guarantee",
    "discreet.theory": "Bounds of the literature",
    "discreet.fairness": "Fairness",
    "discreet.federated": "Many data holders",
    "discreet.audit": "Audits",
    "discreet.testing": "Checks for your own parts",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from the index of the documentation."""
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that have no file in docs/."""
    from mkdocs.structure.files import File

    for source, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text()))
    for uri, text in [*gallery_pages(), *reference_pages()]:
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    return with_site_links(markdown, page.file.src_uri)


def navigation() -> list[Any]:
    """Tabs and pages: headings and links of docs/README.md, the proofs, the gallery and the reference."""
    index = (ROOT / "docs" / "README.md").read_text()
    parts = HEADING.split(index)
    tabs: list[Any] = [{"Home": "README.md"}]
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        pages = [{shown.replace("`", ""): uri} for shown, uri in page_links(text)]
        if any("guarantees/README.md" in page.values() for page in pages):
            pages += [{title_of(path): f"guarantees/{path.name}"} for path in proofs()]
        tabs.append({title: pages})
    tabs.append({"Gallery": [{"All examples": "gallery/index.md"}, *({t: u} for t, u in example_titles())]})
    tabs.append({"API": [{"All names": "api/index.md"}, *({room: f"api/{room}.md"} for room in ROOMS)]})
    return tabs


def page_links(text: str) -> Iterator[tuple[str, str]]:
    """Titles and places in the site of the pages that a part of docs/README.md links to, each once."""
    seen = set()
    for shown, target in LINK.findall(text):
        uri = site_uri(os.path.normpath(f"docs/{target.partition('#')[0]}"))
        if uri is not None and uri.endswith(".md") and uri not in seen:
            seen.add(uri)
            yield shown[:1].upper() + shown[1:], uri


def proofs() -> list[Path]:
    return sorted(path for path in (ROOT / "docs" / "guarantees").glob("*.md") if path.name != "README.md")


def title_of(path: Path) -> str:
    """The first heading of a page."""
    return path.read_text().splitlines()[0].lstrip("# ").replace("`", "")


def site_uri(path: str) -> str | None:
    """Where the site shows a file of the repository; None for files that are no part of it."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None


def with_site_links(markdown: str, uri: str) -> str:
    """The page with its links rewritten; the text of a link to a file that is not in the site stays, without it."""
    sources = {place: source for source, place in OUTSIDE.items()}
    folder = os.path.dirname(sources.get(uri, f"docs/{uri}"))

    def moved(link: re.Match[str]) -> str:
        shown, target = link[1], link[2]
        place, mark, anchor = target.partition("#")
        if "://" in target or not place or uri.startswith(("gallery/", "api/")):
            return link[0]
        found = site_uri(os.path.normpath(os.path.join(folder, place)))
        if found is None:
            return str(shown)
        return f"[{shown}]({os.path.relpath(found, os.path.dirname(uri) or '.')}{mark}{anchor})"

    blocks = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(block if block.startswith("```") else LINK.sub(moved, block) for block in blocks)


def examples() -> list[Path]:
    return sorted((ROOT / "examples").glob("*.py"))


def example_titles() -> list[tuple[str, str]]:
    return [(example_text(path)[0], f"gallery/{path.stem}.md") for path in examples()]


def example_text(path: Path) -> tuple[str, str, str]:
    """Title, description and code of an example: its docstring begins with the title."""
    source = path.read_text()
    docstring = ast.get_docstring(ast.parse(source)) or ""
    title, _, description = docstring.partition("\n")
    return title.rstrip("."), description.strip(), source.partition('"""\n\n')[2]


def gallery_pages() -> Iterator[tuple[str, str]]:
    """One page for each example, with what it prints when the site is built, and one that lists them."""
    lines = ["# Gallery", "", "Short programs, each complete: copy one and put your own table in its place.", ""]
    for path in examples():
        title, description, code = example_text(path)
        lines.append(f"- [{title}]({path.stem}.md): {' '.join(description.split())}")
        yield (
            f"gallery/{path.stem}.md",
            f"# {title}\n\n{description}\n\n```python\n{code.rstrip()}\n```\n\n"
            f"Prints, in the run that made this page:\n\n```text\n{printed_by(path)}\n```\n\n"
            f"The file is `examples/{path.name}`.\n",
        )
    yield "gallery/index.md", "\n".join(lines) + "\n"


def printed_by(path: Path) -> str:
    """What an example prints; a failure ends the build."""
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{path.name} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout.strip()


def reference_pages() -> Iterator[tuple[str, str]]:
    """One page for each room of the package, with every name that it offers, and one that lists them."""
    lines = ["# API", "", "Every public name, from its docstring. The examples are run as tests.", ""]
    for room, title in ROOMS.items():
        names = public_names(room)
        lines += [f"- [`{room}`]({room}.md): {title}. {', '.join(f'`{name}`' for name in names)}."]
        parts = [f"::: {room}.{name}\n    options:\n      members: {members_of(room, name)}" for name in names]
        yield f"api/{room}.md", "\n\n".join([f"# `{room}`: {title.lower()}", *parts]) + "\n"
    yield "api/index.md", "\n".join(lines) + "\n"


def members_of(room: str, name: str) -> list[str]:
    """Methods and properties of a class that this package defines; parameters are described in the docstring."""
    value = getattr(importlib.import_module(room), name)
    own = [base for base in getattr(value, "__mro__", ()) if base.__module__.startswith("discreet")]
    kinds = (property, cached_property, classmethod, staticmethod)
    found = {
        member: held
        for base in reversed(own)
        for member, held in vars(base).items()
        if not member.startswith("_") and (isinstance(held, kinds) or inspect.isfunction(held))
    }
    return sorted(member for member, held in found.items() if getattr(value, member).__doc__ and held.__doc__)


def public_names(room: str) -> list[str]:
    """What a room exports, without its version and the rooms below it, which have pages of their own."""
    module = importlib.import_module(room)
    return sorted(name for name in module.__all__ if callable(getattr(module, name)))
