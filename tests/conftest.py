"""Settings shared by all tests: Hypothesis without deadlines, since these machines are noisy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("discreet", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("discreet")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def shared_data():
    """Loads a benchmark table by name; skips where the folder is absent."""

    def load(name):
        path = SHARED_DATA / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"the benchmark table {name} is not beside this checkout")
        return np.load(path, allow_pickle=False)

    return load
