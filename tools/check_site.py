"""Whether the built site needs the network: looks for everything that a browser would load from elsewhere.

Run: python tools/check_site.py site. `make docs` runs it. Links to other sites are allowed; scripts, style sheets,
pictures, fonts and frames from elsewhere are not.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("link", "href"),
}
LOADED |= {("video", "src"), ("audio", "src"), ("object", "data"), ("embed", "src"), ("image", "href")}
NOT_LOADED = {"canonical", "alternate", "author", "license", "next", "prev"}  # of <link>
ELSEWHERE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class Loads(HTMLParser):
    """Collects the addresses that a browser would fetch from another place to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        given = {name: value or "" for name, value in attrs}
        if "mermaid" in given.get("class", "").split():
            self.found.append("a diagram, for which the theme loads a script from elsewhere")
        if tag == "link" and given.get("rel", "") in NOT_LOADED:
            return
        self.found += [
            value for name, value in given.items() if (tag, name) in LOADED and ELSEWHERE.match(value) is not None
        ]
        self.found += IN_CSS.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += IN_CSS.findall(data)


def loads_from_elsewhere(folder: Path) -> list[str]:
    """One line for each address that a page or a style sheet of the folder would load."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        page = Loads()
        page.feed(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(folder)}: {address}" for address in page.found]
    for path in sorted(folder.rglob("*.css")):
        found += [
            f"{path.relative_to(folder)}: {address}" for address in IN_CSS.findall(path.read_text(encoding="utf-8"))
        ]
    return found


def main() -> int:
    """1 if the site would load something from elsewhere, or if there is no site."""
    folder = Path(sys.argv[1])
    pages = len(list(folder.rglob("*.html")))
    found = loads_from_elsewhere(folder)
    print("\n".join(found) if found else f"{pages} pages in {folder}/index.html and below; none needs the network.")
    return int(bool(found) or pages == 0)


if __name__ == "__main__":
    sys.exit(main())
