"""Plots of the scoreboard, one for each question: which method for my epsilon, my rows, my columns, and how long."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from framework import registry

from rivals.summary import CEILING, KINDS, by_band, ceilings, means, private

COLOURS = 96  # of the pictures, to keep them small
DRAWN = {"numbers": 1.4, "labels": 0.5}  # distances behind scikit-learn above it are drawn there
AT = 1.0  # the epsilon of the plots against rows and columns


def draw_all(frame: pd.DataFrame, folder: Path) -> None:
    of_epsilon(frame, folder / "rivals-epsilon.png")
    of_sizes(frame, "rows", folder / "rivals-rows.png")
    of_sizes(frame, "columns", folder / "rivals-columns.png")
    of_seconds(frame, folder / "rivals-seconds.png")


def of_epsilon(frame: pd.DataFrame, path: Path) -> None:
    """Mean scores over the tables against epsilon."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6))
    for panel, (kind, score) in zip(panels, KINDS.items(), strict=True):
        scores = means(frame, kind)
        found = scores.groupby(level="epsilon").mean()
        found = found.where(scores.notna().groupby(level="epsilon").all())  # only where all tables were run
        for method in found:
            values = found[method].dropna()
            panel.plot(values.index, values, **_style(method))
        tables = scores.index.unique("table")
        panel.axhline(ceilings(frame).reindex(tables).mean(), **_style(CEILING) | {"marker": ""})
        panel.set(xscale="log", xlabel="epsilon", ylabel=f"mean {score}", title=_title(kind))
        panel.set_xticks(found.index, [f"{epsilon:g}" for epsilon in found.index])
        panel.minorticks_off()
    _save(figure, panels, path)


def of_sizes(frame: pd.DataFrame, what: str, path: Path) -> None:
    """How far behind scikit-learn, for ranges of rows or columns, at epsilon 1."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6))
    for panel, (kind, score) in zip(panels, KINDS.items(), strict=True):
        found = by_band(frame, kind, what, AT)
        places = np.arange(len(found))
        for method in found:
            panel.plot(places, found[method].clip(upper=DRAWN[kind]), **_style(method))
        panel.axhline(0.0, color="grey", ls="--")
        panel.set(ylabel=f"behind scikit-learn ({score})", title=_title(kind), xlabel=f"{what} of the training table")
        panel.set_xticks(places, list(found.index))
        panel.set_ylim(top=1.05 * DRAWN[kind])
        panel.invert_yaxis()
    _save(figure, panels, path)


def of_seconds(frame: pd.DataFrame, path: Path) -> None:
    """Median processor time of a fit on each table against its rows."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True)
    for panel, kind in zip(panels, KINDS, strict=True):
        own = private(frame)[lambda found, kind=kind: found["kind"] == kind]
        for method, cells in own[own["refused"].isna()].groupby("method"):
            found = cells.groupby("table").agg({"rows": "first", "seconds": "median"}).sort_values("rows")
            panel.plot(found["rows"], found["seconds"].clip(lower=1e-4), **_style(str(method)))
        panel.set(xscale="log", yscale="log", xlabel="rows trained on", title=_title(kind))
    panels[0].set_ylabel("seconds of processor time for a fit")
    _save(figure, panels, path)


def _style(method: str) -> dict:
    return {"label": method, "lw": 1.3, "ms": 6, **registry.methods()[method].style}


def _title(kind: str) -> str:
    return {"numbers": "numbers to predict", "labels": "labels"}[kind]


def _save(figure, panels, path: Path) -> None:
    """One legend below both panels; few colours, since the files are kept in the repository."""
    from PIL import Image

    known = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
        panel.grid(alpha=0.3)
    figure.legend(known.values(), known.keys(), loc="lower center", ncols=7, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0.0, 0.09, 1.0, 1.0))
    content = io.BytesIO()
    figure.savefig(content, dpi=90)
    plt.close(figure)
    Image.open(content).convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS).save(path, optimize=True)
