"""`discreet federated`: plan a run over many data holders, and try it out on one machine.

`network` tells what each node of a graph would learn about each other one, `vertical` fits one model of the columns of
several tables of the same people; what needs Flower is in `federated_flower.py`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from discreet.cli import console, options
from discreet.cli.console import answer, check_free, check_plot, command, group, print_json, wants_progress
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.federated import FederatedPlan, SimulatedRun
    from discreet.federated.simulation import FederatedTable

SIMULATE = "discreet federated simulate --clients 100 --epsilon 4 --model central --dropout 0.05"
group("Train over many data holders, each of which adds its own noise: plan a run, try it out.", SIMULATE)

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


@command("discreet federated plan --clients 100 --columns 20 --epsilon 2 --model central")
def plan(
    clients: Annotated[int, Option("--clients", "--num-clients", min=1, help="Number of data holders.")],
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
    limits, y_limits = console.parse_pair("--bounds", bounds), console.parse_pair("--y-bounds", y_bounds)
    made = _planned(locals(), columns, limits, clients, y_limits, 1)
    answer(json, made.to_dict, made)


@command(SIMULATE)
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
    from discreet.federated import simulate as run_plan
    from discreet.federated.simulation import made_up, read_table

    if table is None:
        data = made_up(clients or 100, rows, columns, loss in ("logistic", "hinge"), seed or 0)
    else:
        declared = console.parse_pair("--bounds", bounds), console.parse_pair("--y-bounds", y_bounds)
        data = read_table(table, target, *declared, console.parse_labels(classes), split_by, clients, seed or 0)
    smallest = min(part.size for part in data.parts.values())
    made = _planned(locals(), data.X.shape[1], data.bounds, len(data.parts), data.y_bounds, smallest)
    if not (quiet or json):
        print(f"{made}\n")
    with progress_bar("rounds", wants_progress(quiet or json)) as progress:
        done = run_plan(made, data.X, data.y, data.parts, dropout=dropout, seed=seed, progress=progress)
    result = measured(done, data)
    if json:
        print_json({"plan": made.to_dict(), "result": result})
    elif not quiet:
        print(describe(result))


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


def _planned(
    given: dict[str, Any], columns: int, bounds: Any, clients: int, y_bounds: Any, smallest: int
) -> FederatedPlan:
    """The plan that the options of a command describe, written to a file if they name one."""
    from discreet.federated import plan_federated
    from discreet.federated.planning import LOSSES
    from discreet.problem import L2, Problem

    names = ("epsilon", "delta", "unit", "model", "rounds", "per_round", "participations", "dropouts", "gamma", "clip")
    settings = {name: given[name] for name in (*names, "sampling", "run")}
    settings |= {"y_bounds": y_bounds, "rows_per_client": given["rows_per_client"] or smallest}
    loss = LOSSES["smoothed-hinge" if given["loss"] == "hinge" else given["loss"]]
    made = plan_federated(Problem(loss(), L2(given["alpha"])), columns, bounds, clients, **settings)
    check_free(given["plan"], given["force"])
    if given["plan"] is not None:
        from discreet._common.codec import write_json_file

        write_json_file(given["plan"], made.to_dict())
    return made


@command("discreet federated network --graph ring --nodes 32 --method gossip --plot losses.png")
def network(
    graph: Annotated[
        str, Option(help="ring, grid, expander, erdos-renyi, complete, star, karate or les-miserables.")
    ] = "expander",
    nodes: Annotated[int, Option(min=3, help="Number of nodes; social graphs have their own.")] = 32,
    method: Annotated[
        Literal["gossip", "tree", "walk", "admm-walk"],
        Option(help="ADMM with averages by gossip or along a tree; a token with gradient or ADMM steps."),
    ] = "tree",
    epsilon: options.Epsilon = 1.0,
    delta: Annotated[
        float | None, Option(help="Failure probability of the promise.", show_default="1 / nodes squared")
    ] = None,
    budget_for: Annotated[
        Literal["local", "mean", "max"],
        Option(help="What keeps the budget: all messages of a node, or the mean or largest loss of a pair of nodes."),
    ] = "local",
    rounds: Annotated[int, Option(min=1, help="Rounds of ADMM, or visits of a node by the token.")] = 10,
    columns: Annotated[int, Option(min=1, help="Number of columns, if there is no table.")] = 10,
    gossip_steps: Annotated[
        int | None, Option(min=1, help="Exchanges for one average.", show_default="from the spectral gap")
    ] = None,
    message_noise: Annotated[
        float | None,
        Option(help="Noise of a gossip message over that of a gradient.", show_default="25 % more variance"),
    ] = None,
    way: Annotated[
        Literal["tour", "random"], Option(help="A token's way: each node once in every pass, or a random walk.")
    ] = "tour",
    graph_seed: Annotated[int, Option(min=0, help="Seed for graphs and walks; not secret.")] = 0,
    table: Annotated[
        Path | None,
        Option(help="A CSV or Parquet file, split evenly over the nodes, to train on.", show_default="only plan"),
    ] = None,
    target: options.TargetName = None,
    bounds: options.Bounds = None,
    classes: options.Classes = None,
    seed: options.Seed = None,
    plot: options.Plot = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Show, without any data, what each node of a graph would learn about each other one.

    Each node is a data holder whose rows are protected together; the model is a logistic regression. With a table it is
    trained, all nodes in this process, and measured on rows that were held out; the measurements are not private.
    """
    from discreet.federated.decentralised import network_named, plan_network, train_network
    from discreet.federated.simulation import read_table
    from discreet.problem import L2, Logistic, Problem

    if epsilon == math.inf:
        raise ValueError("--epsilon must be finite: without noise there is nothing to account for.")
    check_plot(plot, force)
    made = network_named(graph, nodes, graph_seed)
    limits = console.parse_pair("--bounds", bounds)
    data, facts = None, (columns, limits or (-1.0, 1.0))
    if table is not None:
        data = read_table(table, target, limits, None, console.parse_labels(classes), None, made.size, seed or 0)
        facts = data.X.shape[1], data.bounds
    settings: dict[str, Any] = {"method": method, "epsilon": epsilon, "delta": delta, "target": budget_for}
    settings |= {"rounds": rounds, "gossip_steps": gossip_steps, "message_noise": message_noise}
    plan = plan_network(Problem(Logistic(), L2(1e-3)), *facts, made, way=way, path_seed=graph_seed, **settings)
    if plot is not None:
        from discreet.federated.decentralised.plots import plot_losses

        plot_losses(plan, plot)
    if data is None:
        answer(json, plan.to_dict, plan)
        return
    held = [(data.X[part], data.y[part]) for part in data.parts.values()]
    found = train_network(plan, held, random_state=seed)
    accuracy, rows = data.score(found.coef, found.intercept), int(data.held_out.size)
    result = {"accuracy": accuracy, "held_out_rows": rows, "coef": found.coef.tolist(), "intercept": found.intercept}
    text = f"{plan}\naccuracy on {rows} held-out rows (not private): {accuracy:.3f}"
    answer(json, lambda: {"plan": plan.to_dict(), "result": result}, text)


