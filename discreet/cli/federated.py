"""`discreet federated`: plan a run over many data holders, and try it out on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from discreet._common.json_file import write_json_file
from discreet.cli import federated_flower, federated_network, federated_vertical, options
from discreet.cli.console import answer, check_free, group, print_json, wants_progress

if TYPE_CHECKING:
    from discreet.federated import FederatedPlan, SimulatedRun
    from discreet.federated.simulation import FederatedTable

PLAN_EXAMPLE = "Example: discreet federated plan --clients 100 --columns 20 --epsilon 2 --model central"
SIMULATE_EXAMPLE = "Example: discreet federated simulate --clients 100 --epsilon 4 --model central --dropout 0.05"
commands = group(
    "Train over many data holders, each of which adds its own noise: plan a run, try it out.", SIMULATE_EXAMPLE
)

Clients = Annotated[int, Option("--clients", "--num-clients", min=1, help="Number of data holders.")]
Rounds = Annotated[int, Option("--rounds", "--num-global-epochs", min=1, help="Number of rounds.")]
PerRound = Annotated[int | None, Option(min=1, help="Clients that are asked in a round.", show_default="all of them")]
Participations = Annotated[
    int | None, Option(min=1, help="How often a client answers at most.", show_default="equally often for all")
]
Sampling = Annotated[
    Literal["cohorts", "uniform"], Option(help="Who is asked: fixed cohorts in turn, or those asked least often.")
]
Unit = Annotated[Literal["client", "record"], Option(help="What is protected: all rows of a client, or each of them.")]
Model = Annotated[
    Literal["local", "central"], Option(help="From whom: from the server too, or from those who see the models only.")
]
Loss = Annotated[Literal["logistic", "hinge", "squared", "huber"], Option(help="What is minimised.")]
Penalty = Annotated[float, Option("--alpha", min=0.0, help="Strength of the L2 penalty.")]
RowsPerClient = Annotated[
    int | None, Option(min=1, help="With --unit record: rows that a client has at least, a public number.")
]
Dropouts = Annotated[
    int | None,
    Option(min=0, help="Clients of a cohort that may miss a round in a central run.", show_default="a tenth"),
]
Gamma = Annotated[float | None, Option(help="Length of the proximal steps.", show_default="by the noise")]
Clip = Annotated[
    float | None,
    Option("--clip", "--clip-value", help="Largest norm of a client's or row's gradient.", show_default="chosen"),
]
RunName = Annotated[str, Option("--run", help="Name of the run; clients count their answers by it.")]
PlanOut = Annotated[Path | None, Option("--plan", help="Where to write the plan, as JSON.")]


@commands.command(epilog=PLAN_EXAMPLE)
def plan(
    clients: Clients,
    columns: Annotated[int, Option(min=1, help="Number of columns without the target.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    bounds: Annotated[str, Option(metavar="LOW,HIGH", help="Public limits of all columns.")] = "-1,1",
    y_bounds: Annotated[str | None, Option(metavar="LOW,HIGH", help="Public limits of a regression target.")] = None,
    loss: Loss = "logistic",
    alpha: Penalty = 1e-3,
    unit: Unit = "client",
    model: Model = "local",
    rounds: Rounds = 20,
    per_round: PerRound = None,
    participations: Participations = None,
    sampling: Sampling = "cohorts",
    rows_per_client: RowsPerClient = None,
    dropouts: Dropouts = None,
    gamma: Gamma = None,
    clip: Clip = None,
    run: RunName = "run",
    plan: PlanOut = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Show what a federated run would tell about whom, before the first round and without any data."""
    from discreet.federated import plan_federated

    made = plan_federated(
        _problem(loss, alpha),
        columns,
        options.parse_pair("--bounds", bounds),
        clients,
        y_bounds=options.parse_pair("--y-bounds", y_bounds),
        **_settings(locals()),
        rows_per_client=rows_per_client or 1,
    )
    _write(made, plan, force)
    answer(json, made.to_dict, made)


