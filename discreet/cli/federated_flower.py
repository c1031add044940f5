"""`discreet federated client`, `app` and `loopback`: federated training on Flower."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options

if TYPE_CHECKING:
    from discreet.federated.client import Client

CLIENT_EXAMPLE = (
    "Example: discreet federated client rows.csv --target y --plan plan.json --name clinic-a --state clinic-a.state "
    "--superlink server.example.org:9092 --authority ca.pem --key clinic-a.key"
)

PlanFile = Annotated[Path, typer.Option(help="The plan of the run.")]


def client(
    table: options.TableFile,
    plan: PlanFile,
    name: Annotated[str, typer.Option(help="This client's name, as the server has registered it.")],
    state: Annotated[Path, typer.Option(help="The file of its state. Never delete it during a run, never copy it.")],
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="The server's SuperLink.")],
    authority: Annotated[Path, typer.Option(help="Certificate of the authority that signed the server's.")],
    key: Annotated[Path, typer.Option(help="This client's private key (ssh-keygen -t ecdsa -b 384).")],
    target: options.TargetName = None,
    no_header: options.NoHeader = False,
    schema: options.SchemaFile = None,
    classes: Annotated[str | None, typer.Option(metavar="A,B", help="The labels that mean -1 and +1.")] = None,
    max_epsilon: Annotated[
        float | None, typer.Option(help="Refuse a plan that may cost more.", show_default="no limit")
    ] = None,
    trust_server: Annotated[
        bool, typer.Option("--trust-server", help="Limit and ledger are about what the models tell, not the messages.")
    ] = False,
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    log: Annotated[Path, typer.Option(help="Receives what the SuperNode says.")] = Path("supernode.log"),
    seed: options.Seed = None,
) -> None:
    """Hold rows for a federated run: answer a server with noisy gradients, until stopped.

    The rows stay in this process, and no code that comes from the server is run.
    """
    from discreet.federated.flower import require_flower

    require_flower()
    from discreet.federated.client import Client
    from discreet.federated.flower.data_holder import alone, hold_data
    from discreet.federated.flower.settings import read_plan
    from discreet.privacy.ledger import Ledger

    X, y = _rows(table, target, no_header, schema, classes)
    with alone(state):
        holder = Client(
            read_plan(plan),
            name,
            X,
            y,
            state=state,
            max_epsilon=max_epsilon,
            trusts_server=trust_server,
            ledger=None if ledger is None else Ledger(ledger),
            dataset=dataset,
            random_state=seed,
        )
        hold_data(holder, superlink, authority=authority, key=key, log=log)


def _rows(
    table: Path, target: str | None, no_header: bool, schema: Path | None, classes: str | None
) -> tuple[Any, Any]:
    """The features and the target of a file; labels as -1 and +1."""
    from dataclasses import replace

    import numpy as np

    from discreet.data.files import open_table
    from discreet.data.schema import load_schema, skeleton

    labels = options.parse_labels(classes)
    if labels is not None and len(labels) != 2:
        raise ValueError(f"--classes must be two labels A,B; got {classes!r}.")
    with open_table(table, header=not no_header) as file:
        known = skeleton(dict.fromkeys(file.kinds, "number")) if schema is None else load_schema(schema)
        wanted = known.target if target is None else replace(known.target, name=target)
        if labels is not None:
            wanted = replace(wanted, classes=labels, low=None, high=None)
        rows = file.read(replace(known, target=wanted), target=True)
    if labels is None:
        return rows.X, rows.y
    if not np.isin(rows.y, labels).all():
        raise ValueError(f"{table} has targets other than {labels[0]!r} and {labels[1]!r}.")
    return rows.X, np.where(rows.y == labels[1], 1.0, -1.0)