@command("discreet federated vertical bank=bank.csv shop=shop.csv --labels shop --target spent --bounds 0,1")
def vertical(
    tables: Annotated[list[str], Argument(metavar="NAME=TABLE...", help="CSV or Parquet files, rows matched.")],
    labels: Annotated[str, Option(help="Which of the names has the target.")],
    target: Annotated[str, Option(help="The column to predict.")],
    task: Annotated[Literal["classification", "regression"], Option(help="Labels are 0 and 1.")] = "regression",
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    alpha: Annotated[float, Option(help="Strength of the L2 penalty.")] = 1e-4,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    relation: options.RelationName = None,
    sweeps: Annotated[int | None, Option(min=1, help="How often numbers are exchanged.")] = None,
    plan_only: Annotated[bool, Option("--plan", help="Show what would be sent, and send nothing.")] = False,
    json: options.Json = False,
) -> None:
    """Fit one model of the columns of several holders, all on this machine; every holder has the same budget.

    Row i of every table must be the same person. Real holders run the same objects on their own machines.
    """
    from discreet.federated.vertical import Holder, HolderFacts, plan_vertical, run_vertical
    from discreet.privacy.budget import Budget
    from discreet.problem.losses import Logistic, Squared
    from discreet.problem.penalties import L2
    from discreet.problem.problem import Problem

    frames = _read(tables)
    if labels not in frames or target not in frames[labels].columns:
        raise ValueError(f"--labels must be one of {sorted(frames)}, and --target a column of its table.")
    y = frames[labels].pop(target).to_numpy(dtype=float)
    rows = len(y)
    if task == "classification":
        if not set(y) <= {0.0, 1.0}:
            raise ValueError("labels of a classification must be 0 and 1.")
        y = 2.0 * y - 1.0
    budget = Budget(epsilon, 1.0 / rows**2 if delta is None else delta)
    limits = console.parse_pair("--bounds", bounds)
    facts = [HolderFacts(name, frame.shape[1], budget, limits) for name, frame in frames.items()]
    problem = Problem(Logistic() if task == "classification" else Squared(), L2(alpha))
    y_limits = console.parse_pair("--y-bounds", y_bounds)
    settings: dict[str, Any] = {"labels": labels, "y_bounds": y_limits, "sweeps": sweeps}
    plan = plan_vertical(problem, facts, rows, relation=relation or Relation.REPLACE, **settings)
    if plan_only:
        print(plan)
        return
    arrays = {name: frame.to_numpy(dtype=float) for name, frame in frames.items()}
    holders = {name: Holder(plan, name, X, y if name == labels else None) for name, X in arrays.items()}
    model = run_vertical(plan, holders)
    coef = {name: dict(zip(frame.columns, model.coef[name].tolist(), strict=True)) for name, frame in frames.items()}
    own, total = (value if math.isfinite(value) else "inf" for value in (epsilon, model.total.epsilon))
    lines = [f"{name}.{column} {value:.6g}" for name, values in coef.items() for column, value in values.items()]
    values = {"coef": coef, "intercept": model.intercept, "epsilon": own, "total_epsilon": total}
    answer(json, values, "\n".join([f"{plan}\n\nintercept {model.intercept:.6g}", *lines]))


def _read(tables: list[str]) -> dict[str, Any]:
    """The tables by the names of their holders."""
    import pandas as pd

    frames: dict[str, Any] = {}
    for text in tables:
        name, found, path = text.partition("=")
        if not found or not name or name in frames:
            raise ValueError(f"every table must be given as NAME=FILE, each name once; got {text!r}.")
        frames[name] = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    if len({len(frame) for frame in frames.values()}) > 1:
        raise ValueError("all tables must have the same people, in the same order: their numbers of rows differ.")
    return frames
