"""Write the tables of docs/benchmarks/generality.md from the results of `run.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from generality.run import EPSILONS, FOLDER, ROWS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "generality.md"
KEYS = ["table", "rows", "epsilon"]
LARGEST = 5.0  # larger ratios count as this in means, so that one lost run does not hide all others
WORSE = 1.02
MODELS = ("auto", "newton", "gd", "cd", "without privacy")


def main() -> None:
    found = with_ratios(results())
    text = PAGE.read_text()
    for classes, name in ((2, "labels"), (0, "targets")):
        for model in MODELS:
            part = found[(found["classes"] == classes) & (found["model"] == model)]
            text = replaced(text, f"{name} {model}", grid(part, losses))
    labels = found[(found["classes"] == 2) & (found["model"] == "auto")]
    text = replaced(text, "warned", grid(labels, slopes_and_warnings))
    counts = found.drop_duplicates("table")["classes"].value_counts()
    told = f"{counts.sum()} tables to develop on: {counts[2]} with labels, {counts[0]} with a number to predict."
    PAGE.write_text(replaced(text, "tables", told))
    print(PAGE)


def results() -> pd.DataFrame:
    """All finished cells; the model without privacy, which no epsilon changes, is repeated for each of them."""
    files = sorted((FOLDER / "development").glob("*.json"))
    frame = pd.DataFrame([row for file in files for row in json.loads(file.read_text())])
    plain = frame["model"] == "without privacy"
    repeated = [frame[plain].assign(epsilon=epsilon) for epsilon in EPSILONS]
    return pd.concat([frame[~plain], *repeated], ignore_index=True)


def with_ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """The losses over those of the private constant of the same cell."""
    constant = frame[frame["model"] == "private constant"].set_index(KEYS)["loss"]
    own = frame.set_index(KEYS)
    return own.assign(ratio=own["loss"] / constant.reindex(own.index)).reset_index()


def grid(frame: pd.DataFrame, cell) -> str:
    """A line for each number of rows, a column for each epsilon."""
    lines = ["| rows | tables | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |"]
    lines.append("| --- " * (2 + len(EPSILONS)) + "|")
    for rows in ROWS:
        part = frame[frame["rows"] == rows]
        if not part.empty:
            cells = [cell(part[part["epsilon"] == epsilon]) for epsilon in EPSILONS]
            lines.append(f"| {rows:,} | {part['table'].nunique()} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def losses(part: pd.DataFrame) -> str:
    ratios = part["ratio"]
    return f"{np.minimum(ratios, LARGEST).mean():.3f} ({(ratios > WORSE).mean():.0%})"


def slopes_and_warnings(part: pd.DataFrame) -> str:
    worse = part[part["ratio"] > WORSE]
    warned = "none worse" if worse.empty else f"{worse['warned'].astype(bool).mean():.0%} warned"
    slope = part["slope"].astype(float).median()  # of most tables there is none where all columns are lost in noise
    return f"{'-' if np.isnan(slope) else f'{slope:.2f}'} ({warned})"


def replaced(text: str, name: str, content: str) -> str:
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    first, last = text.index(start) + len(start), text.index(end)
    return text[:first] + content + text[last:]


if __name__ == "__main__":
    main()
