"""Settings from which the best is picked by its loss on held-out rows.

That is not private: it shows what tuning could win.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.solvers import SOLVERS

RUNS = 3  # of each setting, with other noise
PENALTIES = (1e-3, 1e-2, 1e-1)  # the default is 1e-5

GRID: dict[str, tuple[dict[str, Any], ...]] = {
    "newton": tuple({"steps": steps, "clip": clip} for steps in (4, 8, 16, 30) for clip in (None, 1.2, 3.0)),
    "gd": tuple({"steps": steps, "clip": clip} for steps in (5, 20, 80) for clip in (0.3, 1.0, 3.0)),
    "cd": tuple({"passes": passes, "clip": clip} for passes in (2, 10, 40) for clip in (0.3, 1.0, 3.0)),
    "sgd": tuple({"clip": clip} for clip in (0.3, 1.0, 3.0)),
}


def settings() -> list[tuple[str, Any, dict[str, Any]]]:
    """A description, a solver and parameters of the estimator for each setting; the defaults of the solvers too."""
    found: list[tuple[str, Any, dict[str, Any]]] = []
    for name, choices in GRID.items():
        base = SOLVERS[name]()
        found.append((name, base, {}))
        found += [(f"{name} {_told(choice)}", replace(base, **choice), {}) for choice in choices]
    for name in ("sufficient-statistics", "objective-perturbation"):
        found.append((name, name, {}))
    for name in ("newton", "gd"):
        found += [(f"{name} alpha={alpha:g}", SOLVERS[name](), {"alpha": alpha}) for alpha in PENALTIES]
    return found


def _told(choice: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in choice.items() if value is not None)
