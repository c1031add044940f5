"""The table of a data set, kept while its cells are measured: cells of one table mostly follow each other."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from framework.registry import datasets


@lru_cache(maxsize=2)  # of a process; the larger tables have some hundred megabytes
def loaded(name: str) -> Any:
    """What `load` gives."""
    return datasets()[name].load()
