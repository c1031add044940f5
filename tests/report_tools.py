"""What the tests of reports share: a strict reader of pages, and the words and numbers of either form."""

import html
import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")
SECTIONS = ["trained", "promise", "coefficients", "evaluation", "plan", "ledger", "card", "signature"]


class Page(HTMLParser):
    """Reads a page, and fails if a tag is not closed where it should be."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.attributes, self.headings, self.ids = [], [], [], []
        self.tags, self.words, self.styles = Counter(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            self.styles.append(data)
        elif not {"figure", "nav", "head"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        """What stands on the page outside of pictures, title and links."""
        return " ".join(" ".join(self.words).split())


def check_page(text):
    """The page is well formed, refers to nothing outside, and can be read by those who do not see it."""
    page = Page(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert len(set(page.ids)) == len(page.ids)
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "srcset", "style", "xlink:href"), (tag, name)
        if tag in ("path", "circle", "text") and name in ("d", "cx", "cy", "x", "y"):
            assert not re.search("nan|inf", value), (tag, name, value)
        if name == "href":
            assert value == "data:," or value.removeprefix("#") in page.ids
        if name == "aria-labelledby":
            assert set(value.split()) <= set(page.ids)
    assert not re.search(r"url\(|@import|expression", "".join(page.styles))
    assert page.tags["script"] == page.tags["img"] == page.tags["iframe"] == page.tags["object"] == 0
    assert page.tags["table"] == page.tags["caption"]
    assert page.tags["svg"] == page.tags["title"] - 1 == page.tags["desc"] == page.tags["figure"]
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS
    return page


def plain_markdown(text):
    """The words of a Markdown text, without marks."""
    text = re.sub(r"^(\| -.*|> ?)$", "", text, flags=re.MULTILINE)
    return html.unescape(re.sub(r"\\([^\w\s])", r"\1", text))


def numbers(text):
    """How often each number occurs in a text."""
    return Counter(NUMBER.findall(text.replace("\u00a0", " ")))
