"""`discreet fairness`: how far the noise of a model can have moved its fairness and accuracy, group by group.

The table has a line for each notion and group, with all bounds beside each other.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from discreet._common.callers import warn
from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.plotting import pyplot
from discreet.cli import options
from discreet.cli.console import answer, check_free, check_ledger, command, model_and_schema, wants_progress

if TYPE_CHECKING:
    from discreet.data.schema import Schema
    from discreet.data.validation import Table
    from discreet.fairness.certificates.record import AggregateStatement, FairnessCertificate, FairnessStatement
    from discreet.fairness.figures import Evaluation, ModelValues

MOST_GROUPS = 50
FIGURES = {"rows": "fairness-rows.png", "epsilon": "fairness-epsilon.png"}
NOT_PRIVATE = (
    "this table is NOT private: the rows of TEST are read without noise, and showing the table is a release. Pay for "
    "it with --epsilon and --groups, or say --public-rows if the rows are public."
)
TWIN_IS_SECRET = "this table is NOT private: the model without noise is not, and neither is what is computed from it."
OWNER_ONLY = (
    "--train reads the training rows without noise: the band, the gradient and the figures are for the owner of the "
    "rows. This is NOT a release; show them to nobody else."
)


@command("discreet fairness model.json test.csv --sensitive sex --public-rows")
def fairness(
    model: Annotated[Path, Argument(metavar="MODEL", help="A classifier, in a file written by discreet fit.")],
    table: Annotated[Path, Argument(metavar="TEST", help="Rows with the target, as CSV or Parquet.")],
    sensitive: Annotated[str, Option(help="The column of TEST with the groups; need not be a feature.")],
    twin: Annotated[Path | None, Option(help="The model without noise, if you have it.")] = None,
    favourable: Annotated[
        str | None, Option(help="The favourable label.", show_default="the larger of two labels, or the last")
    ] = None,
    failure: Annotated[float, Option(help="Failure probability of each bound.")] = 0.01,
    reference: Annotated[
        Literal["private", "twin"], Option(help="Around which model bounds are computed; twin needs --twin.")
    ] = "private",
    epsilon: Annotated[
        float | None, Option(help="Pay for a private evaluation of TEST with this budget.", show_default="none")
    ] = None,
    delta: options.Delta = None,
    groups: Annotated[
        str | None, Option(metavar="A,B,...", help="With --epsilon: all groups, from public knowledge.")
    ] = None,
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    public_rows: Annotated[bool, Option("--public-rows", help="The rows of TEST are public.")] = False,
    train: Annotated[
        Path | None, Option(help="The training rows, for their owner: refits models. Not a release.")
    ] = None,
    models: Annotated[int, Option(min=2, help="Number of models in the band.")] = 100,
    plot: Annotated[
        Path | None, Option(metavar="FOLDER", help="Plot the bound and the range of refitted models.")
    ] = None,
    no_header: options.NoHeader = False,
    json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Bound how far group fairness and accuracy are from those of the model without noise, on the rows of a table.

    Reading private rows is a release. Unless the rows are public (--public-rows) or paid for (--epsilon), the result is
    not private, and a warning says so.
    """
    check_ledger(ledger, dataset)
    paid = {"--groups": groups, "--delta": delta, "--ledger": ledger, "--dataset": dataset}
    unpaid = {"--twin": twin, "--train": train, "--plot": plot, "--public-rows": public_rows}
    _check_options(epsilon, reference, paid, unpaid)
    _check_folder(plot, force)
    from discreet.fairness import linear_classifier, private_certificate, unknown_distance
    from discreet.fairness.figures import Evaluation

    estimator, schema = _classifier(model)
    asked = {"failure": failure, "favourable": _label(favourable, estimator)}
    rows, values = _read(table, schema, not no_header, sensitive)
    made = linear_classifier(estimator)
    if epsilon is not None:
        asked |= {"groups": _group_names(groups), "distance": made.law or unknown_distance(made)}
        asked |= {"epsilon": epsilon, "delta": delta, "ledger": ledger, "dataset": dataset}
        released = private_certificate(estimator, rows, rows.y, values, **asked)
        answer(json, lambda: {"certificate": released.to_dict()}, released)
        return
    leaks = {OWNER_ONLY: train is not None, TWIN_IS_SECRET: twin is not None, NOT_PRIVATE: not public_rows}
    for message in (message for message, applies in leaks.items() if applies):
        warn(message, PrivacyLeakWarning)
    learned = None if train is None else _read(train, schema, not no_header, None)
    if len(set(values)) > MOST_GROUPS:
        raise ValueError(f"--sensitive: the column has more than {MOST_GROUPS} different values; cut it into groups.")
    if plot is not None and learned is None and made.law is None:
        raise ValueError(f"--plot needs the training rows, --train FILE, for this model: {made.why_no_law}")
    evaluation = Evaluation(rows, rows.y, values, failure, models, learned)
    asked |= {"reference": reference, "public_rows": public_rows and learned is None}
    found = _plain(estimator, evaluation, None if twin is None else _classifier(twin)[0], asked)
    if plot is not None:
        found["figures"] = _draw(estimator, evaluation, plot, not json)
    answer(json, lambda: as_json(found), lambda: as_text(found))


