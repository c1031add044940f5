"""The files that discreet reads, good ones of each kind to damage, and what must hold of a file that is accepted."""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

import discreet
from discreet import resume_stream, solvers
from discreet._common.codec import parse_json
from discreet._common.exceptions import DiscreetWarning
from discreet.cli.account import _read_event
from discreet.cli.app import app
from discreet.data.files import open_table
from discreet.data.schema import Column, Schema, load_schema
from discreet.data.schema import Target as Predicted
from discreet.data.validation import Table
from discreet.estimators import model_file, paused_stream
from discreet.estimators.table_fit import FitRequest, fit_table
from discreet.metrics import evaluate, load_evaluation, record
from discreet.privacy import accounting
from discreet.privacy import signatures as signature_files
from discreet.privacy.guarantee import Guarantee, LedgerReceipt
from discreet.privacy.signatures import Signature
from discreet.problem.constraints import L2Ball
from tests.fuzz_federated import FEDERATED
from tests.fuzz_ledger import LEDGER
from tests.fuzzing import Target
from tests.mutations import DAMAGED_TEXT, damaged_bytes, damaged_csv, either

ROWS = 60
DATE = "2024-01-01T00:00:00+00:00"  # good files must be the same in every run
SCHEMA = Schema(
    (
        Column("a", low=-1.0, high=1.0),
        Column("b", low=-1.0, high=1.0),
        Column("c", "category", categories=("x", "y"), every_level=True),
        Column("d", "ignore"),
        Column("y"),
    ),
    Predicted("y", classes=("no", "yes")),
)


def as_files(contents: Callable[[], list[Any]]) -> Callable[[], list[bytes]]:
    """Values as JSON files."""
    return cache(lambda: [json.dumps(content).encode() for content in contents()])


@cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (ROWS, 2)).round(3)
    columns = {"a": X[:, 0], "b": X[:, 1], "c": rng.choice(["x", "y"], ROWS), "d": range(ROWS)}
    return pd.DataFrame(columns).assign(y=np.where(X.sum(axis=1) > 0.0, "yes", "no"))


