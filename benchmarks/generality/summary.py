"""The figures of one half of the tables, from the rows of its cells: everything that the page and its plots show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

KEYS = ["table", "rows", "epsilon"]
KINDS = {2: "labels", 0: "targets"}
TOLD = ("auto, told", "AdaSSP", "BoostedAdaSSP", "diffprivlib", "opacus", "private constant, told")
NOT_PRIVATE = ("without privacy", "constant without privacy")
OURS = ("auto", "auto, told", "newton", "gd", "cd", "sgd", "constant")
LARGEST = 5.0  # larger ratios count as this in means, so that one lost run does not hide all others
WORSE = 1.02  # than the private constant
LOST = 5.0  # times the loss of a constant without privacy: the run diverged
NEAR = 1.5  # times the best
SMALLEST_GAP = 0.02  # of the constant's loss; smaller gaps to the model without privacy count as this
WORST = 10  # tables that are listed
QUANTILES = tuple(range(0, 101, 2))

Figures = dict[str, Any]


def summarised(models: pd.DataFrame, tuned: pd.DataFrame) -> Figures:
    """All figures of a half."""
    frame = with_ratios(models)
    found: Figures = {"tables": {}, "models": {}, "grids": {}, "curves": {}, "best": {}}
    for classes, kind in KINDS.items():
        part = frame[frame["classes"] == classes]
        groups = {str(model): group for model, group in part.groupby("model")}
        found["tables"][kind] = int(part["table"].nunique())
        found["models"][kind] = {model: model_figures(group) for model, group in groups.items()}
        found["grids"][kind] = {model: grid(group) for model, group in groups.items() if model in OURS}
        found["curves"][kind] = {model: curve(group) for model, group in groups.items()}
        found["best"][kind] = {model: quantiles(group["to_best"]) for model, group in groups.items()}
    found["worst"] = worst(frame[frame["model"] == "auto"])
    found["tuned"] = tuned_figures(tuned) if len(tuned) else {}
    return found


def later(own: pd.DataFrame, constants: pd.DataFrame, tuned: pd.DataFrame) -> Figures:
    """Those of `auto` and of tuned settings alone, for a change of which the rivals know nothing."""
    found: Figures = {}
    if len(tuned):
        found["tuned"] = tuned_figures(tuned)
    if len(own) and len(constants):
        frame = pd.concat([own[own["model"] == "auto"], constants], ignore_index=True)
        frame = with_ratios(frame.assign(loss=frame["loss"].astype(float).fillna(math.inf)))
        frame = frame[frame["model"] == "auto"]
        kinds = {kind: frame[frame["classes"] == classes] for classes, kind in KINDS.items()}
        found["models"] = {kind: {"auto": model_figures(group)} for kind, group in kinds.items()}
        found["grids"] = {kind: {"auto": grid(group)} for kind, group in kinds.items()}
    return found


def for_each_epsilon(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of all models; those without privacy, which no epsilon changes, are repeated for each of them."""
    frame = frame.assign(loss=frame["loss"].astype(float).fillna(math.inf))
    plain = frame["model"].isin(NOT_PRIVATE)
    repeated = [frame[plain].assign(epsilon=epsilon) for epsilon in sorted(frame["epsilon"].dropna().unique())]
    return pd.concat([frame[~plain], *repeated], ignore_index=True)


def with_ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """Losses over those of three others in the same cell: the private constant, the best private model, no privacy.

    A model that is told the ranges is compared with a constant that is told that of the target.
    """
    own = frame.set_index(KEYS)
    constants = {
        told: _losses(own, name) for told, name in ((True, "private constant, told"), (False, "private constant"))
    }
    told = own["model"].isin(TOLD).to_numpy()
    constant = np.where(told, constants[True].reindex(own.index), constants[False].reindex(own.index))
    best = own[~own["model"].isin(NOT_PRIVATE)].groupby(level=KEYS)["loss"].min().reindex(own.index)
    plain = _losses(own, "constant without privacy").reindex(own.index)
    figures = {"ratio": own["loss"] / constant, "to_best": own["loss"] / best, "lost": ~(own["loss"] <= LOST * plain)}
    return own.assign(**figures).reset_index().dropna(subset=["ratio", "to_best"])


def _losses(frame: pd.DataFrame, model: str) -> pd.Series:
    return frame.loc[frame["model"] == model, "loss"]


