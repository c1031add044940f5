"""The page on preprocessing shows what its examples print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "preprocessing.md"


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
def test_the_examples_print_what_the_page_shows(capsys):
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for code, shown in blocks:
        exec(code, names)
        assert capsys.readouterr().out == shown
