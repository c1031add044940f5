"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from discreet.estimators.names import CLASSIFIERS, REGRESSORS
from discreet.privacy.relation import Relation

Epsilon = Annotated[float, Option(help="Privacy budget; smaller is more private, inf is not private.")]
Delta = Annotated[
    float | None,
    Option(help="Failure probability of the promise; 0 asks for pure DP.", show_default="1 / rows squared"),
]
Estimator = Annotated[str | None, Option(help=f"One of {', '.join(CLASSIFIERS + REGRESSORS)}.", show_default="by task")]
SolverName = Annotated[str, Option(help="auto, cd, gd, sgd, ...")]
Inference = Annotated[
    bool, Option("--inference", help="Standard errors, intervals and tests; refused where they would not hold.")
]
Robust = Annotated[bool, Option("--robust", help="With --inference: less noise, more assumptions.")]
Alpha = Annotated[float | None, Option(help="Strength of the penalty.", show_default="the estimator's")]
Bounds = Annotated[
    str | None, Option(metavar="LOW,HIGH", help="Public limits of all number columns.", show_default="learned")
]
YBounds = Annotated[
    str | None, Option(metavar="LOW,HIGH", help="Public limits of a regression target.", show_default="learned")
]
RelationName = Annotated[
    Relation | None, Option("--relation", help="Which tables are neighbours.", show_default="replace")
]
PublicRows = Annotated[
    int | None, Option(min=1, help="With --relation add_remove: a public estimate of the number of rows.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Plot = Annotated[Path | None, Option(help="A picture to write; needs Matplotlib.", show_default="none")]
Columns = Annotated[int, Option(min=0, help="Maximum number of columns to show, largest effect first.")]
Force = Annotated[bool, Option("--force", help="Overwrite the output file.")]
ModelFile = Annotated[Path, Argument(metavar="MODEL", help="A file written by discreet fit or save_model.")]
TableFile = Annotated[
    Path,
    Argument(
        metavar="TABLE",
        help="A CSV (also .csv.gz) or Parquet file, or a folder or quoted pattern of Parquet files; - reads a pipe.",
    ),
]
NoHeader = Annotated[
    bool, Option("--no-header", help="The first line of a CSV file is a row; name its columns column_1, ...")
]
TargetName = Annotated[str | None, Option(help="The column to predict.", show_default="the schema's")]
SchemaFile = Annotated[Path | None, Option(help="What is public about the columns; see discreet schema.")]
Classes = Annotated[str | None, Option(metavar="A,B,...", help="All labels of the target.")]
LedgerUrl = Annotated[str | None, Option(metavar="URL", help="Ledger to charge, a file or a database.")]
DatasetName = Annotated[str | None, Option(help="The table's name in the ledger.")]
DaskAddress = Annotated[
    str | None,
    Option(
        "--dask",
        metavar="ADDRESS",
        help="Let the workers of this Dask cluster (tcp://HOST:PORT) read the Parquet files; local, or local:2, "
        "starts workers on this machine.",
    ),
]
ModelOut = Annotated[Path, Option(help="Where to write the model.")]
Seed = Annotated[
    int | None, Option(min=0, help="For tests: makes the noise reproducible; anyone with the seed can remove it.")
]
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but warnings and errors.")]
InvalidRows = Annotated[
    Literal["error", "neutral"],
    Option(
        help="Rows that cannot be read: refuse the table, which tells that there are some, or take them as empty rows, "
        "which add nothing."
    ),
]


def inference_of(inference: bool, robust: bool) -> bool | str:
    """The parameter of an estimator that the options ask for."""
    if robust and not inference:
        raise ValueError("--robust goes with --inference.")
    return "robust" if robust else inference
