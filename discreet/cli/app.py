"""The table of commands; each lives in a file of this folder."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer
from typer import Option

from discreet import __version__
from discreet.cli.console import OneLineErrors

# In the order of the help. A command is the function of its name in the file of that name, and ends with its EXAMPLE.
COMMANDS = (
    *("demo", "fit", "predict", "evaluate", "show", "report", "export", "statement"),
    *("plan", "fairness_plan", "account", "schema", "fairness"),
)
GROUPS = ("ledger", "audit", "federated")  # of several commands: `commands` in the file of that name

app = typer.Typer(
    cls=OneLineErrors,
    add_completion=False,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    help="Train linear models on sensitive tables with differential privacy.",
    epilog="Start with: discreet demo",
)


@app.callback()
def discreet(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


for name in COMMANDS:
    file = import_module(f"discreet.cli.{name}")
    app.command(epilog=file.EXAMPLE)(getattr(file, name))
for name in GROUPS:
    app.add_typer(import_module(f"discreet.cli.{name}").commands, name=name)
