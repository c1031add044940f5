"""The templates escape every text of every kind of block, and know every kind."""

from types import SimpleNamespace

import pytest
from jinja2 import UndefinedError

from discreet._common.blocks import Block, Facts, Heading, Items, Table, Text
from discreet.report.blocks import Blanks, Figure, Notice, Report, Section
from tests.report_tools import Page

HOSTILE = "</td></p><script>alert('1')</script>{{ 12347 * 3 }}{#x & \" |x|\n# line\n\n- item [a](http://b) www.c.de @d"
BLOCKS = [
    Text(HOSTILE),
    Heading(HOSTILE),
    Items((HOSTILE, HOSTILE)),
    Facts(((HOSTILE, HOSTILE),)),
    Table(HOSTILE, (HOSTILE, HOSTILE), ((HOSTILE, HOSTILE),), (1,)),
    Figure("<svg></svg>", HOSTILE),
    Notice("danger", HOSTILE, (HOSTILE,)),
    Notice("note", HOSTILE, (HOSTILE,)),
    Blanks((HOSTILE,)),
]


def page_of(*blocks):
    section = Section("name", HOSTILE, blocks)
    return Report(HOSTILE, HOSTILE, (Notice("caution", HOSTILE, (HOSTILE,)),), ((HOSTILE, HOSTILE),), (section,))


def test_the_blocks_of_this_test_are_of_all_kinds():
    assert {type(block) for block in BLOCKS} == set(Block.__subclasses__())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.kind)
def test_no_text_of_a_block_becomes_a_tag_or_an_expression(block):
    text = page_of(block).html()
    assert Page(text).tags["script"] == 0
    assert text.count("{{ 12347 * 3 }}{#x") > page_of().html().count("{{ 12347 * 3 }}")  # the words are there
    assert "37041" not in text
    assert "alert('1')" not in text  # quotes are escaped too: a text may stand in an attribute


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.kind)
def test_no_text_of_a_block_becomes_markdown(block):
    text, bare = page_of(block).markdown(), page_of().markdown()
    assert "<" not in text
    assert "://" not in text
    assert "www." not in text
    assert "[a](" not in text
    assert "\n# line" not in text
    assert "\n- item" not in text
    assert (block.kind == "figure") == (text == bare)
    if block.kind == "table":
        assert len({line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("| ")}) == 1


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_what_a_template_asks_for_and_does_not_get_is_an_error(form):
    with pytest.raises(UndefinedError):
        getattr(page_of(SimpleNamespace(kind="text")), form)()
