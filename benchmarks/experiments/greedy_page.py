"""The tables and figures of the experiment on greedy descent."""

from __future__ import annotations

import math

import numpy as np
from framework import plots
from framework.markdown import beside, number, spread, table
from framework.registry import datasets_of, methods, methods_of

NAME = "greedy"
MAIN = ("dp-gcd", "dp-gcd-signed", "dp-gcd-claimed", "dp-cd", "dp-sgd", "dp-sgd-claimed", "dp-sgd-poisson", "auto")
RULES = ("dp-gcd", "dp-gcd, gs-s", "dp-gcd, gs-q", "dp-gcd-signed", "dp-cd", "dp-sgd")


def page(results, folder):
    shown = [dataset for dataset in datasets_of(NAME) if any(True for _ in results.select(dataset=dataset.name))]
    sparse = [d for d in shown if "support" in d.facts]
    main = (*MAIN, *(one.name for one in methods_of(NAME) if one.name not in MAIN + RULES))  # those of new files last
    draw(results, shown, main, folder / "papers-greedy.png", "passes")
    draw(results, sparse, RULES, folder / "papers-greedy-rules.png", "passes")
    draw(results, shown, main, folder / "papers-greedy-time.png", "seconds")
    draw_optima(results, shown, folder / "papers-greedy-optima.png")
    parts = ["### Figure 5.4.1: relative error against passes", "![Relative error](papers-greedy.png)"]
    parts += [errors(results, shown, main), "### Table D.4: support", supports(results, sparse)]
    parts += ["### Figure D.2.2: rules", "![Rules](papers-greedy-rules.png)", rules(results, sparse)]
    parts += ["### Table D.5: chosen passes, clip and step", settings(results, shown)]
    parts += ["### Figure D.2.3: run time", "![Relative error against time](papers-greedy-time.png)"]
    parts += ["### Figure D.2.1: quasi-sparsity", "![Optima](papers-greedy-optima.png)", optima(results, shown)]
    return "\n\n".join(parts)


def best_of(results, dataset, name):
    """The cell whose tuning error is the least, and its numbers; as in the thesis, passes are tuned too."""
    found = [(c, n) for c, n in results.select(dataset=dataset.name, method=name) if "error" in n]
    return min(found, key=lambda pair: pair[1].get("tuned", np.mean(pair[1]["error"])), default=None)


def label_of(name):
    return methods()[name].style.get("label", name)


def errors(results, shown, names):
    """Our mean over five fresh runs with the deviation; printed means in parentheses."""
    rows = []
    for dataset in shown:
        printed, row = dataset.facts.get(NAME, {}), [dataset.name]
        for name in names:
            best = best_of(results, dataset, name)
            of = printed.get({"dp-gcd": "dp-gcd-claimed", "dp-sgd": "dp-sgd-claimed"}.get(name, name))
            row.append("" if best is None else beside(spread(best[1]["error"]), of))
        optimum = results.one(dataset=dataset.name, method="optimum")
        rows.append([*row, "" if optimum is None else number(optimum["at zero"])])
    return table(["problem", *map(label_of, names), "error at w = 0"], rows)


def supports(results, sparse):
    """Right / wrong non-zeros on average over the runs, printed ones in parentheses."""
    rows = []
    for dataset in sparse:
        optimum = results.one(dataset=dataset.name, method="optimum")
        true = "" if optimum is None else f"{optimum['support']} ({dataset.facts['support']})"
        row = [dataset.name, true]
        for name in ("dp-cd", "dp-sgd", "dp-gcd", "dp-gcd-signed", "dp-gcd-claimed"):
            best = best_of(results, dataset, name)
            if best is None:
                row.append("")
                continue
            printed = dataset.facts["printed support"]
            of = printed.get({"dp-gcd": "dp-gcd-claimed", "dp-sgd": "dp-sgd-claimed"}.get(name, name))
            right, wrong = (number(float(np.mean(best[1][side]))) for side in ("right", "wrong"))
            row.append(beside(f"{right} / {wrong}", of))
        rows.append(row)
    names = ("dp-cd", "dp-sgd", "dp-gcd", "dp-gcd-signed", "dp-gcd-claimed")
    return table(["problem", "non-zeros of the optimum", *map(label_of, names)], rows)


def rules(results, sparse):
    rows = []
    for dataset in sparse:
        found = [best_of(results, dataset, name) for name in RULES]
        rows.append([dataset.name, *("" if best is None else spread(best[1]["error"]) for best in found)])
    return table(["problem", *map(label_of, RULES)], rows)


def settings(results, shown):
    """Passes, clip, step: ours, and the printed ones in parentheses."""
    names = ("dp-gcd", "dp-cd", "dp-sgd")
    rows = []
    for dataset in shown:
        printed, row = dataset.facts.get("printed settings", {}), [dataset.name]
        for name in names:
            best = best_of(results, dataset, name)
            of = printed.get({"dp-gcd": "dp-gcd-claimed", "dp-sgd": "dp-sgd-claimed"}.get(name, name))
            ours = "" if best is None else triple(best[0].setting["passes"], best[1]["clip"], best[1]["step"])
            row.append(beside(ours, None if of is None else triple(*of)))
        rows.append(row)
    return table(["problem", *map(label_of, names)], rows)


def triple(passes, clip, step):
    return f"{passes:g}, {clip:.3g}, {step:.3g}"


def optima(results, shown):
    rows = []
    for dataset in shown:
        about = results.one(dataset=dataset.name, method="optimum")
        if about is not None:
            size = f"{about['rows']:,} x {about['columns']:,}"
            rows.append([dataset.name, size, str(about["support"]), number(about["alpha"])])
    return table(["problem", "rows x columns", "non-zeros", "alpha of (alpha, 5)-quasi-sparsity"], rows)


def panels(path, count, columns=4):
    return plots.figure(path, max(1, math.ceil(count / columns)), columns, (3.0, 2.5))


def draw(results, shown, names, path, against):
    """Ways of the best settings, against passes or seconds."""
    with panels(path, len(shown)) as axes:
        for axis, dataset in zip(axes.flat, shown, strict=False):
            for name in names:
                best = best_of(results, dataset, name)
                if best is None:
                    continue
                cell, numbers = best
                if "way" in numbers:
                    whole = cell.setting["passes"] if against == "passes" else float(np.mean(numbers["seconds"]))
                    plots.curve(axis, np.array(numbers["way"]["at"]) * whole, numbers["way"], methods()[name].style)
                elif against == "passes":
                    plots.level(axis, numbers["error"], methods()[name].style)
            axis.set_yscale("log")
            if against == "seconds":
                axis.set_xscale("log")
                axis.xaxis.set_minor_formatter("")
            axis.set_title(dataset.name, fontsize=9)
            axis.set_xlabel(against, fontsize=8)
            axis.tick_params(labelsize=7, which="both")
            axis.grid(axis="y", color="#dddddd", lw=0.6)


def draw_optima(results, shown, path):
    """How many coefficients of the optimum have which size; the line is alpha."""
    with panels(path, len(shown)) as axes:
        for axis, dataset in zip(axes.flat, shown, strict=False):
            about = results.one(dataset=dataset.name, method="optimum")
            if about is None:
                continue
            axis.stairs(about["counts"], about["edges"], fill=True, color="#1f77b4")
            axis.axvline(about["alpha"], color="#9467bd", lw=1.5)
            axis.set_yscale("log")
            axis.set_title(dataset.name, fontsize=9)
            axis.tick_params(labelsize=7, which="both")
