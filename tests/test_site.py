"""The docs site: every page is in its navigation, links lead somewhere, nothing comes from elsewhere, examples run."""

from __future__ import annotations

import runpy
import warnings

import pytest

from tests.doc_names import ROOT
from tools.check_site import loads_from_elsewhere
from tools.site_pages import (
    OUTSIDE,
    ROOMS,
    example_text,
    examples,
    members_of,
    navigation,
    public_names,
    reference_pages,
    with_site_links,
)


def places(entry):
    """All pages below an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [place for value in values for place in places(value)]


def test_every_page_is_in_the_navigation_once():
    found = [place for place in places(navigation()) if not place.startswith(("gallery/", "api/"))]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(found) == sorted(pages | set(OUTSIDE.values()))


def test_every_example_and_room_is_in_the_navigation():
    found = set(places(navigation()))
    assert {f"gallery/{path.stem}.md" for path in examples()} <= found
    assert {f"api/{room}.md" for room in ROOMS} <= found


@pytest.mark.parametrize(
    ("uri", "link", "moved"),
    [
        ("plans.md", "[x](../README.md#more)", "[x](project/overview.md#more)"),
        ("guarantees/cd.md", "[x](../plans.md)", "[x](../plans.md)"),
        ("project/overview.md", "[x](docs/guarantees/cd.md)", "[x](../guarantees/cd.md)"),
        ("project/benchmarks.md", "[x](../docs/defaults.md)", "[x](../defaults.md)"),
        ("plans.md", "[x](../Makefile)", "x"),
        ("plans.md", "[x](#glossary)", "[x](#glossary)"),
        ("plans.md", "```\n[x](../Makefile)\n```", "```\n[x](../Makefile)\n```"),
    ],
)
def test_links_between_files_become_links_between_pages(uri, link, moved):
    assert with_site_links(link, uri) == moved


def test_the_reference_has_every_public_name_with_its_methods():
    pages = dict(reference_pages())
    assert all(f"::: {room}.{name}\n" in pages[f"api/{room}.md"] for room in ROOMS for name in public_names(room))
    assert {"fit", "predict", "plan", "to_sql"} <= set(members_of("discreet", "LogisticRegression"))
    assert "epsilon" not in members_of("discreet", "LogisticRegression")


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/x.css">',
        "<style>@import url(https://fonts.example/x.css)</style>",
        '<img src="http://example/x.png">',
        '<pre class="mermaid"></pre>',
    ],
)
def test_a_page_that_loads_something_from_elsewhere_is_found(page, tmp_path):
    (tmp_path / "good.html").write_text('<a href="https://example.org">a link</a><img src="own.png"><script>1</script>')
    assert loads_from_elsewhere(tmp_path) == []
    (tmp_path / "page.html").write_text(page)
    assert len(loads_from_elsewhere(tmp_path)) == 1


@pytest.mark.parametrize("path", examples(), ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs(path, capsys, tmp_path, monkeypatch):
    title, description, code = example_text(path)
    assert title
    assert description
    assert code.startswith(("import", "from"))
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []  # an example leaves nothing behind