def _check_options(epsilon: float | None, reference: str, paid: dict[str, Any], unpaid: dict[str, Any]) -> None:
    """Refuse options that do not go together; `paid` are those of a private evaluation, `unpaid` those of others."""
    if reference == "twin" and unpaid["--twin"] is None:
        raise ValueError("--reference twin needs the model without noise: --twin FILE.")
    for name, given in (unpaid if epsilon is not None else paid).items():
        if given is None or given is False:
            continue
        if epsilon is None:
            raise ValueError(f"{name} belongs to a private evaluation; give --epsilon as well.")
        raise ValueError(f"--epsilon makes one private release, which {name} has no part in; run it without.")
    if epsilon is not None and paid["--groups"] is None:
        raise ValueError("--epsilon needs --groups A,B,...: groups read from the rows would not be private.")


def _classifier(path: Path) -> tuple[Any, Schema]:
    estimator, schema = model_and_schema(path, "discreet.fairness.certificate")
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"{path} holds a {type(estimator).__name__}; fairness bounds are about classifiers.")
    return estimator, schema


def _read(path: Path, schema: Schema, header: bool, sensitive: str | None) -> tuple[Table, Any]:
    """The rows with their labels, and the group of each row as text; the labels again where no groups are named."""
    from discreet.data.files import open_table

    with open_table(path, header) as file:
        rows = file.read(schema, target=True)
        return rows, rows.y if sensitive is None else file.texts(sensitive)


def _group_names(text: str | None) -> list[str]:
    names = [part.strip() for part in (text or "").split(",")]
    if len(names) < 2 or "" in names or len(set(names)) != len(names):
        raise ValueError(f"--groups must list at least two different groups, A,B,...; got {text!r}.")
    return names


def _label(text: str | None, estimator: Any) -> Any:
    """The class that a text stands for."""
    if text is None:
        return None
    known = {str(label): label for label in estimator.classes_.tolist()}
    if text not in known:
        raise ValueError(f"--favourable must be one of the labels {', '.join(known)}; got {text!r}.")
    return known[text]


