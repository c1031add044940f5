"""Results in a file of JSON lines, one for each cell, appended as they come: a stop loses the cells in flight only."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from framework.cells import Cell, Numbers


class Store:
    """Numbers by key. A line that a stop cut short is ignored, and its cell is measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers: dict[str, Numbers] = {}
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            self.numbers[entry["key"]] = entry["numbers"]
        self._whole = text.endswith("\n") or not text

    def add(self, key: str, cell: Cell, numbers: Numbers) -> None:
        """Keep the numbers of a cell, in memory and on the disk."""
        self.numbers[key] = numbers
        about = {"experiment": cell.experiment, "dataset": cell.dataset, "method": cell.method}
        line = json.dumps({"key": key, **about, "numbers": plain(numbers)})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(("" if self._whole else "\n") + line + "\n")
        self._whole = True

    def forget(self, experiments: set[str]) -> None:
        """Remove the numbers of these experiments, and of no other, from memory and from the disk."""
        kept = []
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry["experiment"] in experiments:
                self.numbers.pop(entry["key"], None)
            else:
                kept.append(line)
        if self.path.exists():
            self.path.write_text("".join(f"{line}\n" for line in kept))
        self._whole = True

    def __contains__(self, key: str) -> bool:
        return key in self.numbers

    def get(self, key: str) -> Numbers | None:
        return self.numbers.get(key)


def plain(value: Any) -> Any:
    """The value in JSON's types; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
