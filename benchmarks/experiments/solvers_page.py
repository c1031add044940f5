"""Tables and plots of docs/benchmarks/solvers.md, a section for each problem."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from framework.results import Results as Measured

from discreet.solvers import SOLVERS

WORST_DRAWN = 10.0  # relative errors above it are drawn there, with a triangle that points up
COLOURS = 128  # of the pictures, to keep them small
LINEAR_BELOW = 1e-4  # where errors of both signs occur, the axis is linear this close to 0

# A hue for each family of solvers; a shade, a marker and a line style for each member.
STYLES = {
    "cd": ("#08306b", "o", "-"),
    "greedy-cd": ("#2171b5", "s", "--"),
    "sketched": ("#6baed6", "D", ":"),
    "screened": ("#9ecae1", "P", "-."),
    "gd": ("#7f2704", "o", "-"),
    "admm": ("#a63603", "P", "-."),
    "sgd": ("#d94801", "s", "--"),
    "svrg": ("#fd8d3c", "D", ":"),
    "ftrl": ("#fdbe5c", "v", "-."),
    "dual-cd": ("#238b45", "P", "-"),
    "newton": ("#000000", "o", "-"),
    "sufficient-statistics": ("#777777", "s", "--"),
    "frank-wolfe": ("#54278f", "o", "-"),
    "mirror-descent": ("#9e6fd0", "s", "--"),
    "bolt-on": ("#00676b", "o", "-"),
    "output-perturbation": ("#1fa3a8", "s", "--"),
    "objective-perturbation": ("#66d0d2", "D", ":"),
    "exponential": ("#d01c8b", "o", "-"),
}
PLAIN = ("#777777", "P", ":")  # of a solver without a style of its own

Cell = dict[str, Any]
Results = dict[str, Cell]


def page_of(measured: Measured, epsilons: Sequence[float], runs: int, folder: Path | None) -> dict[str, str]:
    """The sections by problem, those whose cells are all there; plots are drawn where there is a folder for them."""
    results: Results = {}
    for cell, numbers in measured.select():
        results[name_of(cell.dataset, cell.method, cell.setting)] = numbers
    incomplete = {cell.dataset for cell in measured.missing}
    sections = {}
    for problem in dict.fromkeys(cell.dataset for cell in measured.cells):
        if problem not in incomplete:
            sections[problem] = table(results, problem, epsilons, runs)
            if folder is not None:
                plot(results, problem, epsilons, folder)
    return sections


def name_of(problem: str, method: str, setting: Any) -> str:
    if method == "yardsticks":
        return problem
    if setting.get("tuned"):
        return tuned_key(problem, method)
    return key_of(problem, method, setting["epsilon"], setting["declared"])


def key_of(problem: str, solver: str, epsilon: float, declared: bool) -> str:
    return f"{problem} {solver} {epsilon:g}" + (" declared" if declared else "")


def tuned_key(problem: str, solver: str) -> str:
    return f"{problem} {solver} tuned"


def rows_of(
    results: Results, problem: str, epsilons: Sequence[float], declared: bool
) -> Iterator[tuple[str, list[Cell]]]:
    """The solvers with results at some epsilon, the best at the middle one first."""
    rows = {s: [results[key_of(problem, s, e, declared)] for e in epsilons] for s in SOLVERS}
    fitted = {s: cells for s, cells in rows.items() if any("error" in cell for cell in cells)}
    middle = len(epsilons) // 2
    yield from sorted(fitted.items(), key=lambda row: mean(row[1][middle], "error"))


def mean(cell: Cell, what: str) -> float:
    return float(np.mean(cell[what])) if "error" in cell else np.inf


def shown_error(cell: Cell, runs: int) -> str:
    """Mean and standard deviation; a dagger where fewer runs were made."""
    if "error" not in cell:
        return "refused" if cell else ""
    found = cell["error"]
    mark = "" if len(found) == runs else f" ({len(found)} †)"
    return f"{np.mean(found):.1e} ± {np.std(found):.0e}{mark}"


def shown_excess(cell: Cell) -> str:
    found = cell.get("excess")
    return f"{np.mean(found):.1e}" if found else ""


def shown_score(cell: Cell) -> str:
    if "error" not in cell:
        return ""
    score = mean(cell, "score")
    return f"{score:.3f}" if score > -100.0 else f"{score:.0e}"


def table(results: Results, problem: str, epsilons: Sequence[float], runs: int) -> str:
    """A line for each solver, one for the best constant and the papers' figures."""
    facts = results[problem]
    metric = "accuracy" if facts["classification"] else "R²"
    lines = [
        f"{facts['rows']:,} rows fitted, {facts['test_rows']:,} held out, {facts['columns']:,} columns. F* = "
        f"{facts['optimum']:.4g}; {metric} of the optimum {facts['optimum_score']:.3f}.",
        "",
        "| solver | " + " | ".join(f"error, ε = {e:g}" for e in epsilons) + " | ",
        "| --- " * (3 + 2 * len(epsilons)) + "|",
    ]
    at = len(epsilons) // 2
    lines[2] += " | ".join([f"excess, ε = {epsilons[at]:g}", *(f"{metric}, ε = {e:g}" for e in epsilons), "seconds |"])
    for declared in (False, True) if facts["declarable"] else (False,):
        for solver, cells in rows_of(results, problem, epsilons, declared):
            name = f"`{solver}`" + (", declared bounds" if declared else "")
            lines.append(_line(name, cells, at, runs))
    for solver in SOLVERS:
        if (cell := results.get(tuned_key(problem, solver))) is not None:
            cells = [cell if k == at else {} for k in range(len(epsilons))]
            lines.append(_line(f"`{solver}`, tuned (not private)", cells, at, runs))
    constant = [f"{facts['constant']:.1e}"] * len(epsilons) + [""] + [f"{facts['constant_score']:.3f}"] * len(epsilons)
    lines.append("| " + " | ".join(["best constant, not private", *constant, ""]) + " |")
    for what, (epsilon, error) in facts["papers"].items():
        fields = [f"{error:.1e}" if e == epsilon else "" for e in epsilons] + [""] * (1 + len(epsilons))
        lines.append("| " + " | ".join([f"papers: {what}", *fields, ""]) + " |")
    return "\n".join([*lines, "", *notes(results, problem, epsilons)])