def _plain(estimator: Any, evaluation: Evaluation, twin: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """The certificate without noise, and the band of models; without a distance, the values alone."""
    from discreet.fairness import certificate, linear_classifier, unknown_distance
    from discreet.fairness.figures import said_before

    made, train, rows = linear_classifier(estimator), evaluation.train, (evaluation.X, evaluation.y)
    law, (gradient, refused) = made.law, _gradient(estimator, train)
    distance = law or gradient or (None if twin is not None else unknown_distance(made))
    with said_before():
        found = certificate(estimator, *rows, evaluation.sensitive, distance=distance, twin=twin, **asked)
    return {
        "certificate": found,
        "evaluation": evaluation,
        "band": evaluation.band(estimator, law, train),
        "gradient": None if gradient is None else gradient.radius(evaluation.failure),
        "refused": refused,
        "unbounded": made.why_no_law if law is None and gradient is None and twin is None else None,
    }


def _gradient(estimator: Any, train: tuple[Any, Any] | None) -> tuple[Any, str]:
    """The law that the gradient on the training rows proves, or why it proves none."""
    from discreet.fairness import gradient_distance
    from discreet.fairness.figures import said_before

    if train is None:
        return None, ""
    try:
        with said_before():
            return gradient_distance(estimator, *train), ""
    except ValueError as refused:
        return None, str(refused)


def _draw(estimator: Any, evaluation: Evaluation, folder: Path, talks: bool) -> list[str]:
    """The figures of the chapter for this model."""
    from discreet._common.progress import progress_bar
    from discreet.fairness.figures import curves_of, plot_curves

    folder.mkdir(exist_ok=True)
    made = []
    fitted = evaluation.train is not None
    band = f"{evaluation.models} models {'fitted again' if fitted else 'drawn from the law around the given one'}"
    for axis, name in FIGURES.items():
        with progress_bar(f"figure against {axis}", wants_progress(not talks)) as progress:
            panels = curves_of(estimator, evaluation, axis, progress)
        plot_curves(panels, folder / name, f"Change that noise can make, against {axis}", band)
        made.append(str(folder / name))
    return made


def _check_folder(folder: Path | None, force: bool) -> None:
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--plot {folder} is a file; name a folder.")
    for name in FIGURES.values() if folder.exists() else ():
        check_free(folder / name, force, "--plot")
    pyplot()


def as_json(found: dict[str, Any]) -> dict[str, Any]:
    """The certificate, the band and the figures as JSON values."""
    band: ModelValues | None = found["band"]
    return {
        "certificate": found["certificate"].to_dict(),
        "band": None if band is None else {notion: list(band.band(notion)) for notion in band.notions},
        "band_from": _band_from(found),
        "models": None if band is None else band.models,
        "gradient_distance": found["gradient"],
        "figures": found.get("figures", []),
    }


def as_text(found: dict[str, Any]) -> str:
    """A table for people, and what it means."""
    from discreet.fairness.certificates.record import number

    told: FairnessCertificate = found["certificate"]
    band: ModelValues | None = found["band"]
    bounded, columns = found["unbounded"] is None, []
    if bounded:
        columns.append(("bound", [number(line.bound) for line in told.shown]))
        columns.append(("by", [form_of(line) for line in told.shown]))
        columns.append(("thesis", [number(line.printed) for line in told.shown]))
    if band is not None:
        each = [(column.min(), column.max()) for column in band.values.T]
        ends = [*each, *(band.band(line.notion) for line in told.shown[len(each) :])]
        columns.append(("models: from", [number(low) for low, _ in ends]))
        columns.append(("to", [number(high) for _, high in ends]))
    return "\n".join([told.table(columns, bounded), "", *_notes(found)])


def form_of(line: FairnessStatement | AggregateStatement) -> str:
    """Which argument gave the interval: the distance between the models alone, or the noise of each row's score."""
    bounds = getattr(line, "bounds", None)
    if bounds is None:  # of a mean over groups
        return ""
    if math.isnan(line.value):
        return "-"
    return "noise" if line.bound < bounds.get("signed", math.inf) * (1.0 - 1e-9) else "distance"


def _band_from(found: dict[str, Any]) -> str | None:
    if found["band"] is None:
        return None
    if found["evaluation"].train is None:
        return "models drawn from the law of the distance, around the model given"
    return "private models fitted again to the training rows"


def _notes(found: dict[str, Any]) -> list[str]:
    """What the table means; of a table of values alone, how to get bounds."""
    bounded = found["unbounded"] is None
    reasons = [reason.rstrip(".") for reason in (found["unbounded"], found["refused"]) if reason]
    of_bounds = [
        *found["certificate"].notes(),
        "bound: on the absolute change. by: distance of the models, or noise of each row's score.",
        "thesis: the bound as printed in P. Mangold's thesis (2023), chapter 6, to compare; - where it prints none.",
    ]
    of_values = [
        f"Values on these {found['certificate'].rows} rows.",
        f"No bounds on what the noise changed: {'; '.join(reasons)}.",
        "For bounds fit with --solver output-perturbation, or give --twin FILE or, as owner of the rows, --train FILE.",
    ]
    notes = of_bounds if bounded else of_values
    if found["band"] is not None:
        notes.append(f"models: smallest and largest value of {found['band'].models} {_band_from(found)}.")
    if found["gradient"] is not None:
        notes.append(f"Distance that the gradient on the training rows proves: {found['gradient']:.4g} (owner only).")
    if found["refused"] and bounded:
        notes.append(f"The gradient proves nothing: {found['refused']}")
    return notes + [f"written: {path}" for path in found.get("figures", [])]
