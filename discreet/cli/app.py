"""The table of commands; each lives in a file of this folder."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet import __version__
from discreet.cli import (
    account,
    audit,
    demo,
    evaluate,
    export,
    fairness,
    fairness_plan,
    federated,
    fit,
    ledger,
    plan,
    predict,
    report,
    schema,
    show,
    statement,
)
from discreet.cli.console import OneLineErrors

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
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command(epilog=demo.EXAMPLE)(demo.demo)
app.command(epilog=fit.EXAMPLE)(fit.fit)
app.command(epilog=predict.EXAMPLE)(predict.predict)
app.command(epilog=evaluate.EXAMPLE)(evaluate.evaluate)
app.command(epilog=show.EXAMPLE)(show.show)
app.command(epilog=report.EXAMPLE)(report.report)
app.command(epilog=export.EXAMPLE)(export.export)
app.command(epilog=statement.EXAMPLE)(statement.statement)
app.command(epilog=plan.EXAMPLE)(plan.plan)
app.command(name="fairness-plan", epilog=fairness_plan.EXAMPLE)(fairness_plan.fairness_plan)
app.command(epilog=account.EXAMPLE)(account.account)
app.command(epilog=schema.EXAMPLE)(schema.schema)
app.command(epilog=fairness.EXAMPLE)(fairness.fairness)
app.add_typer(ledger.ledger_app, name="ledger")
app.add_typer(audit.audit, name="audit")
app.add_typer(federated.federated_app, name="federated")
