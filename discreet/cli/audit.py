"""`discreet audit`: what an attacker could show, against what is promised."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from discreet._common.plotting import pyplot
from discreet.cli import options
from discreet.cli.console import answer, check_plot, command, group, parse_pair, print_json
from discreet.privacy.relation import Relation

FAILED_CODE = 1
REPLAY = "discreet audit replay --rows 200 --columns 5 --bounds 0,1"
group("Attack the library, and compare with what is promised. Exit code 1: a promise was broken.", REPLAY)

Epsilons = Annotated[list[float], Option("--epsilon", help="Privacy budgets, as often as wanted.")]
Runs = Annotated[int, Option(min=100, help="Runs on each of two tables.")]


def _finish(passed: bool, json: bool = False, values: Any = None, text: Any = None) -> None:
    """Print what was found, unless that was done line by line, and leave with the exit code that says who passed."""
    if values is not None:
        answer(json, values, text)
    if not passed:
        raise typer.Exit(FAILED_CODE)


def _numbers(result: Any) -> dict[str, Any]:
    """The fields of a result as JSON has them: infinity as a text, and what was not measured as null."""
    odd = {name: x for name, x in asdict(result).items() if isinstance(x, float) and not math.isfinite(x)}
    return asdict(result) | {name: "inf" if x > 0.0 else None for name, x in odd.items()}


@command(REPLAY)
def replay_command(
    rows: Annotated[int, Option(min=2, help="Number of rows of the made-up table.")] = 200,
    columns: Annotated[int, Option(min=1, help="Number of columns without the target.")] = 5,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    estimator: options.Estimator = "LogisticRegression",
    solver: options.SolverName = "auto",
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    relation: options.RelationName = None,
    pairs: Annotated[int, Option(min=1, help="How many rows are made hostile, each in five ways.")] = 2,
    json: options.Json = False,
) -> None:
    """Replay a fit on neighbouring tables and compare every statistic with its claimed sensitivity.

    The tables are made up, with one hostile row; the estimator is planned as `discreet plan` would with these options.
    """
    from discreet.audit.command_runs import replay_estimator

    settings: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "solver": solver}
    settings |= {"relation": relation or Relation.REPLACE, "bounds": parse_pair("--bounds", bounds)}
    settings["y_bounds"] = parse_pair("--y-bounds", y_bounds)
    results = replay_estimator(estimator or "LogisticRegression", settings, rows, columns, pairs)
    passed = all(found.passed for _, found in results)
    lines = [f"row changed ({change}): " + str(found).replace("\n", "\n    ") for change, found in results]
    lines.append("every replay passed" if passed else "NOT every replay passed")
    replays = [_replay_json(change, found) for change, found in results]
    _finish(passed, json, {"passed": passed, "replays": replays}, "\n".join(lines))


def _replay_json(change: str, found: Any) -> dict[str, Any]:
    return {
        "row": change,
        "passed": found.passed,
        "releases": len(found.releases),
        "largest_ratio": found.largest_ratio,
        "attained_epsilon": found.attained,
        "loss": found.loss,
        "problems": found.problems,
    }


@command("discreet audit solvers --solver cd --relation replace")
def solvers_command(
    solver: Annotated[str | None, Option(help="A solver or one of its variants.", show_default="all")] = None,
    relation: Annotated[Relation | None, Option(help="Which tables are neighbours.", show_default="all")] = None,
    runs: Runs = 2_000,
    json: options.Json = False,
) -> None:
    """Run solvers on their worst neighbours, and with less noise than planned, which must be found."""
    from discreet.audit.solver_cases import SOLVER_CASES
    from discreet.audit.suite import audit_solver

    if solver is not None and solver not in SOLVER_CASES:
        raise ValueError(f"--solver must be one of {', '.join(SOLVER_CASES)}; got {solver!r}.")
    results = []
    for name in [solver] if solver else SOLVER_CASES:
        for kind in [relation] if relation else Relation:
            results.append(audit_solver(name, kind, runs))
            if not json:
                print(_solver_line(results[-1]))
    if json:
        print_json([_numbers(result) for result in results])
    _finish(all(result.passed for result in results))


def _solver_line(result: Any) -> str:
    start = f"{result.name:<27} {result.relation:<11}"
    if result.refused is not None:
        return f"{start} refused: {result.refused}"
    attained = "-" if result.attained is None else f"{result.attained:.4f}"
    fault = "no fault found" if result.fault is None else f"fault found at noise x {result.fault:g}"
    verdict = "passed" if result.passed else f"NOT passed: {'; '.join(result.problems) or 'the audit is too weak'}"
    return f"{start} attained {attained:<7} shown {result.epsilon:.3f} of {result.promised:g}, {fault}: {verdict}"


@command("discreet audit campaign --solver cd")
def campaign_command(
    solver: Annotated[str | None, Option(help="A solver, or another release.", show_default="all")] = None,
    json: options.Json = False,
) -> None:
    """Replay about a million releases: solvers, relations, kinds of tables, hostile rows, each with a planted fault."""
    from discreet.audit.campaign import cells, run_campaign
    from discreet.audit.page import campaign_summary, campaign_table

    names = list(dict.fromkeys(cell.name for cell in cells()))
    if solver is not None and solver not in names:
        raise ValueError(f"--solver must be one of {', '.join(names)}; got {solver!r}.")
    tallies = list(run_campaign([cell for cell in cells() if solver in (None, cell.name)]))
    text = f"{campaign_summary(tallies)}\n\n{campaign_table(tallies)}"
    _finish(all(tally.passed for tally in tallies), json, [asdict(tally) for tally in tallies], text)


@command("discreet audit faults")
def faults_command(json: options.Json = False) -> None:
    """Plant faults into the library, each beside the right implementation, and look for them."""
    from discreet.audit.page import planted_table
    from discreet.audit.planted import planted_faults

    results = planted_faults()
    values = {name: asdict(result) for name, result in results.items()}
    _finish(all(result.passed for result in results.values()), json, values, planted_table(results))


@command("discreet audit one-run --epsilon 4 --canaries 1000")
def one_run_command(
    epsilon: options.Epsilon = 1.0,
    canaries: Annotated[int, Option(min=10, help="Rows that are in the table or not by a coin each.")] = 500,
    relation: options.RelationName = None,
    noise: Annotated[float, Option(min=0.0, help="Multiply the planned noise, to plant a fault.")] = 1.0,
    json: options.Json = False,
) -> None:
    """Audit gradient descent by one run with canaries (Steinke, Nasr and Jagielski 2023)."""
    from discreet.audit.command_runs import one_run_of_gradient_descent

    result = one_run_of_gradient_descent(epsilon, canaries, relation or Relation.REPLACE, noise)
    _finish(result.passed, json, _numbers(result) | {"passed": result.passed}, result)


@command("discreet audit membership --epsilon 1 --epsilon inf --plot curves.png")
def membership_command(
    epsilon: Epsilons = [math.inf, 8.0, 1.0],  # noqa: B006  (Typer reads the default and does not change it)
    rows: Annotated[int, Option(min=2, help="Rows of the training table.")] = 40,
    columns: Annotated[int, Option(min=1, help="Columns; more columns than rows remember more.")] = 80,
    models: Annotated[int, Option(min=1, help="Models that are trained and attacked at each epsilon.")] = 30,
    plot: options.Plot = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Infer from trained models which of two records was in the table."""
    from discreet.audit.command_runs import membership_scenario
    from discreet.audit.page import membership_table
    from discreet.audit.plots import plot_membership

    check_plot(plot, force)
    curves = membership_scenario(epsilon, rows, columns, models)
    if plot is not None:
        plot_membership(curves, plot)
    passed = all(curve.excess() <= 0.0 for curve in curves.values())
    found = {name: {"area": c.area, "advantage": c.advantage, "excess": c.excess()} for name, c in curves.items()}
    _finish(passed, json, {"passed": passed, "models": found}, lambda: membership_table(curves))


