"""No two classes that a digest may meet have one name in it."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections import Counter

import pytest

import discreet
from discreet._common.digest import digest_of

# Classes that no plan holds, or only one of the two.
NEVER_IN_DIGESTS = {
    *("Cells", "Certificate", "Composition", "ElasticNet", "Evaluation", "Limits", "Objective", "Table", "Target"),
}


def dataclasses_of_the_package():
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name.endswith("__main__"):
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # PyTorch is not here
            continue
        yield from (
            kind
            for kind in names.values()
            if isinstance(kind, type) and kind.__module__ == module.name and dataclasses.is_dataclass(kind)
        )


def test_dataclasses_of_one_name_state_another_for_digests():
    kinds = set(dataclasses_of_the_package())
    names = Counter(kind.__qualname__ for kind in kinds if "digest_name" not in vars(kind))
    assert len(kinds) > 100
    assert {name for name, count in names.items() if count > 1} <= NEVER_IN_DIGESTS


@pytest.mark.parametrize("new_place", ["discreet.solvers.elsewhere", "discreet.anything"])
def test_a_digest_does_not_change_when_a_class_moves(new_place):
    first, moved = (dataclasses.make_dataclass("GradientDescent", ["steps"], frozen=True) for _ in range(2))
    first.__module__, moved.__module__ = "discreet.solvers.gradient_descent", new_place
    assert digest_of(first(3)) == digest_of(moved(3))
    moved.__module__ = "elsewhere.package"
    assert digest_of(first(3)) != digest_of(moved(3))
