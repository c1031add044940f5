"""A summary for people: a table of the columns, and below it what its words mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.blocks import Facts, Groups, Table, Text, numbers_of
from discreet._common.text import one_line
from discreet.estimators.reading.linear_form import has_end
from discreet.privacy.statement import leaks_told, meaning_of, rounded_up
from discreet.solvers.plan import describe_scaling

if TYPE_CHECKING:
    from discreet.estimators.reading.summary import ModelSummary

NAME = 34  # characters of a column's name, at most
HEADER = ("column", "low", "high", "per unit", "per range", "noise")
INTERVALS = "Estimates with intervals (the coefficients above are shrunk to predict well, and have none)"
DOUBTFUL = 2.0  # standard deviations of noise that a coefficient must exceed for its sign to be told


def blocks_of(summary: ModelSummary, columns: int) -> Groups:
    """The whole summary."""
    shown = sorted(most_moving(summary, columns))
    numbers = numbers_of(HEADER)
    outputs = [
        [Text(f"{heading(summary, output)}:"), Table("", HEADER, tuple(lines_of(summary, output, shown)), numbers)]
        for output in range(summary.form.intercept.size)
    ]
    intervals = () if summary.inference is None else ([Text(f"{INTERVALS}:")], *summary.inference.blocks(shown=shown))
    return [[_facts(summary)], *outputs, *intervals, [_notes(summary, shown)], [_privacy(summary)]]


def _facts(summary: ModelSummary) -> Facts:
    release = summary.guarantee.release
    lines = {"model": summary.estimator, "solver": summary.solver}
    if summary.chosen_because:
        lines["chosen because"] = summary.chosen_because
    if release is not None and release.rows is not None:
        lines["table"] = f"{release.rows:,} {summary.guarantee.unit}s, {summary.form.columns:,} columns"
    if summary.prediction_only:
        lines["coefficients"] = f"for prediction only: {summary.prediction_only}"
    if summary.form.labels:
        lines["classes"] = ", ".join(repr(label) for label in summary.form.labels)
    return Facts(tuple(lines.items()))


def heading(summary: ModelSummary, output: int) -> str:
    """How the coefficients of an output become its score."""
    labels = summary.form.labels
    if summary.form.link == "log":
        return "Prediction = exp(intercept + the sum of (per unit x clipped entry))"
    if not labels:
        return "Prediction = intercept + the sum of (per unit x clipped entry)"
    what = "log-odds" if summary.form.link == "sigmoid" else "score"
    one = one_line(repr(labels[output if len(labels) > 2 else 1]), NAME)
    return f"The {what} of class {one} = intercept + the sum of (per unit x clipped entry)"


def most_moving(summary: ModelSummary, columns: int, output: int | None = None) -> list[int]:
    """The columns that can move a score most, or that of one output, the largest first."""
    outputs = summary.per_range if output is None else summary.per_range[[output]]
    reach = np.nan_to_num(np.abs(outputs), nan=np.inf).max(axis=0)
    return np.argsort(-reach, kind="stable")[: max(columns, 0)].tolist()


def lines_of(summary: ModelSummary, output: int, shown: list[int], longest: int = NAME) -> list[tuple[str, ...]]:
    """The cells below `HEADER`: one line for each of these columns, and one for the intercept."""
    form, noise = summary.form, summary.noise
    names, per_range = form.shown_names, summary.per_range
    rows = []
    for j in shown:
        deviation = None if noise.per_unit is None else noise.per_unit[j]
        cells = (_end(form.low[j]), _end(form.high[j]), _short(form.coef[output, j]), _short(per_range[output, j]))
        rows.append((one_line(names[j], longest), *cells, _short(deviation)))
    return [*rows, ("(intercept)", "", "", _short(form.intercept[output]), "", _short(noise.intercept))]


def _notes(summary: ModelSummary, shown: list[int]) -> Facts:
    hidden = summary.form.columns - len(shown)
    more = f"{hidden:,} columns that can move it less are not shown; " if hidden else ""
    clipped = "entries outside are moved to the nearest end before anything is predicted"
    per_unit = "how far one more unit of the column moves the value; within low and high."
    if summary.form.link == "log":
        per_unit = f"{per_unit} exp(per unit) is the rate ratio per unit: what a prediction is multiplied by."
    notes = {
        "low, high": f"{more}{clipped}. How they were found: {ranges_told(summary)}.",
        "per unit": per_unit,
        "per range": "how far the way from low to high moves it; compares columns of different units.",
        "noise": noise_told(summary),
    }
    return Facts(tuple(notes.items()))


def ranges_told(summary: ModelSummary) -> str:
    """How the ends of the columns were found."""
    return describe_scaling(summary.scaling, summary.guarantee.is_private) if summary.scaling else "not known"


def noise_told(summary: ModelSummary) -> str:
    """Where the noise of the coefficients comes from, and how many coefficients may be nothing else."""
    noise = summary.noise
    if noise.per_unit is None:
        return f"not known: {noise.why}."
    sentence = f"standard deviation of the privacy noise in per unit: {noise.why}."
    unsure = (noise.per_unit > 0.0) & (np.abs(summary.form.coef[0]) < DOUBTFUL * noise.per_unit)
    if not unsure.any():
        return sentence
    count = f"{int(unsure.sum()):,} of {unsure.size:,} coefficients"
    return f"{sentence} {count} are below {DOUBTFUL:g} times it: their signs may be noise."


def _privacy(summary: ModelSummary) -> Facts:
    guarantee, lines = summary.guarantee, meaning_of(summary.guarantee)
    if guarantee.is_private:
        epsilon, delta = rounded_up(guarantee.epsilon, 6), rounded_up(guarantee.delta, 4)
        lines = [f"epsilon {epsilon}, delta {delta}, relation {guarantee.relation}", *lines]
    parts = {"privacy": lines, "Not covered": leaks_told(guarantee)}
    return Facts(tuple(("" if k else name, text) for name, texts in parts.items() for k, text in enumerate(texts)))


def _end(end: float) -> str:
    return _short(end) if has_end(np.asarray(end)) else "none"


def _short(number: Any) -> str:
    return "-" if number is None or np.isnan(number) else f"{number:.4g}"
