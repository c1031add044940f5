"""`discreet report`: one page about a model, for the person who answers for the data to read and sign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from discreet.cli import options
from discreet.cli.console import answer, check_free

EXAMPLE = "Example: discreet report model.json --evaluation evaluation.json -o report.html"


def report(
    model: options.ModelFile,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Where to write the page.", show_default="report.html")
    ] = None,
    evaluation: Annotated[
        Path | None, Option(metavar="FILE", help="An evaluation of this model, from discreet evaluate --out.")
    ] = None,
    ledger: Annotated[
        str | None, Option(metavar="URL", help="The ledger that was charged: show its entries, and check its records.")
    ] = None,
    dataset: options.DatasetName = None,
    purpose: Annotated[str, Option(help="What the model is for.", show_default="lines to fill in by hand")] = "",
    columns: options.Columns = 30,
    markdown: Annotated[
        bool, Option("--markdown", help="Write Markdown, without pictures; also if --out ends in .md.")
    ] = False,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write one page about a model: what was trained, the guarantee, coefficients, performance, sign-off.

    Everything comes from the model file and, if given, its evaluation and its ledger. No row is read: it costs nothing.
    """
    from discreet.report import write_report
    from discreet.report.write import is_markdown

    plain = markdown or (out is not None and is_markdown(out))
    page = out or Path("report.md" if plain else "report.html")
    check_free(page, force)
    for source in (model, evaluation):
        if source is not None and page.exists() and source.exists() and page.samefile(source):
            raise ValueError(f"--out {page} is a file that the report is made from; choose another name.")
    made = write_report(
        model,
        page,
        markdown=plain,
        overwrite=force,
        evaluation=evaluation,
        ledger=ledger,
        dataset=dataset,
        purpose=purpose,
        columns=columns,
    )
    values = {"out": str(page), "title": made.title, "numbers": dict(made.numbers)}
    answer(json, values, f"report written to {page}")