@commands.command(epilog=SIMULATE_EXAMPLE)
def simulate(
    clients: Annotated[
        int | None, Option("--clients", "--num-clients", min=1, help="Number of data holders.", show_default="100")
    ] = None,
    table: Annotated[
        Path | None, Option(help="A CSV or Parquet file, split over the clients.", show_default="made-up rows")
    ] = None,
    target: options.TargetName = None,
    split_by: Annotated[str | None, Option(help="A column of the table: one client for each of its values.")] = None,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    classes: options.Classes = None,
    rows: Annotated[int, Option(min=2, help="Rows of each client, for made-up rows.")] = 30,
    columns: Annotated[int, Option(min=1, help="Columns, for made-up rows.")] = 20,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    loss: Loss = "logistic",
    alpha: Penalty = 1e-3,
    unit: Unit = "client",
    model: Model = "local",
    rounds: Rounds = 20,
    per_round: PerRound = None,
    participations: Participations = None,
    sampling: Sampling = "cohorts",
    rows_per_client: RowsPerClient = None,
    dropouts: Dropouts = None,
    dropout: Annotated[float, Option(min=0.0, max=1.0, help="Probability that an answer is lost.")] = 0.0,
    gamma: Gamma = None,
    clip: Clip = None,
    run: RunName = "run",
    plan: PlanOut = None,
    seed: options.Seed = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Run a federated plan in this process, and measure the model on rows that were held out.

    The measurements are not private: they show what to expect, on rows that may be looked at.
    """
    from discreet._common.progress import progress_bar
    from discreet.federated import plan_federated
    from discreet.federated import simulate as run_plan
    from discreet.federated.simulation import made_up, read_table

    if table is None:
        data = made_up(clients or 100, rows, columns, loss in ("logistic", "hinge"), seed or 0)
    else:
        declared = options.parse_pair("--bounds", bounds), options.parse_pair("--y-bounds", y_bounds)
        data = read_table(table, target, *declared, options.parse_labels(classes), split_by, clients, seed or 0)
    problem = _problem(loss, alpha)
    smallest = min(part.size for part in data.parts.values())
    made = plan_federated(
        problem,
        data.X.shape[1],
        data.bounds,
        len(data.parts),
        y_bounds=data.y_bounds,
        **_settings(locals()),
        rows_per_client=rows_per_client or smallest,
    )
    _write(made, plan, force)
    if not (quiet or json):
        print(f"{made}\n")
    with progress_bar("rounds", wants_progress(quiet or json)) as progress:
        done = run_plan(made, data.X, data.y, data.parts, dropout=dropout, seed=seed, progress=progress)
    result = measured(done, data)
    if json:
        print_json({"plan": made.to_dict(), "result": result})
    elif not quiet:
        print(describe(result))


commands.command(epilog=federated_network.EXAMPLE)(federated_network.network)
commands.command(epilog=federated_vertical.EXAMPLE)(federated_vertical.vertical)
commands.command(epilog=federated_flower.APP_EXAMPLE)(federated_flower.app)
commands.command(epilog=federated_flower.CLIENT_EXAMPLE)(federated_flower.client)
commands.command(epilog=federated_flower.LOOPBACK_EXAMPLE)(federated_flower.loopback)


def measured(done: SimulatedRun, data: FederatedTable) -> dict[str, Any]:
    """How good the model is, and what happened. Not private."""
    import numpy as np

    server, problem = done.server, done.server.plan.problem
    coef, intercept = server.to_user(server.averaged_weights)
    rows = np.concatenate(list(data.parts.values()))
    best = problem.optimum(data.X[rows], data.y[rows])
    return {
        "rounds": len(done.reports),
        "ended": server.ended,
        "seconds_per_round": done.seconds,
        "missing_answers": sum(len(report.missing) for report in done.reports),
        "unused_rounds": sum(not report.used for report in done.reports),
        "objective": problem.objective(data.X[rows], data.y[rows], coef, intercept),
        "best_objective": best.value,
        "score": data.score(coef, intercept),
        "best_score": data.score(best.coef, best.intercept),
        "score_is": "accuracy" if problem.loss.classification else "R^2",
        "held_out_rows": int(data.held_out.size),
        "coef": coef.tolist(),
        "intercept": intercept,
    }


def describe(result: dict[str, Any]) -> str:
    """The measurements for people."""
    lines = [
        f"rounds              {result['rounds']} ({result['ended']}), {1e3 * result['seconds_per_round']:.0f} ms each",
        f"lost answers        {result['missing_answers']}; rounds that too few answered: {result['unused_rounds']}",
        "not private, on rows that may be looked at:",
        f"  objective         {result['objective']:.4f}; without privacy, all rows in one place: "
        f"{result['best_objective']:.4f}",
        f"  {result['score_is']:<18}{result['score']:.3f} on {result['held_out_rows']} held-out rows; without privacy: "
        f"{result['best_score']:.3f}",
    ]
    return "\n".join(lines)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Options that are settings of the plan under the same name."""
    names = ("epsilon", "delta", "unit", "model", "rounds", "per_round", "participations", "dropouts", "gamma", "clip")
    return {name: given[name] for name in (*names, "sampling", "run")}


def _problem(loss: str, alpha: float) -> Any:
    from discreet.federated.planning import LOSSES
    from discreet.problem import L2, Problem

    return Problem(LOSSES["smoothed-hinge" if loss == "hinge" else loss](), L2(alpha))


def _write(plan: FederatedPlan, path: Path | None, force: bool) -> None:
    if path is None:
        return
    check_free(path, force)
    write_json_file(path, plan.to_dict())
