"""Figures of the scoreboard from its cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from framework import registry

LEAST_R2 = -1.0  # worse ones count as this in means: predictions far outside the target's range
LARGEST_LOG_LOSS = 3.0
LEVEL = 0.005  # scores this close to the best one count as best, too
CLEARLY = 0.02  # by how much one is called worse than another
CEILING, CONSTANT, OURS, TOLD = "without privacy", "private constant", "discreet", "discreet, told"
OWN = (OURS, TOLD, "discreet, gd, told")
KINDS = {"numbers": "R²", "labels": "share of right labels"}
BANDS = {"rows": (0, 500, 2_000, 10_000), "columns": (0, 10, 20)}


def frame_of(results: Any) -> pd.DataFrame:
    """One line for each cell that has numbers; `score` is cut below, `diverged` says where that was."""
    known = registry.datasets()
    rows = [
        {"table": cell.dataset, "method": cell.method, "epsilon": cell.setting["epsilon"], "seed": cell.seed}
        | {"kind": "labels" if known[cell.dataset].classification else "numbers"}
        | numbers
        for cell, numbers in results.select()
    ]
    frame = pd.DataFrame(rows)
    for name in {"refused", "log_loss"} - set(frame):
        frame[name] = None
    score = frame["score"].astype(float).fillna(-np.inf)
    frame["diverged"] = score < LEAST_R2
    frame["score"] = score.clip(lower=LEAST_R2)
    losses = (
        frame["log_loss"]
        .astype(float)
        .where(frame["kind"] == "numbers", frame["log_loss"].astype(float).fillna(np.inf))
    )
    frame["log_loss"] = losses.clip(upper=LARGEST_LOG_LOSS)
    return frame


def private(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["epsilon"].notna()]


def means(frame: pd.DataFrame, kind: str, what: str = "score") -> pd.DataFrame:
    """Mean over seeds: a line for each table and epsilon, a column for each private method."""
    own = private(frame)
    own = own[own["kind"] == kind]
    return own.pivot_table(index=["table", "epsilon"], columns="method", values=what, aggfunc="mean")


def ceilings(frame: pd.DataFrame, what: str = "score") -> pd.Series:
    """What scikit-learn reaches without privacy, by table."""
    return frame[frame["method"] == CEILING].groupby("table")[what].mean()


def shapes(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows and columns that are trained on, by table."""
    return frame.groupby("table")[["rows", "columns"]].first()


def ordered(table: pd.DataFrame, larger_is_better: bool = True) -> list[str]:
    """Methods from the best mean at epsilon 1 to the worst."""
    return list(table.xs(1.0, level="epsilon").mean().sort_values(ascending=not larger_is_better).index)


def summary(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """A line for each private method; `worst` is the largest distance behind scikit-learn on a table, at epsilon 1."""
    scores, own = means(frame, kind), private(frame)[lambda found: found["kind"] == kind]
    behind = -scores.sub(ceilings(frame), axis=0, level="table")
    best = scores.max(axis=1)
    lines = {}
    for method in ordered(scores):
        cells, mine = own[own["method"] == method], scores[method].dropna()
        at_one = behind[method].xs(1.0, level="epsilon").dropna()
        lines[method] = {
            **{
                epsilon: mine.xs(epsilon, level="epsilon").mean()
                for epsilon in sorted(set(own["epsilon"]))
                if epsilon in mine.index.get_level_values(1)
            },
            "worst": at_one.max(),
            "worst table": at_one.idxmax(),
            "best": int((mine >= best[mine.index] - LEVEL).sum()),
            "of": len(mine),
            "below constant": float((mine < scores[CONSTANT][mine.index] - CLEARLY).mean()),
            "refused": float(cells["refused"].notna().mean()),
            "diverged": float(cells["diverged"].mean()),
            "seconds": float(cells["seconds"].median()),
            "slowest": float(cells["seconds"].max()),
        }
    return pd.DataFrame.from_dict(lines, orient="index")


def losses_to(frame: pd.DataFrame, kind: str, rival: str, ours: str = OURS) -> list[tuple[str, float, float, float]]:
    """Where a rival is clearly better, and by more than twice the standard error: table, epsilon, our score, its score.

    Seeds are compared one by one, as they have the same rows. With one seed there is no standard error.
    """
    own = private(frame)[lambda found: (found["kind"] == kind) & found["refused"].isna()]
    both = own.pivot_table(index=["table", "epsilon", "seed"], columns="method", values="score")
    if rival not in both or ours not in both:
        return []
    both = both[[ours, rival]].dropna()
    found = []
    for (table, epsilon), part in both.groupby(level=["table", "epsilon"]):
        ahead = part[rival] - part[ours]
        error = float(ahead.std() / np.sqrt(len(ahead))) if len(ahead) > 1 else 0.0
        if ahead.mean() > max(CLEARLY, 2.0 * error):
            found.append((str(table), float(epsilon), float(part[ours].mean()), float(part[rival].mean())))
    return found


def by_band(frame: pd.DataFrame, kind: str, what: str, epsilon: float) -> pd.DataFrame:
    """Mean distance behind scikit-learn at an epsilon, for ranges of rows or of columns."""
    scores = means(frame, kind).xs(epsilon, level="epsilon")
    behind = -scores.sub(ceilings(frame), axis=0).dropna(how="all")
    sizes = shapes(frame)[what].reindex(behind.index)
    places = np.digitize(sizes, BANDS[what]) - 1
    return behind.groupby(places).mean().rename(index=lambda place: band_name(what, int(place)))


def band_name(what: str, place: int) -> str:
    edges = BANDS[what]
    if place == 0:
        return f"below {edges[1]:,}"
    return f"{edges[place]:,} and more" if place == len(edges) - 1 else f"{edges[place]:,} to {edges[place + 1] - 1:,}"