@cache
def models() -> list[dict[str, Any]]:
    """Contents of model files: classifiers and regressors, with and without names, objects, schema and ledger."""
    X = pd.get_dummies(table()[["a", "b", "c"]]).to_numpy(dtype=float)
    classes, margin = table()["y"].to_numpy(), X[:, 0] - X[:, 1]
    names = pd.DataFrame(X, columns=SCHEMA.feature_names)
    ball = discreet.LogisticRegression(
        bounds=(-1.0, 1.0), classes=[0, 1, 2], constraint=L2Ball(3.0), solver=solvers.GradientDescent(), random_state=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        made = [
            discreet.LogisticRegression(bounds=(-1.0, 1.0), classes=["no", "yes"], random_state=1).fit(names, classes),
            ball.fit(X, np.arange(ROWS) % 3),
            discreet.Ridge(epsilon=discreet.Budget.zcdp(0.5), y_bounds=(-2.0, 2.0), random_state=3).fit(X, margin),
            discreet.Lasso(epsilon=math.inf, random_state=4).fit(names, margin),
            discreet.LinearRegression(epsilon=60.0, inference=True, random_state=5).fit(X[:, :2], margin),
        ]
    receipt = LedgerReceipt("patients", (3, 4), "0" * 64, 0.5, 1.0, 1e-6)
    for model in made:
        model.guarantee_ = model.guarantee_.about(replace(model.guarantee_.release, date=DATE, ledger=receipt))
    return [model_file.to_dict(model, SCHEMA if model is made[0] else None) for model in made]


def read_model(path: Path) -> None:
    """A model that is accepted predicts finite numbers, states its promise, and comes back from a file as it is."""
    stored = model_file.read_model(path)
    model: Any = stored.estimator
    predict_finite(model)
    content = model_file.to_dict(model, stored.schema)
    text = json.dumps(content, allow_nan=False)
    again = model_file.to_dict(model_file.from_dict(json.loads(text)).estimator, stored.schema)
    assert json.dumps(again, allow_nan=False) == text, "another model after writing and reading"
    assert model.guarantee_.statement().replace("\n", "").isprintable(), "a statement with control characters"
    json.dumps(model.summary().to_dict(), allow_nan=False)
    if hasattr(model, "inference_"):
        found = model.inference_
        assert np.isfinite(found.conf_int()).all() == found.valid, "an interval without end"
        found.wald_test(np.eye(len(found.names)))
    assert str(model.summary()).replace("\n", "").isprintable(), "a summary with control characters"
    with suppress(ValueError):  # parameters are checked when they are used, as scikit-learn does it
        model.plan(1_000, model.n_features_in_)


def predict_finite(model: Any) -> None:
    X = np.linspace(-3.0, 3.0, 4 * model.n_features_in_).reshape(4, -1)
    names = getattr(model, "feature_names_in_", None)
    rows = X if names is None else Table(X, list(names))
    predicted = model.predict(rows)
    if hasattr(model, "classes_"):
        assert set(predicted) <= set(model.classes_), "a class that is none"
        predicted = model.decision_function(rows)
    assert np.isfinite(predicted).all(), "a prediction that is not finite"
    if hasattr(model, "predict_proba"):
        assert np.allclose(model.predict_proba(rows).sum(axis=1), 1.0), "probabilities that do not sum to 1"


@cache
def events() -> list[dict[str, Any]]:
    a = accounting
    parts = [
        *(a.gaussian_event(5.0, 10), a.laplace_event(8.0), a.selection_event(0.1, 3), a.pure_event(0.2)),
        *(a.objective_event(0.1, 6.0, 2), a.poisson_event(0.01, 4.0, 100), a.randomised_response_event(0.8, 4)),
        *(a.fixed_size_event(1_000, 10, 5.0, 20), a.no_event(), a.non_private_event()),
        a.mixture_event(2.0, [0.0, 0.5, 1.0], [0.5, 0.3, 0.2]),
    ]
    return [a.event_to_dict(part) for part in [*parts, a.compose(parts[:4]), a.compose(parts[4:6])]]


def read_event(path: Path) -> None:
    """An event that is accepted can be written again, and its costs are numbers that fit together."""
    event, relation = _read_event(path)
    json.dumps(accounting.event_to_dict(event), allow_nan=False)
    kept = relation or "zero_out"
    epsilon = accounting.epsilon_of(event, 1e-6, kept)
    delta = accounting.delta_of(event, 1.0, kept)
    assert epsilon >= 0.0, "an epsilon that is no number"
    assert 0.0 <= delta <= 1.0, "a delta that is no probability"


def guarantees() -> list[dict[str, Any]]:
    return [model["guarantee"] for model in models()]


def read_guarantee(path: Path) -> None:
    """A guarantee that is accepted is proved by its event, and can be stated."""
    guarantee = Guarantee.from_dict(parse_json(path.read_bytes()))
    assert math.isinf(guarantee.epsilon) or guarantee.certified.epsilon <= guarantee.epsilon * (1 + 1e-9)
    json.dumps(guarantee.to_dict(), allow_nan=False)


def schemas() -> list[dict[str, Any]]:
    messy = (
        Column("age", low=0.0, missing="indicator"),
        Column("ward", "category", categories=("A", "B"), missing="A", baseline="B"),
        Column("day", "date", low="2000-01-01", high="2030-01-01", epoch="2000-01-01", missing="2001-01-01"),
        Column("pay", decimal=",", missing=0.0),
    )
    return [SCHEMA.to_dict(), Schema(messy).to_dict()]


def read_schema(path: Path) -> None:
    """A schema that is accepted has columns with finite bounds, and comes back as it is."""
    schema = load_schema(path)
    if schema.bounds is not None:
        ends = [end for side in schema.bounds for end in side if end is not None]
        assert np.isfinite(np.array(ends, dtype=float)).all(), "bounds that are not finite"
        assert all(
            column.fill is None or math.isfinite(column.fill) for column in schema.used if column.type != "category"
        )
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema
    assert len(schema.feature_names) == len(set(schema.feature_names))


def read_rows(path: Path) -> None:
    """A table that is accepted has finite numbers inside; now and then a model is trained on it."""
    with open_table(path) as file:
        rows = file.read(SCHEMA, target=True)
        assert np.isfinite(rows.X).all(), "a number that is not finite"
        assert len(rows.X) == len(rows.y), "features and targets of different length"
        done = fit_table(file, FitRequest(SCHEMA, parameters={"random_state": 0}))
    assert np.isfinite(done.model.coef_).all(), "a model that is not finite"


def damaged_inside(rng: Any, data: bytes) -> bytes:
    """A compressed file of a damaged table: the checksum of gzip finds all other damage."""
    return gzip.compress(damaged_csv(rng, gzip.decompress(data)), mtime=0)


@cache
def compressed_files() -> list[bytes]:
    return [gzip.compress(content, mtime=0) for content in csv_files()]


@cache
def csv_files() -> list[bytes]:
    return [table().to_csv(index=False).encode(), table().head(5).to_csv(index=False).encode()]


@cache
def parquet_files() -> list[bytes]:
    files = []
    for compression in ("snappy", "none"):
        file = io.BytesIO()
        table().to_parquet(file, compression=compression)  # type: ignore[call-overload]
        files.append(file.getvalue())
    return files


def other_column(rng: random.Random, data: bytes) -> bytes:
    """The same file with a column of another type, missing values or values that are no numbers."""
    name, values = rng.choice(("a", "b", "c", "y")), rng.choice(ODD_COLUMNS)
    whole = pq.read_table(io.BytesIO(data))
    whole = whole.set_column(whole.column_names.index(name), name, pa.array(*values).take(pa.array([0] * len(whole))))
    file = io.BytesIO()
    pq.write_table(whole, file)
    return file.getvalue()


ODD_COLUMNS: tuple[tuple[Any, ...], ...] = (
    *(([None],), ([None], pa.float64()), ([math.nan],), ([math.inf],), ([2**64 - 1], pa.uint64()), ([True],)),
    *(([[1.0]],), ([{"a": 1}],), ([b"\xff"],), (["\x00"],), (["1e400"],), ([Decimal("1e30")],), ([""],)),
    *(([date(1, 1, 1)],), ([2**62], pa.timestamp("us")), ([2**62], pa.duration("ns")), ([1.0], pa.float16())),
    *(([b"1"], pa.binary(1)), (["x"], pa.large_string()), (["x"], pa.dictionary(pa.int8(), pa.string()))),
)


@cache
def streams() -> list[dict[str, Any]]:
    X = table()[["a", "b"]].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        options: dict[str, Any] = {"bounds": (-1.0, 1.0), "public_n": 200, "random_state": 5}
        first = discreet.LogisticRegression(classes=["no", "yes"], **options).partial_fit(X, table()["y"].to_numpy())
        second = discreet.Ridge(y_bounds=(-2.0, 2.0), constraint=L2Ball(1.0), **options).partial_fit(X, X.sum(axis=1))
    return [paused_stream._content(model, model.stream_) for model in (first, second)]


def read_stream(path: Path) -> None:
    """A stream that is resumed has a finite model, and takes rows or says why not; a refused one keeps its file."""
    try:
        model = resume_stream(path)
    except ValueError:
        assert path.exists(), "a refused file is gone"
        raise
    predict_finite(model)
    X = np.linspace(-1.0, 1.0, 10 * model.n_features_in_).reshape(10, -1)
    y = np.resize(model.classes_, 10) if hasattr(model, "classes_") else X[:, 0]
    model.partial_fit(X, y)
    predict_finite(model)


@cache
def evaluations() -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    X, labels = rng.uniform(-1.0, 1.0, (200, 2)), rng.integers(0, 2, 200)
    options: dict[str, Any] = {"bounds": (-1.0, 1.0), "random_state": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        first = discreet.LogisticRegression(classes=[0, 1], **options).fit(X, labels)
        second = discreet.Ridge(y_bounds=(-1.0, 1.0), **options).fit(X, X[:, 0])
        made = [evaluate(first, X, labels, 1.0, random_state=1), evaluate(second, X, X[:, 0], 1.0, 0.0, random_state=1)]
    return [_dated(found).to_dict() for found in made]


def _dated(found: Any) -> Any:
    promise = found.guarantee
    return replace(found, guarantee=promise.about(replace(promise.release, date=DATE)))


def read_evaluation(path: Path) -> None:
    """An evaluation that is accepted can be printed, and comes back from a file as it is."""
    found = load_evaluation(path)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.dumps(record.from_dict(json.loads(text)).to_dict()) == text, "another one after reading"
    assert str(found)


def run_commands(path: Path) -> None:
    """The commands that read a model file print a result, or one line and an exit code that is not 0."""
    rows = path.with_name("rows.csv")
    rows.write_bytes(csv_files()[0])
    page = path.with_name("report.html")
    report = ["report", path, "-o", page, "--force"]
    for command in (["statement", path], ["predict", path, rows], ["account", "--event", path], report):
        result = CliRunner().invoke(app, [str(word) for word in command])
        if result.exit_code == 0:
            continue
        lines = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1, f"not one line: {result.output[:200]!r}"
        assert lines[0].startswith("error: "), lines[0][:200]
        assert "DISCREET_TRACEBACK" not in lines[0], f"an error from inside: {lines[0][:200]}"
        if command[0] == "statement":
            raise ValueError(lines[0])


def signatures() -> list[dict[str, Any]]:
    """Signatures of one table file, with and without the head of a ledger, by a key that everybody knows."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public = key.public_key().public_bytes_raw().hex()
    bare = [Signature("0" * 64, DATE, public, head) for head in (None, "f" * 64)]
    return [replace(each, signature=key.sign(each.message()).hex()).to_dict() for each in bare]


def read_signature(path: Path) -> None:
    """Whatever is accepted says what was signed."""
    assert signature_files.read_signature(path).to_dict() in signatures(), "something else than was signed"


TARGETS = (
    Target("signature", 10, as_files(signatures), DAMAGED_TEXT, read_signature),
    Target("model", 275, as_files(models), DAMAGED_TEXT, read_model),
    Target("command", 5, as_files(models), DAMAGED_TEXT, run_commands, compiles=True),
    Target("event", 100, as_files(events), DAMAGED_TEXT, read_event),
    Target("guarantee", 130, as_files(guarantees), DAMAGED_TEXT, read_guarantee),
    Target("evaluation", 20, as_files(evaluations), DAMAGED_TEXT, read_evaluation),
    Target("schema", 170, as_files(schemas), DAMAGED_TEXT, read_schema),
    Target("csv", 110, csv_files, either(damaged_csv, damaged_bytes), read_rows, ".csv"),
    Target("csv.gz", 20, compressed_files, either(damaged_bytes, damaged_inside), read_rows, ".csv.gz"),
    Target("parquet", 40, parquet_files, either(damaged_bytes, other_column), read_rows, ".parquet"),
    Target("stream", 30, as_files(streams), DAMAGED_TEXT, read_stream),
    LEDGER,
    *FEDERATED,
)
