"""Intervals of private fits: how often they hold, how wide they are, how often they are refused.

Tables are drawn from populations with known coefficients. For each: the share of intervals at 95 % that hold (all
coefficients, and the worst one), their width over that of the usual interval without privacy, the share of true null
hypotheses that are rejected at 5 %, and refused fits. The standard error of a coverage is that over fits. The core
table has 400 fits in each cell and takes half an hour on two cores; designs of the literature stand beside what is
printed there.
"""

from __future__ import annotations

import warnings

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of
from scipy.special import expit

from discreet import LinearRegression, LogisticRegression

FITS, QUICK_FITS = 400, 4
WANTED = (True, "robust")
Z = 1.959964


def cells_of(name):
    def cells(quick):
        for dataset in datasets_of(name)[: 3 if quick else None]:
            for inference in WANTED:
                fits = QUICK_FITS if quick else FITS
                yield Cell(name, dataset.name, "intervals", {"inference": inference, "fits": fits})

    return cells


def measure(cell):
    """Draw, fit and count, as often as the cell says."""
    dataset, found = datasets()[cell.dataset], []
    for seed in range(cell.setting["fits"]):
        X, y = dataset.load(np.random.default_rng([7, seed]))
        fit = fitted(dataset, X, y, cell.setting["inference"], seed)
        if fit.valid:
            found.append((fit.params, fit.bse, usual_errors(dataset, X, y)))
    refused = cell.setting["fits"] - len(found)
    if not found:
        return {"refused": refused}
    params, errors, usual = (np.array(part) for part in zip(*found, strict=True))
    return {"refused": refused} | judged(params, errors, usual, dataset.facts["truth"])


def fitted(dataset, X, y, inference, seed):
    settings = {"epsilon": dataset.facts["epsilon"], "inference": inference, "random_state": seed}
    kind = LogisticRegression if dataset.classification else LinearRegression
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = {"classes": [0, 1]} if dataset.classification else {}
        return kind(**settings, **labels, **dataset.facts["declared"]).fit(X, y).inference_


def judged(params, errors, usual, truth):
    """Coverage, width and rejections from the estimates of all fits that were not refused."""
    held = np.abs(params - truth) <= Z * errors
    null = truth == 0.0
    rejected = np.abs(params[:, null]) > Z * errors[:, null] if null.any() else np.empty((0, 0))
    return {
        "coverage": held.mean(),
        "standard_error": held.mean(axis=1).std() / np.sqrt(len(held)),
        "worst": held.mean(axis=0).min(),
        "width": np.median(errors / usual),
        "widths": 2.0 * Z * np.median(errors, axis=0),
        "usual_widths": 2.0 * Z * np.median(usual, axis=0),
        "rejected": rejected.mean() if rejected.size else None,
    }


def usual_errors(dataset, X, y):
    """Standard errors without privacy, of least squares or of maximum likelihood."""
    rows, truth = np.column_stack([X, np.ones(len(X))]), dataset.facts["truth"]
    if dataset.classification:
        p = expit(rows @ truth)
        return np.sqrt(np.diag(np.linalg.inv(rows.T @ (rows * (p * (1.0 - p))[:, None]))))
    residuals = y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    return np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)) * residuals.var())


def page_of(name):
    """One line for each population and kind of interval."""

    def page(results, folder):
        rows = []
        for dataset in datasets_of(name):
            for inference in WANTED:
                found = results.one(dataset=dataset.name, inference=inference)
                if found is not None:
                    rows.append([*dataset.facts["short"], str(inference), *numbers(found)])
        header = ["loss", "epsilon", "rows", "columns", "columns are", "errors are", "correlation", "inference"]
        return table([*header, *NUMBERS], rows)

    return page


NUMBERS = ("coverage", "worst coefficient", "null rejected", "width", "refused")


def numbers(found):
    if "coverage" not in found:
        return ["", "", "", "", f"{found['refused']}"]
    rejected = "" if found["rejected"] is None else f"{found['rejected']:.3f}"
    held = f"{found['coverage']:.3f} ± {found['standard_error']:.3f}"
    return [held, f"{found['worst']:.3f}", rejected, f"{found['width']:.2f}", f"{found['refused']}"]


def designs_page(results, folder):
    """Designs of the literature: our coverage and widths beside the printed ones, and widths without privacy."""
    rows = []
    for dataset in datasets_of("inference-designs"):
        for inference in WANTED:
            found = results.one(dataset=dataset.name, inference=inference)
            if found is not None and "coverage" in found:
                ours, usual = (between(found[what][:-1]) for what in ("widths", "usual_widths"))
                head = [dataset.name, str(inference), f"{found['coverage']:.3f} ± {found['standard_error']:.3f}"]
                printed = dataset.facts["printed"]
                rows.append([*head, ours, usual, f"{found['width']:.2f}", f"{found['refused']}", printed])
    header = ["design", "inference", "coverage", "widths of slopes", "without privacy", "ratio", "refused", "printed"]
    return table(header, rows)


def between(widths):
    low, high = min(widths), max(widths)
    return f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f}-{high:.3f}"


TITLES = {
    "inference": "intervals of private fits: coverage, width and refusals",
    "inference-harder": "the same where columns are correlated or errors skewed",
    "inference-designs": "the same on designs of the literature, beside printed figures",
}
suite = [
    Experiment(
        name,
        "inference",
        title,
        cells_of(name),
        measure,
        designs_page if name == "inference-designs" else page_of(name),
        file="inference.md",
    )
    for name, title in TITLES.items()
]