def model_figures(group: pd.DataFrame) -> Figures:
    """One line of the table of models."""
    slopes = group["slope"].dropna().astype(float)
    worse = group[group["ratio"] > WORSE]
    return {
        "cells": len(group),
        "mean": capped_mean(group["ratio"]),
        "worse": share(group["ratio"] > WORSE),
        "worse_warned": share(worse["warned"].astype(bool)),
        "to_best": [float(np.quantile(np.minimum(group["to_best"], 1e9), level)) for level in (0.5, 0.9, 0.99)],
        "near_best": share(group["to_best"] <= NEAR),
        "lost": int(group["lost"].sum()),
        "failed": int(group["refused"].notna().sum()) if "refused" in group else 0,
        "wrong": mean_or_none(group["wrong"].astype(float)),
        "slope": float(slopes.median()) if len(slopes) else None,
        "too_extreme": share(slopes < 0.5),
    }


def grid(group: pd.DataFrame) -> Figures:
    """The same for each number of rows and epsilon, with fewer figures."""
    found: Figures = {}
    for rows, line in group.groupby("rows"):
        cells = {f"{epsilon:g}": grid_cell(part) for epsilon, part in line.groupby("epsilon")}
        found[str(rows)] = {"tables": int(line["table"].nunique()), "cells": cells}
    return found


def grid_cell(part: pd.DataFrame) -> Figures:
    slopes = part["slope"].dropna().astype(float)
    worse = part[part["ratio"] > WORSE]
    return {
        "mean": capped_mean(part["ratio"]),
        "worse": share(part["ratio"] > WORSE),
        "worse_warned": share(worse["warned"].astype(bool)),
        "slope": float(slopes.median()) if len(slopes) else None,
    }


def curve(group: pd.DataFrame) -> list[list[float]]:
    """n times epsilon, and the 10 %, 50 % and 90 % quantiles of the ratio to the private constant."""
    found = []
    for size, part in group.groupby((group["rows"] * group["epsilon"]).round(3)):
        low, middle, high = np.quantile(np.minimum(part["ratio"], 1e9), (0.1, 0.5, 0.9))
        found.append([float(size), float(low), float(middle), float(high)])
    return found


def quantiles(values: pd.Series) -> list[float]:
    return [float(np.quantile(np.minimum(values, 1e9), level / 100.0)) for level in QUANTILES]


def worst(frame: pd.DataFrame) -> list[Figures]:
    """The cells with the largest ratios to the private constant, one for each table."""
    found = frame.sort_values("ratio", ascending=False).drop_duplicates("table").head(WORST)
    columns = ["table", "classes", "columns", "rows", "epsilon", "loss", "ratio", "warned"]
    return [dict(row) for row in found[columns].astype(object).to_dict("records")]


def tuned_figures(frame: pd.DataFrame) -> Figures:
    """How far `auto` is from the best setting: losses, and gaps to the model without privacy."""
    auto = frame["auto"].astype(float).fillna(math.inf)
    best, least = (
        frame["best"].astype(float).fillna(math.inf),
        np.minimum(frame["without privacy"], frame["constant"]).astype(float),
    )
    unit = SMALLEST_GAP * frame["constant"].astype(float)
    ratio, gap = auto / best, np.maximum(auto - least, unit) / np.maximum(best - least, unit)
    solvers = frame["setting"].str.split(" ").str[0].value_counts(normalize=True)
    return {
        "cells": len(frame),
        "tables": int(frame["table"].nunique()),
        "near": share(ratio <= NEAR),
        "gap_near": share(gap <= NEAR),
        "ratio": [float(np.quantile(np.minimum(ratio, 1e9), level)) for level in (0.5, 0.9, 0.99)],
        "gap": [float(np.quantile(np.minimum(gap, 1e9), level)) for level in (0.5, 0.9, 0.99)],
        "solvers": {str(name): float(value) for name, value in solvers.items()},
        "by_rows": {str(rows): share(part <= NEAR) for rows, part in ratio.groupby(frame["rows"])},
        "gap_by_rows": {str(rows): share(part <= NEAR) for rows, part in gap.groupby(frame["rows"])},
    }


def capped_mean(ratios: pd.Series) -> float:
    return float(np.minimum(ratios, LARGEST).mean())


def share(values: pd.Series) -> float | None:
    return float(values.mean()) if len(values) else None


def mean_or_none(values: pd.Series) -> float | None:
    return float(values.mean()) if values.notna().any() else None
