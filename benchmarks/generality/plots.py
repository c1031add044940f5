"""Plots of docs/benchmarks/generality.md: both halves of the tables in each."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from generality.summary import QUANTILES, Figures

SHOWN = (
    "auto",
    "auto, told",
    "newton",
    "gd",
    "cd",
    "sgd",
    "constant",
    "AdaSSP",
    "BoostedAdaSSP",
    "diffprivlib",
    "opacus",
    "without privacy",
)
NAMES = {"auto, told": "auto, told the ranges", "opacus": "Opacus"}
HALVES = {"development": ("tab:blue", "development half"), "final": ("tab:orange", "kept-back half")}
LIMITS = (0.2, 5.0)
RIVALS = ("auto", "auto, told", "private constant", "AdaSSP", "BoostedAdaSSP", "diffprivlib", "opacus")
COLOURS = dict(
    zip(RIVALS, ("tab:blue", "tab:cyan", "black", "tab:green", "tab:olive", "tab:red", "tab:purple"), strict=True)
)


def ratio_to_constant(summaries: dict[str, Figures], kind: str, path: Path) -> None:
    """One panel for each model: the ratio to the private constant against n times epsilon."""
    shown = [model for model in SHOWN if any(model in summary["curves"][kind] for summary in summaries.values())]
    columns = 4
    lines = -(-len(shown) // columns)
    figure, panels = plt.subplots(lines, columns, figsize=(12, 2.7 * lines), sharex=True, sharey=True, squeeze=False)
    for panel, model in zip(panels.flat, shown, strict=False):
        panel.axhline(1.0, color="black", linewidth=0.8)
        for half, (colour, label) in HALVES.items():
            found = summaries.get(half, {}).get("curves", {}).get(kind, {}).get(model)
            if found:
                sizes, low, middle, high = zip(*found, strict=True)
                panel.fill_between(sizes, low, high, color=colour, alpha=0.2, linewidth=0)
                panel.plot(sizes, middle, color=colour, marker=".", label=label)
        panel.set(title=NAMES.get(model, model), xscale="log", yscale="log", ylim=LIMITS)
        panel.set_yticks([0.2, 0.5, 1.0, 2.0, 5.0], ["0.2", "0.5", "1", "2", "5"])
        panel.minorticks_off()
    for panel in panels.flat[len(shown) :]:
        panel.set_visible(False)
    for panel in panels.flat[max(0, len(shown) - columns) : len(shown)]:  # the last of each column
        panel.set_xlabel("rows x epsilon")
        panel.tick_params(labelbottom=True)
    for line in panels:
        line[0].set_ylabel("loss / private constant")
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="upper center", ncols=2, frameon=False)
    _save(figure, path, top=1.0 - 0.3 / figure.get_figheight())


def ratio_to_best(summaries: dict[str, Figures], kind: str, path: Path) -> None:
    """The share of cells in which a model's loss is at most a given multiple of the best private one."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharex=True, sharey=True)
    for panel, (half, (_, label)) in zip(panels, HALVES.items(), strict=True):
        known = summaries.get(half, {}).get("best", {}).get(kind, {})
        for model in [model for model in RIVALS if model in known]:
            panel.plot(known[model], QUANTILES, color=COLOURS[model], label=NAMES.get(model, model))
        panel.axvline(1.5, color="grey", linewidth=0.8, linestyle=":")
        panel.set(title=label if known else f"{label}: not run", xscale="log", xlim=(1.0, 10.0), ylim=(0, 100))
        panel.set_xticks([1, 1.5, 2, 3, 5, 10], ["1", "1.5", "2", "3", "5", "10"])
        panel.minorticks_off()
        panel.set_xlabel("loss / best private loss of the cell")
    panels[0].set_ylabel("% of cells")
    panels[0].legend(loc="lower right", fontsize="small")
    _save(figure, path)


def _save(figure: plt.Figure, path: Path, top: float = 1.0) -> None:
    figure.tight_layout(rect=(0.0, 0.0, 1.0, top))
    figure.savefig(path, dpi=110)
    plt.close(figure)
