"""`discreet demo`: private against non-private accuracy on a table everybody has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from discreet.cli import options
from discreet.cli.console import answer, command, wants_progress

if TYPE_CHECKING:
    from discreet.demo import DemoResult


@command("discreet demo")
def demo(
    runs: Annotated[int, Option(min=1, help="Models trained at each epsilon.")] = 5, json: options.Json = False
) -> None:
    """Show what privacy costs in accuracy, on the breast-cancer table that ships with scikit-learn."""
    from discreet._common.progress import progress_bar
    from discreet.demo import run_demo

    with progress_bar("training", wants_progress(json)) as progress:
        result = run_demo(runs=runs, progress=progress)
    answer(json, lambda: summary(result), lambda: describe(result))


def summary(result: DemoResult) -> dict[str, Any]:
    """The result as JSON values."""
    return {
        "rows": [
            {"epsilon": "inf" if r.epsilon == math.inf else r.epsilon, "accuracy": r.accuracy, "deviation": r.deviation}
            for r in result.rows
        ],
        "runs": result.runs,
        "scikit_learn_accuracy": result.reference,
        "plan": result.model.plan_.to_dict(),
        "guarantee": result.model.guarantee_.to_dict(),
    }


def describe(result: DemoResult) -> str:
    """The result for people."""
    lines = [
        "Benign or malignant? Logistic regression on 398 of 569 biopsies with 30 measurements each, tested on",
        f"the other 171; mean of {result.runs} runs with different splits and fresh noise.",
        "The bounds of the columns are round numbers declared in advance; nothing about them is read from the rows.",
        "",
        "epsilon   accuracy",
    ]
    for row in result.rows:
        name = "inf" if row.epsilon == math.inf else f"{row.epsilon:g}"
        note = "   not private, for comparison" if row.epsilon == math.inf else f" +/- {row.deviation:.1%}"
        lines.append(f"{name:>7}   {row.accuracy:.1%}{note}")
    lines.append(f"          {result.reference:.1%}   scikit-learn, standardised columns, not private")
    statement = result.model.guarantee_.statement()
    return "\n".join([*lines, "", "The plan at epsilon = 1:", str(result.model.plan_), "", statement])
