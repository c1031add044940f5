"""The page on checking one's own loss or solver shows what its examples print.

Three audits run, each of which raises a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


@pytest.mark.slow
def test_the_examples_print_what_the_page_shows(capsys, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```\n+(?:[^`]*?\n\n)?```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    page = ModuleType("testing_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # where dataclasses look up the types of their fields
    for code, shown in blocks:
        exec(compile(code, str(PAGE), "exec", dont_inherit=True), page.__dict__)
        assert capsys.readouterr().out == shown