@command("discreet audit reconstruction --plot found.png")
def reconstruction_command(
    epsilon: Epsilons = [math.inf, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0],  # noqa: B006
    rows: Annotated[int, Option(min=2, help="Rows, all but one of which the attacker knows.")] = 40,
    attributes: Annotated[int, Option(min=2, help="Yes-or-no attributes: a power of two.")] = 16,
    trials: Annotated[int, Option(min=10, help="Records that are looked for at each epsilon.")] = 300,
    plot: options.Plot = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Reconstruct a record from the gradients of a training."""
    from discreet.audit.command_runs import reconstruction_scenario
    from discreet.audit.page import reconstruction_table
    from discreet.audit.plots import plot_reconstruction

    check_plot(plot, force)
    found = reconstruction_scenario(epsilon, rows, attributes, trials)
    if plot is not None:
        plot_reconstruction(found, plot)
    passed = all(result.passed for result in found.values())
    shown = {f"{e:g}": {"found": r.rate, "allowed": r.allowed, "trials": r.trials} for e, r in found.items()}
    _finish(passed, json, {"passed": passed, "epsilons": shown}, lambda: reconstruction_table(found))


@command("discreet audit report --page docs/audits.md")
def report_command(
    page: Annotated[Path, Option(help="A page with marks for results; pictures are written beside it.")],
    runs: Runs = 2_000,
) -> None:
    """Make all audits and write their results into a page."""
    from discreet.audit.command_runs import full_report

    if not page.is_file():
        raise ValueError(f"--page {page} does not exist.")
    pyplot()
    passed = full_report(page, runs, lambda line: print(line, flush=True))
    print("all audits passed" if passed else "NOT all audits passed")
    _finish(passed)
