"""The text of docs/benchmarks/rivals.md that depends on results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from rivals import plots
from rivals.summary import (
    CEILING,
    CLEARLY,
    CONSTANT,
    KINDS,
    LEVEL,
    OURS,
    OWN,
    TOLD,
    ceilings,
    frame_of,
    losses_to,
    means,
    ordered,
    private,
    shapes,
    summary,
)

TITLES = {"numbers": "Numbers to predict", "labels": "Labels"}
MOST_NAMED = 8  # cells in a sentence "worse than"


def text(results: Any, folder: Path) -> str:
    """The page between its markers; draws the plots into the folder."""
    frame = frame_of(results)
    plots.draw_all(frame, folder)
    parts = ["## In short\n", in_short(frame)]
    for kind in KINDS:
        parts += [f"## {TITLES[kind]}: all methods\n", overview(frame, kind)]
    parts += ["## Which method?\n", questions()]
    for kind in KINDS:
        parts += [f"## {TITLES[kind]}: who wins where\n", winners(frame, kind)]
    parts += ["## Where this library is worse\n", worse(frame)]
    parts += ["## No answer\n", refusals(frame)]
    for kind in KINDS:
        parts += [f"## {TITLES[kind]}: every table\n", every_table(frame, kind)]
    return "\n".join(parts)


def in_short(frame: pd.DataFrame) -> str:
    """Means over all tables, of the methods that were run on all of them."""
    lines = []
    for kind, score in KINDS.items():
        for epsilon, found in means(frame, kind).groupby(level="epsilon"):
            said = f"- {TITLES[kind]}, epsilon {epsilon:g}: mean {score} {placed(found[complete(found)].mean())}"
            if kind == "labels":
                losses = means(frame, kind, "log_loss").xs(epsilon, level="epsilon")
                said += f"; mean log-loss {placed(losses[complete(losses)].mean(), larger_is_better=False)}"
            lines.append(f"{said}.")
    return "\n".join(lines) + "\n"


def placed(mean: pd.Series, larger_is_better: bool = True) -> str:
    """Our mean and its place among the private methods, beside the best rival and the constant."""
    mean = mean.sort_values(ascending=not larger_is_better)
    others = [name for name in mean.index if name not in (*OWN, CONSTANT)]
    ranked = [name for name in mean.index if name == OURS or name not in OWN]
    return (
        f"{mean[OURS]:.3f} for `discreet`, place {1 + ranked.index(OURS)} of {len(ranked)} "
        f"(told the ranges {mean[TOLD]:.3f}; the best rival, {others[0]}, {mean[others[0]]:.3f}; "
        f"the private constant {mean[CONSTANT]:.3f})"
    )


def complete(found: pd.DataFrame) -> list[str]:
    """Methods that were run on all tables."""
    return [name for name in found if found[name].notna().all()]


def overview(frame: pd.DataFrame, kind: str) -> str:
    found = summary(frame, kind)
    epsilons = [name for name in found if isinstance(name, float)]
    head = ["method", *(f"epsilon {epsilon:g}" for epsilon in epsilons), "farthest behind scikit-learn, epsilon 1"]
    head += ["best or level", "below the constant", "no answer", "seconds (most)"]
    if kind == "numbers":
        head.insert(-1, "R² below -1")
    rows = []
    for method, line in found.iterrows():
        row = [_bold(str(method)), *(_number(line[epsilon]) for epsilon in epsilons)]
        row += [f"{line['worst']:.3f} ({line['worst table']})", f"{line['best']} of {line['of']}"]
        row += [
            f"{line['below constant']:.0%}",
            f"{line['refused']:.0%}",
            f"{line['seconds']:.2g} ({line['slowest']:.2g})",
        ]
        if kind == "numbers":
            row.insert(-1, f"{line['diverged']:.0%}")
        rows.append(row)
    tables = means(frame, kind).index.unique("table")
    rows.append(
        [f"*{CEILING}*", *[_number(ceilings(frame).reindex(tables).mean())] * len(epsilons)]
        + [""] * (len(head) - len(epsilons) - 1)
    )
    parts = [f"Mean {KINDS[kind]} over {len(tables)} tables:\n", table(head, rows)]
    if kind == "labels":
        parts += ["\nMean log-loss, smaller is better; above 3 counts as 3:\n", log_losses(frame)]
    return "\n".join(parts) + "\n"


def log_losses(frame: pd.DataFrame) -> str:
    found = means(frame, "labels", "log_loss")
    epsilons = list(found.index.unique("epsilon"))
    mean = found.groupby(level="epsilon").mean()
    rows = [
        [_bold(name), *(_number(mean[name].get(epsilon)) for epsilon in epsilons)]
        for name in ordered(found, larger_is_better=False)
    ]
    tables = found.index.unique("table")
    rows.append([f"*{CEILING}*", *[_number(ceilings(frame, "log_loss").reindex(tables).mean())] * len(epsilons)])
    return table(["method", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], rows)


def questions() -> str:
    asked = {
        "epsilon": "For my epsilon? Means over all tables; R² below -1 counts as -1.",
        "rows": "For my number of rows? At epsilon 1; higher is better, and what is beyond the edge is drawn there.",
        "columns": "For my number of columns? At epsilon 1; higher is better.",
        "seconds": "How long does it take?",
    }
    return "\n\n".join(f"**{question}**\n\n![{name}](rivals-{name}.png)" for name, question in asked.items()) + "\n"


def winners(frame: pd.DataFrame, kind: str) -> str:
    """The best method of each table and epsilon with its score, beside that of `discreet`."""
    found, sizes, top = means(frame, kind), shapes(frame), ceilings(frame)
    seeds, epsilons = frame.groupby("method")["seed"].nunique(), list(found.index.unique("epsilon"))
    rows = []
    for name in sorted(found.index.unique("table"), key=lambda name: sizes["rows"][name]):
        row = [name, f"{sizes['rows'][name]:,} x {sizes['columns'][name]}", _number(top.get(name))]
        for epsilon in epsilons:
            scores = found.loc[(name, epsilon)].dropna()
            best = scores.idxmax()
            once = " (one seed)" if seeds[best] == 1 else ""
            level = scores[OURS] >= scores.max() - LEVEL
            row.append(
                f"**{OURS}** {scores[OURS]:.3f}" if level else f"{best}{once} {scores.max():.3f} ({scores[OURS]:.3f})"
            )
        rows.append(row)
    head = ["table", "rows x columns", CEILING, *(f"epsilon {epsilon:g}" for epsilon in epsilons)]
    said = (
        f"The best method and its {KINDS[kind]}; in brackets that of `discreet` where it is more than {LEVEL:g} below."
    )
    return f"{said}\n\n{table(head, rows)}\n"


def worse(frame: pd.DataFrame) -> str:
    """One line for each method that is clearly better than ours somewhere."""
    lines = [
        f"A method is named where its mean score is more than {CLEARLY:g} above that of `discreet`, to which nothing\n"
        "is told, and more than twice the standard error of the difference over seeds (of which mbi has one).\n"
    ]
    for kind in KINDS:
        scores = means(frame, kind)
        for rival in [name for name in ordered(scores) if name not in (OURS, TOLD)]:
            found, told = (losses_to(frame, kind, rival, ours) for ours in (OURS, TOLD))
            if found:
                pairs = f"{len(found)} of {scores[rival].notna().sum()} pairs of a table and an epsilon"
                where = f"{TITLES[kind].lower()}: {pairs}, {len(told)} when told the ranges"
                lines.append(f"- **Worse than {rival}** ({where}): {named(found)}.")
    return "\n".join(lines) + "\n"


def named(found: Sequence[tuple[str, float, float, float]]) -> str:
    """The largest differences first."""
    largest = sorted(found, key=lambda one: one[2] - one[3])
    shown = [
        f"{name} at epsilon {epsilon:g} ({ours:.3f} against {rival:.3f})"
        for name, epsilon, ours, rival in largest[:MOST_NAMED]
    ]
    more = len(found) - MOST_NAMED
    return ", ".join(shown) + (f", and {more} more" if more > 0 else "")


def refusals(frame: pd.DataFrame) -> str:
    own = private(frame)
    counts = own[own["refused"].notna()].groupby(["method", "refused"]).size()
    if counts.empty:
        return "Every method gave an answer in every cell.\n"
    shown: Counter[tuple[str, str]] = Counter()
    for (method, why), count in counts.items():
        shown[method, re.sub(r"\d+", "…", why)] += count  # one line for messages that differ in a number only
    lines = [f"- {method}: {why} ({count} cells)" for (method, why), count in sorted(shown.items())]
    return "\n".join(lines) + "\n"


def every_table(frame: pd.DataFrame, kind: str) -> str:
    """Mean scores, epsilon by epsilon."""
    found, sizes = means(frame, kind), shapes(frame)
    methods, parts = ordered(found), []
    for epsilon, part in found.groupby(level="epsilon"):
        scores = part.droplevel("epsilon")
        names = sorted(scores.index, key=lambda name: sizes["rows"][name])
        rows = [[name, *(_number(scores.loc[name].get(method)) for method in methods)] for name in names]
        parts.append(f"{KINDS[kind]} at epsilon {epsilon:g}:\n\n{table(['table', *methods], rows)}\n")
    return "\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: Any) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.3f}"


def _bold(name: str) -> str:
    return f"**{name}**" if name in OWN else name