def _line(name: str, cells: Sequence[Cell], at: int, runs: int) -> str:
    """One row of the table; seconds and excess are those of the middle epsilon."""
    middle = cells[at]
    seconds = f"{np.median(middle['seconds']):.2f}" if "error" in middle else ""
    errors = [shown_error(cell, runs) for cell in cells]
    return "| " + " | ".join([name, *errors, shown_excess(middle), *map(shown_score, cells), seconds]) + " |"


def notes(results: Results, problem: str, epsilons: Sequence[float]) -> list[str]:
    """Which solvers were given another form of the problem, and which took none."""
    cells = {s: results[key_of(problem, s, epsilons[len(epsilons) // 2], False)] for s in SOLVERS}
    other: dict[str, list[str]] = {}
    absent: dict[str, list[str]] = {}
    for solver, cell in cells.items():
        if "refused" in cell:
            absent.setdefault(cell["refused"], []).append(f"`{solver}`")
        elif cell["form"]:
            other.setdefault(cell["form"], []).append(f"`{solver}`")
    lines = [f"- In place of the penalty: {form} for {', '.join(who)}." for form, who in other.items()]
    return lines + [f"- Not here: {', '.join(who)}; {reason}." for reason, who in absent.items()]


def plot(results: Results, problem: str, epsilons: Sequence[float], folder: Path) -> None:
    """Relative error against epsilon, one line for each solver; a second panel for declared bounds."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    facts = results[problem]
    panels = (False, True) if facts["declarable"] else (False,)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.0 + 4.3 * len(panels), 5.4), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, declared in zip(axes[0], panels, strict=True):
        draw_panel(axis, results, problem, epsilons, declared)
        if len(panels) > 1:
            axis.set_title("declared bounds" if declared else "nothing declared", fontsize=10)
    scale_errors(axes[0, 0], results, problem, epsilons, panels)
    axes[0, 0].set_ylabel("relative error of the objective")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    figure.suptitle(problem, fontsize=11)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(folder / f"solvers-{problem}.png", optimize=True)


def draw_panel(axis: Any, results: Results, problem: str, epsilons: Sequence[float], declared: bool) -> None:
    facts = results[problem]
    rows = list(rows_of(results, problem, epsilons, declared))
    for place, (solver, cells) in enumerate(rows):
        colour, marker, line = STYLES.get(solver, PLAIN)
        aside = 1.03 ** (place - len(rows) / 2)  # so that equal results do not hide each other
        known = [(e * aside, mean(c, "error")) for e, c in zip(epsilons, cells, strict=True) if "error" in c]
        heights = [min(error, WORST_DRAWN) for _, error in known]
        beyond = [x for x, error in known if error > WORST_DRAWN]
        axis.plot([x for x, _ in known], heights, line, color=colour, marker=marker, ms=5, lw=1.3, label=solver)
        axis.plot(beyond, [WORST_DRAWN] * len(beyond), "^", color=colour, ms=10)
    axis.axhline(facts["constant"], color="grey", ls="--", lw=1, label="best constant")
    for (what, (at, error)), marker in zip(facts["papers"].items(), "*X", strict=False):
        axis.plot([at], [error], marker, color="#d01c3f", markersize=12, mec="white", label=f"papers: {what}", zorder=5)
    axis.set_xscale("log")
    axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    axis.minorticks_off()
    axis.set_xlabel("ε")
    axis.grid(axis="y", color="#dddddd", lw=0.6)


def scale_errors(axis: Any, results: Results, problem: str, epsilons: Sequence[float], panels: Sequence[bool]) -> None:
    """A logarithmic axis; where clipping beats the optimum, one that is logarithmic on both sides of 0."""
    errors = [mean(c, "error") for d in panels for _, cells in rows_of(results, problem, epsilons, d) for c in cells]
    errors += [results[problem]["constant"], *(error for _, error in results[problem]["papers"].values())]
    bottom, top = min(errors), 2.0 * min(max(errors), WORST_DRAWN)
    if bottom > 0.0:
        axis.set_yscale("log")
        axis.set_ylim(0.5 * bottom, top)
        return
    axis.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=0.5)
    axis.set_ylim(2.0 * min(bottom, -0.5 * LINEAR_BELOW), top)
