"""`discreet federated client`, `app` and `loopback`: federated training on Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from discreet.cli import options
from discreet.cli.console import check_free, command, parse_labels, print_json
from discreet.cli.fit import declare, schema_of

CLIENT = (
    "discreet federated client rows.csv --target y --plan plan.json --name clinic-a --state clinic-a.state "
    "--superlink server.example.org:9092 --authority ca.pem --key clinic-a.key"
)
Timeout = Annotated[float, Option(min=1.0, help="Round timeout in seconds.")]
PlanFile = Annotated[Path, Option(help="The plan of the run.")]


@command("discreet federated app server --plan plan.json --client clinic-a --client clinic-b && flwr run server")
def app(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Where to write it; a new folder.")],
    plan: PlanFile,
    clients: Annotated[list[str], Option("--client", help="The name of a client, as registered; once for each.")],
    out: options.ModelOut = Path("model.json"),
    state: Annotated[Path, Option(help="The file of the server's state.")] = Path("server.state"),
    timeout: Timeout = 60.0,
    wait: Annotated[float, Option(help="Seconds that the first round waits for all clients.")] = 600.0,
    force: options.Force = False,
) -> None:
    """Write the folder that `flwr run` submits to a SuperLink, to train with the clients that are connected to it."""
    from discreet.federated.flower.app import ServerSettings, write_app
    from discreet.federated.planning import read_plan

    check_free(out, force)
    files: dict[str, Any] = {"plan": str(plan.resolve()), "state": str(state.resolve()), "outcome": str(out.resolve())}
    settings = ServerSettings(**files, clients=tuple(clients), timeout=timeout, wait=wait)
    if read_plan(plan).clients != len(set(clients)):
        raise ValueError(f"the plan has {read_plan(plan).clients} clients; {len(set(clients))} names are given.")
    folder.mkdir(parents=True)
    settings.write(folder.resolve() / "server.json")
    write_app(folder, folder.resolve() / "server.json")
    print(f"written to {folder}; start the training with: flwr run {folder} NAME_OF_THE_SUPERLINK")


@command(CLIENT)
def client(
    table: options.TableFile,
    plan: PlanFile,
    name: Annotated[str, Option(help="This client's name, as the server has registered it.")],
    state: Annotated[Path, Option(help="The file of its state. Never delete it during a run, never copy it.")],
    superlink: Annotated[str, Option(metavar="HOST:PORT", help="The server's SuperLink.")],
    authority: Annotated[Path, Option(help="Certificate of the authority that signed the server's.")],
    key: Annotated[Path, Option(help="This client's private key (ssh-keygen -t ecdsa -b 384).")],
    target: options.TargetName = None,
    no_header: options.NoHeader = False,
    schema: options.SchemaFile = None,
    classes: Annotated[str | None, Option(metavar="A,B", help="The labels that mean -1 and +1.")] = None,
    max_epsilon: Annotated[
        float | None, Option(help="Refuse a plan that may cost more.", show_default="no limit, but some noise")
    ] = None,
    max_delta: Annotated[float, Option(help="The largest delta that may come with that epsilon.")] = 0.01,
    unit: Annotated[
        Literal["client", "record"] | None,
        Option(help="Limits and ledger are about all rows, or about each.", show_default="as the plan"),
    ] = None,
    trust_server: Annotated[
        bool, Option("--trust-server", help="Account for the released models only (requires a trusted server).")
    ] = False,
    invalid_rows: options.InvalidRows = "error",
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    log: Annotated[Path, Option(help="Receives what the SuperNode says.")] = Path("supernode.log"),
    seed: options.Seed = None,
) -> None:
    """Hold rows for a federated run: answer a server with noisy gradients, until stopped.

    The rows stay in this process, and no code that comes from the server is run.
    """
    from discreet.federated.flower import require_flower

    require_flower()
    from discreet.federated.client import Client
    from discreet.federated.flower.data_holder import hold_data, only_process
    from discreet.federated.planning import read_plan
    from discreet.privacy.ledger import Ledger

    X, y = _labelled_rows(table, target, no_header, schema, classes, invalid_rows == "neutral")
    with only_process(state):
        limits: dict[str, Any] = {"max_epsilon": max_epsilon, "max_delta": max_delta, "unit": unit}
        paid: dict[str, Any] = {"ledger": None if ledger is None else Ledger(ledger), "dataset": dataset}
        limits |= {"trusts_server": trust_server} | paid
        limits["invalid_rows"] = invalid_rows
        holder = Client(read_plan(plan), name, X, y, state=state, random_state=seed, **limits)
        promise, what = holder.promise, "all rows together" if (unit or holder.plan.unit) == "client" else "each row"
        seen = "the models tell" if trust_server else "the server sees"
        print(f"{name}: at most {holder.plan.participations} answers, {holder.replies} given; what {seen} of {what} in")
        print(f"all of them: epsilon = {promise.epsilon:.6g}, delta = {promise.delta:.3g}", flush=True)
        hold_data(holder, state, superlink, authority=authority, key=key, log=log)


@command("discreet federated loopback --clients 3")
def loopback(
    clients: Annotated[int, Option(min=1, help="Data holders.")] = 3,
    rows: Annotated[int, Option(min=2, help="Made-up rows of each of them.")] = 300,
    columns: Annotated[int, Option(min=1, help="Columns.")] = 5,
    rounds: Annotated[int, Option(min=1, help="Rounds.")] = 5,
    epsilon: options.Epsilon = 4.0,
    timeout: Timeout = 60.0,
    folder: Annotated[
        Path | None, Option(help="Keep all files and logs in this new folder.", show_default="a temporary one")
    ] = None,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    """Train with real SuperLink and SuperNode processes on this machine, with TLS, and stop them all.

    Each of the made-up rows is protected from the server too. Nothing but the loopback interface is used.
    """
    from discreet.federated.flower import require_flower

    require_flower()
    import signal
    import sys
    from contextlib import nullcontext
    from tempfile import TemporaryDirectory

    import numpy as np

    from discreet.federated.flower.loopback import deployment_of
    from discreet.federated.planning import plan_federated
    from discreet.federated.simulation import made_up
    from discreet.problem import L2, Logistic, Problem

    data, problem = made_up(clients, rows, columns, True, seed or 0), Problem(Logistic(), L2(1e-3))
    plan = plan_federated(
        problem, columns, data.bounds, clients, epsilon=epsilon, unit="record", rounds=rounds, rows_per_client=rows
    )
    if folder is not None:
        folder.mkdir(parents=True, mode=0o700)  # as temporary folders: tables and states lie in it
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # leave through the block below
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) if folder is None else nullcontext(folder) as place,
        deployment_of(
            Path(place).resolve(), plan, data.X, data.y, data.parts, seed=seed, timeout=timeout
        ) as deployment,
    ):
        deployment.start_run()
        outcome = deployment.wait(rounds * timeout + 300.0)
    score = data.score(np.array(outcome["coef"]), outcome["intercept"])
    if json:
        print_json(outcome | {"score": score})
        return
    seconds = [one["seconds"] for one in outcome["rounds"]]
    missing = sum(len(one["missing"]) for one in outcome["rounds"])
    print(f"{plan}\n\n{outcome['ended']}: {len(seconds)} rounds, {sum(seconds) / len(seconds):.1f} s each")
    print(f"answers that did not come in time: {missing}")
    print(f"accuracy on {data.held_out.size} held-out rows (not private): {score:.3f}")


def _labelled_rows(
    table: Path, target: str | None, no_header: bool, schema: Path | None, classes: str | None, neutral: bool
) -> tuple[Any, Any]:
    """The features and the target of a file; labels as -1 and +1, NaN if they may be unknown."""
    import numpy as np

    from discreet.data.files import open_table
    from discreet.data.invalid_rows import label_codes

    labels = parse_labels(classes)
    if labels is not None and len(labels) != 2:
        raise ValueError(f"--classes must be two labels A,B; got {classes!r}.")
    with open_table(table, header=not no_header) as file:
        declared = declare(schema_of(file, schema), target, classes)
        rows, labels = file.read(declared, True, neutral), declared.target.classes
    if labels is None:
        return rows.X, rows.y
    if len(labels) != 2:
        raise ValueError(f"federated runs need two labels; {schema} has {len(labels)}.")
    if neutral:
        places = label_codes(rows.y, labels)
        return rows.X, np.select([places == 0, places == 1], [-1.0, 1.0], np.nan)
    if not np.isin(rows.y, labels).all():
        raise ValueError(f"{table} has targets other than {labels[0]!r} and {labels[1]!r}.")
    return rows.X, np.where(rows.y == labels[1], 1.0, -1.0)
