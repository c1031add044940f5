"""What notebooks show: tables and facts in HTML, of which no name makes markup; and a progress bar."""

from __future__ import annotations

import re
import sys
import types
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from discreet import Ledger, LogisticRegression
from discreet._common.blocks import Facts, Heading, Items, Shown, Table, Text, as_text
from discreet._common.progress import progress_bar
from discreet.metrics import evaluate
from discreet.model_selection import PrivateSearchCV, cross_val_score_private
from discreet.preprocessing import PrivateScaler

HOSTILE = '<script>alert("x")</script>{{ 7 * 7 }}'
X = np.random.default_rng(0).uniform(-1.0, 1.0, (2_000, 2))
Y = (X[:, 0] > 0.0).astype(int)
FRAME = pd.DataFrame(X, columns=["age", HOSTILE])
MODEL = LogisticRegression(classes=["no", HOSTILE], bounds=(-1.0, 1.0))
VOID = {"br", "hr", "img", "meta", "link"}


class Balanced(HTMLParser):
    """Fails where a tag is not closed; knows all tags and all texts."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    ledger = Ledger(tmp_path_factory.mktemp("notebook") / "budget.db")
    ledger.open(HOSTILE, epsilon=3.0, delta=1e-5)
    model = LogisticRegression(**MODEL.get_params() | {"ledger": ledger, "dataset": HOSTILE})
    model.fit(FRAME, np.where(Y == 1, HOSTILE, "no"))
    plain = LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0))
    return {
        "plan": model.plan_,
        "guarantee": model.guarantee_,
        "summary": model.summary(),
        "evaluation": evaluate(model, FRAME, np.where(Y == 1, HOSTILE, "no")),
        "ledger": ledger,
        "release plan": PrivateScaler(bounds=(-1.0, 1.0)).plan(1_000, 2),
        "search plan": PrivateSearchCV(plain, {"alpha": [1.0]}).plan(1_000, 2),
        "scores": cross_val_score_private(plain, X, Y, cv=2),
    }


KINDS = ["plan", "guarantee", "summary", "evaluation", "ledger", "release plan", "search plan", "scores"]


@pytest.mark.parametrize("kind", KINDS)
def test_html_is_well_formed_short_and_lets_no_name_become_markup(shown, kind):
    html = shown[kind]._repr_html_()
    page = Balanced(html)
    assert page.tags <= {"div", "style", "dl", "dt", "dd", "table", "caption", "span", "thead", "tbody", "tr", "th"} | {
        *("td", "p", "h3", "ul", "li"),
    }
    if kind in ("summary", "evaluation"):
        assert "&lt;script&gt;" in html
        assert "{{ 7 * 7 }}" in html  # a name, and no expression of a template
    assert len(html) < 20_000
    assert "epsilon" in html


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("ledger", "guarantee")])
def test_html_says_what_the_text_says(shown, kind):
    """Word by word, in the same order."""
    page = Balanced(re.sub(r"<style>.*?</style>", "", shown[kind]._repr_html_(), flags=re.DOTALL))
    words = " ".join(page.texts).replace("\u00a0", " ").split()
    assert words == str(shown[kind]).split()


def test_a_terminal_of_ipython_shows_the_text(shown):
    told = []
    shown["plan"]._repr_pretty_(types.SimpleNamespace(text=told.append), False)
    assert told == [str(shown["plan"])]


def test_guarantees_and_ledgers_tell_what_matters(shown):
    html = shown["guarantee"]._repr_html_()
    for words in ("What this means for one person", "Not covered", "entry", "relation replace"):
        assert words in html
    assert "&lt;script&gt;" in shown["ledger"]._repr_html_()
    assert "No budget is open" in Ledger("sqlite://")._repr_html_()


def test_blocks_as_plain_text():
    class Example(Shown):
        def _blocks(self):
            table = Table("", ("name", "number"), (("a", "10"), ("bc", "2")), (1,))
            return [[Heading("Title"), Text("text")], [], [Facts((("rows", "1"),)), table], [Items(("one", "two"))]]

    lines = ["Title", "text", "", "rows                1", "name  number", "a         10", "bc         2", "", "- one"]
    assert str(Example()).split("\n") == [*lines, "- two"]
    assert as_text([]) == ""


def test_a_progress_bar_in_a_notebook_needs_no_extension(monkeypatch):
    """Rich would warn that ipywidgets is missing, which is an error here."""
    seen = []

    class ZMQInteractiveShell:
        pass

    module, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython = ZMQInteractiveShell
    inner.HTML = str
    inner.display = lambda html, display_id: seen.append(html) or types.SimpleNamespace(update=seen.append)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with progress_bar("<b>fit</b>", True) as step:
            step(1, 4)
            step(2, 4)  # too soon after the first to be drawn
    assert seen[0] == "<label>&lt;b&gt;fit&lt;/b&gt; <progress></progress></label>"
    assert 'value="1" max="4"></progress> 25%' in seen[1]
    assert seen[2:] == [""]
    LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0), solver="gd", verbose=1).fit(X, Y)
    assert "LogisticRegression" in " ".join(seen)
