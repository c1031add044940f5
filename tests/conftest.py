"""Settings shared by all tests: Hypothesis without deadlines, since machines are noisy, and `--quick`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("discreet", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("discreet")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="one case of every test, and none that is marked slow")


def pytest_collection_modifyitems(config, items):
    """Keep the first case of each test for `--quick`: all that a room does is tried then, if not with everything."""
    if config.getoption("quick"):
        first = {}
        for item in items:
            if not item.get_closest_marker("slow"):
                first.setdefault((item.path, item.cls, item.originalname), item)
        chosen = set(first.values())
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = first.values()


@pytest.fixture
def shared_data():
    """Loads a benchmark table by name; skips where the folder is absent."""

    def load(name):
        path = SHARED_DATA / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"the benchmark table {name} is not beside this checkout")
        return np.load(path, allow_pickle=False)

    return load
