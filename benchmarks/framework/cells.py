"""A cell: one data set, one method, one setting and one seed, which together give a few numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Numbers = dict[str, Any]  # what a cell gives: JSON values; {"failed": "why"} where it failed


@dataclass(frozen=True)
class Cell:
    """What is measured once and then kept.

    Parameters
    ----------
    experiment, dataset, method : str
        Their names. An experiment without data sets or methods uses names of its own.
    setting : mapping
        JSON values: epsilon, passes, the grid to tune over, whatever the experiment varies.
    seed : int
        Of the split, or of the noise; or the number of a repetition.
    """

    experiment: str
    dataset: str
    method: str
    setting: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def key(self, versions: str = "") -> str:
        """A digest of everything that defines the cell; `versions` tells those of code and data apart."""
        what = [self.experiment, self.dataset, self.method, dict(self.setting), self.seed, versions]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:24]

    def describe(self) -> str:
        """One line for the log."""
        setting = ", ".join(f"{name}={value}" for name, value in self.setting.items())
        return f"{self.experiment}: {self.dataset}, {self.method}" + (f" ({setting})" if setting else "")
