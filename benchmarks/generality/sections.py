"""The generated sections of the page: sentences and tables with the figures of both halves side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from generality.cells import EPSILONS, ROWS
from generality.summary import KINDS, NEAR, WORSE, Figures

NAMES = {
    "auto": "`auto` (the default)",
    "auto, told": "`auto`, told the ranges",
    "newton": "`newton`",
    "gd": "`gd`",
    "cd": "`cd`",
    "sgd": "`sgd`",
    "constant": "`constant`",
    "private constant": "private constant",
    "private constant, told": "private constant, told the range",
    "AdaSSP": "AdaSSP, told the ranges",
    "BoostedAdaSSP": "BoostedAdaSSP, told the ranges",
    "diffprivlib": "diffprivlib, told the ranges",
    "opacus": "Opacus, told the ranges",
    "without privacy": "scikit-learn without privacy",
    "constant without privacy": "constant without privacy",
}
HALVES = {"development": "development", "final": "kept-back"}
PREDICTED = {"labels": "labels", "targets": "numbers to predict"}
Summaries = dict[str, Figures]


def sections(summaries: Summaries) -> dict[str, str]:
    """All of them by the name that marks their place on the page."""
    found = {"tables": counts(summaries), "short": short(summaries), "worst": worst(summaries)}
    for kind in KINDS.values():
        found[f"{kind} models"] = models(summaries, kind)
        found[f"{kind} rivals"] = rivals(summaries, kind)
        for model in ("auto", "auto, told"):
            found[f"{kind} {model}"] = grid(summaries, kind, model, ratio_cell)
    found["calibration"] = grid(summaries, "labels", "auto", slope_cell)
    for kind in KINDS.values():
        found[f"{kind} warned"] = grid(summaries, kind, "auto", warned_cell)
    newer = {half: found["later"] for half, found in summaries.items() if found.get("later")}
    found["later tuned"] = tuned(newer) if newer else "Not run."
    found["later labels"] = later(newer)
    return found | {"tuned": tuned(summaries), "changes": changed(summaries)}


def later(summaries: Summaries) -> str:
    """`auto` after a change that the rivals need not be run again for; labels alone."""
    if not summaries:
        return "Not run."
    halves = [of(summaries, half, "labels", "auto") for half in HALVES]
    fits = f"{pair(halves, 'worse', percent)} of {pair(halves, 'cells', plain)} fits are worse than the constant, "
    warned = (
        f"of which {pair(halves, 'worse_warned', percent)} were warned. Mean ratio {pair(halves, 'mean', number)}, "
    )
    slopes = f"median slope {pair(halves, 'slope', number)}, too extreme {pair(halves, 'too_extreme', percent)}."
    told = fits + warned + slopes
    return grid(summaries, "labels", "auto", ratio_cell) + "\n\n" + told


def counts(summaries: Summaries) -> str:
    lines = []
    for half, name in HALVES.items():
        if half not in summaries:
            lines.append(f"- the {name} half: **not run yet**")
            continue
        found = summaries[half]["tables"]
        labels, targets = found["labels"], found["targets"]
        told = f"{labels + targets} tables, {labels} with labels, {targets} with a number to predict"
        lines.append(f"- the {name} half: {told}")
    return "\n".join(lines)


def short(summaries: Summaries) -> str:
    """The figures of the default in a few sentences for each half."""
    lines = []
    for half, name in HALVES.items():
        if half in summaries:
            lines += [
                f"- {name} half, {told}: {default_in_short(summaries[half], kind)}" for kind, told in PREDICTED.items()
            ]
        near = summaries.get(half, {}).get("tuned")
        if near:
            lines.append(
                f"- {name} half: `auto` has at most {NEAR:g} times the loss of the best tuned setting in "
                f"{percent(near['near'])} of {near['cells']} cells, and at most {NEAR:g} times its gap to the model "
                f"without privacy in {percent(near['gap_near'])}."
            )
    return "\n".join(lines)


def default_in_short(summary: Figures, kind: str) -> str:
    own = summary["models"][kind]["auto"]
    cells = [cell for line in summary["grids"][kind]["auto"].values() for cell in line["cells"].values()]
    above = sum(cell["mean"] > WORSE for cell in cells)
    return (
        f"of {own['cells']:,} fits of `auto`, {percent(own['worse'])} are worse than the private constant "
        f"({percent(own['worse_warned'])} of these came with a warning) and {own['lost']} diverged; the mean over "
        f"tables is more than 2 % above the constant in {above} of {len(cells)} combinations of rows and epsilon."
    )


def models(summaries: Summaries, kind: str) -> str:
    """Every model against the private constant."""
    head = ["model", "mean ratio", "worse than the constant", "of these warned", "diverged"]
    head += ["wrong labels", "slope", "too extreme"] if kind == "labels" else []
    lines = []
    for model, name in NAMES.items():
        halves = [of(summaries, half, kind, model) for half in HALVES]
        if not any(halves):
            continue
        private = "constant" not in model or model == "constant"
        line = [name, pair(halves, "mean", number), pair(halves, "worse", percent)]
        ours = model in ("auto", "auto, told", "newton", "gd", "cd", "sgd")
        line.append(pair(halves, "worse_warned", percent) if ours else "")
        line.append(pair(halves, "lost", plain))
        if kind == "labels":
            line += [pair(halves, "wrong", percent_with_tenths)]
            line += [
                pair(halves, key, show) if private else ""
                for key, show in (("slope", number), ("too_extreme", percent))
            ]
        lines.append(line)
    return markdown(head, lines)


def rivals(summaries: Summaries, kind: str) -> str:
    """The loss over the best private one of the cell."""
    head = ["model", "cells", "median", "90 % of cells below", "99 % below", f"at most {NEAR:g} times the best"]
    lines = []
    for model, name in NAMES.items():
        halves = [of(summaries, half, kind, model) for half in HALVES]
        if any(halves) and "without privacy" not in model:
            levels = [" / ".join(ratio(half["to_best"][at]) if half else "-" for half in halves) for at in range(3)]
            lines.append([name, pair(halves, "cells", plain), *levels, pair(halves, "near_best", percent)])
    return markdown(head, lines)


def of(summaries: Summaries, half: str, kind: str, model: str) -> Figures | None:
    return summaries.get(half, {}).get("models", {}).get(kind, {}).get(model)


def grid(summaries: Summaries, kind: str, model: str, cell: Callable[[Figures | None], str]) -> str:
    """A line for each number of rows, a column for each epsilon; development and kept-back half in each cell."""
    known = {half: summaries.get(half, {}).get("grids", {}).get(kind, {}).get(model, {}) for half in HALVES}
    run = {epsilon for found in known.values() for line in found.values() for epsilon in line["cells"]}
    epsilons = [name for name in (f"{epsilon:g}" for epsilon in EPSILONS) if name in run]
    lines = []
    for rows in map(str, ROWS):
        found = [known[half].get(rows) for half in HALVES]
        if any(found):
            tables = " / ".join(str(line["tables"]) if line else "0" for line in found)
            cells = [" / ".join(cell(line["cells"].get(name)) if line else "-" for line in found) for name in epsilons]
            lines.append([f"{int(rows):,}", tables, *cells])
    return markdown(["rows", "tables", *(f"epsilon {name}" for name in epsilons)], lines)


def ratio_cell(cell: Figures | None) -> str:
    return f"{cell['mean']:.2f} ({percent(cell['worse'])})" if cell else "-"


def slope_cell(cell: Figures | None) -> str:
    return number(cell["slope"]) if cell else "-"


def warned_cell(cell: Figures | None) -> str:
    if cell is None:
        return "-"
    return "none" if cell["worse_warned"] is None else percent(cell["worse_warned"])


def tuned(summaries: Summaries) -> str:
    """`auto` against the best of the grid, by rows, and which solver was best."""
    known = {half: summaries.get(half, {}).get("tuned") or None for half in HALVES}
    sizes = [rows for rows in map(str, ROWS) if any(found and rows in found["by_rows"] for found in known.values())]
    lines = []
    for name, key, rows_key, levels in (
        ("loss", "near", "by_rows", "ratio"),
        ("gap", "gap_near", "gap_by_rows", "gap"),
    ):
        shares = [
            " / ".join(percent(found[rows_key].get(rows)) if found else "-" for found in known.values())
            for rows in sizes
        ]
        middle, high = (
            " / ".join(ratio(found[levels][at]) if found else "-" for found in known.values()) for at in (0, 1)
        )
        lines.append([name, pair(list(known.values()), key, percent), *shares, middle, high])
    head = [
        "",
        f"cells within {NEAR:g} times",
        *(f"{int(rows):,} rows" for rows in sizes),
        "median ratio",
        "90 % below",
    ]
    told = []
    for half, found in known.items():
        if found:
            best = ", ".join(f"`{name}` {percent(value)}" for name, value in found["solvers"].items())
            told.append(f"{HALVES[half]} half: {found['cells']} cells of {found['tables']} tables; best were {best}")
    return markdown(head, lines) + "\n\n" + "\n".join(f"- {line}." for line in told)


def worst(summaries: Summaries) -> str:
    head = ["half", "table", "predicts", "columns", "rows", "epsilon", "loss", "over the private constant", "warned"]
    lines = []
    for half, name in HALVES.items():
        for row in summaries.get(half, {}).get("worst", []):
            about = [
                name,
                row["table"],
                "labels" if row["classes"] else "a number",
                str(row["columns"]),
                f"{row['rows']:,}",
            ]
            lines.append(
                [
                    *about,
                    f"{row['epsilon']:g}",
                    ratio(row["loss"]),
                    ratio(row["ratio"]),
                    "yes" if row["warned"] else "no",
                ]
            )
    return markdown(head, lines)


def changed(summaries: Summaries) -> str:
    """What rose and fell since the earlier version, on the half to develop on."""
    found = summaries.get("development", {}).get("changes")
    if not found:
        return "No earlier results are kept."
    head = ["model", "cells", "median change", "2 % better", "10 % better", "2 % worse", "10 % worse"]
    lines = []
    for model, own in found.items():
        shares = [percent(value) for value in (*own["better"], *own["worse"])]
        lines.append([NAMES[model], f"{own['cells']:,}", f"{own['median'] - 1.0:+.1%}", *shares])
    text = markdown(head, lines) + "\n\nThe losses of `auto` that rose most:\n\n"
    rows = [
        [row["table"], f"{row['rows']:,}", f"{row['epsilon']:g}", ratio(row["earlier"]), ratio(row["loss"])]
        for row in found["auto"]["most"]
        if row["change"] > WORSE
    ]
    return text + markdown(["table", "rows", "epsilon", "loss before", "loss now"], rows)


def pair(halves: Sequence[Figures | None], key: str, show: Callable[[Any], str]) -> str:
    """The figures of both halves."""
    return " / ".join(show(half[key]) if half else "-" for half in halves)


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def percent_with_tenths(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def ratio(value: float | None) -> str:
    """Three digits after the point, or the order of magnitude of a lost run."""
    return "-" if value is None else f"{value:.3f}" if value < 1000.0 else f"{value:.0e}"


def plain(value: float | None) -> str:
    return "-" if value is None else f"{value:,}"
