"""Every command in a session of its own folder, and the texts it prints; models of Python follow the same road.

`python -m tests.frozen.commands` writes `commands.txt` anew; do this only where a change of the texts is meant.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import discreet
from discreet.cli.app import app
from discreet.preprocessing import (
    PrivateBounds,
    PrivateImputer,
    PrivateQuantiles,
    PrivateScaler,
    private_means,
    private_smoothness,
)
from discreet.problem import Squared

STORED = Path(__file__).with_name("commands.txt")
ROWS = 400
MOST_LINES = 120  # of a text that are kept
WITHOUT_SEED = "paid.json"
SESSION = """
schema labels.csv --out schema.json
schema labels.csv --json
fit labels.csv --target y --epsilon 4 --seed 1 --out labels.json --bounds=-70,80
fit targets.csv --target y --epsilon 4 --seed 1 --out targets.json --task regression --y-bounds=-60,60
fit labels.csv --target y --epsilon 4 --seed 1 --solver gd --out gd.json --task classification --json --no-such-option
fit labels.csv --target y --epsilon 4 --seed 1 --solver gd --out gd.json --task classification --json
fit persons.csv --target y --classes 0,1 --epsilon 4 --seed 1 --person-column id --out persons.json
fit targets.csv --target y --epsilon 4 --seed 1 --out intervals.json --estimator LinearRegression --inference --bounds=-70,80
fit targets.csv --target y --epsilon 4 --seed 1 --out refused.json --estimator Lasso --inference
show intervals.json --intervals --alpha 0.1
show targets.json --intervals
fit labels.csv --target no_such --epsilon 1
fit labels.csv --target y --epsilon 0
predict labels.json labels.csv --out predictions.csv
predict labels.json labels.csv --proba --json --out proba.json
evaluate labels.json labels.csv --epsilon 2 --seed 3 --out evaluation.json
evaluate targets.json targets.csv --epsilon 2 --seed 3
show labels.json
show targets.json --json
statement labels.json
report labels.json --out report.md --markdown --evaluation evaluation.json
export labels.json --sql query.sql
plan --rows 5000 --columns 10 --epsilon 1
plan --rows 5000 --columns 10 --epsilon 1 --solver cd --theory
plan --rows 300 --columns 4 --estimator Ridge --epsilon 0.5 --solver gd --persons
plan --rows 5000 --columns 10 --json
account --gaussian 5 --count 100 --delta 1e-6
account --promise-epsilon 1 --meaning
account --rho 0.1 --delta 1e-6 --json
account --laplace 2 --count 3
account --gaussian 2 --count 3 --poisson-rate 0.1
ledger open --dataset patients --epsilon 3 --delta 1e-5 --ledger budget.db
fit labels.csv --target y --task classification --epsilon 1 --delta 1e-6 --out paid.json --ledger budget.db --dataset patients --quiet
ledger show --ledger budget.db
ledger verify --ledger budget.db
key --out steward.key
sign paid.json --key steward.key --ledger budget.db
verify paid.json --key steward.pub --ledger budget.db
ledger entries --dataset patients --ledger budget.db
fit labels.csv --target y --task classification --epsilon 9 --out more.json --ledger budget.db --dataset patients
fairness gd.json labels.csv --sensitive group
fairness-plan --rows 45000 --columns 10 --group men=25000 --group women=20000 --at-most 0.02
federated plan --help
demo --help
audit --help
audit faults --help
"""  # noqa: E501
VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?([+-]\d\d:?\d\d|Z| UTC)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{12,}\b|\b[0-9a-f]{4}( [0-9a-f]{4}){4}\b"), "<digest>"),
    (re.compile(re.escape(discreet.__version__)), "<version>"),
]


def tables() -> None:
    """Two tables in the present folder, made of sines."""
    rows = np.arange(1.0, ROWS + 1.0)[:, None]
    X = np.sin(rows * np.sqrt([2.0, 3.0, 5.0])) * [1.0, 20.0, 0.1] + [0.0, 5.0, 0.0]
    margin = 2.0 * X[:, 0] - 0.1 * (X[:, 1] - 5.0) + 0.3 * np.sin(7.0 * rows[:, 0])
    frame = pd.DataFrame(X.round(6), columns=["a", "b", "c"])
    frame.assign(y=(10.0 * margin + 4.0).round(6)).to_csv("targets.csv", index=False)
    labels = frame.assign(group=(np.sin(11.0 * rows[:, 0]) > 0.0).astype(int), y=(margin > 0.0).astype(int))
    labels.to_csv("labels.csv", index=False)
    labels.assign(id=np.arange(ROWS) // 2).to_csv("persons.csv", index=False)


def without_what_varies(text: str) -> str:
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines[:MOST_LINES] + [f"... {len(lines)} lines"] * (len(lines) > MOST_LINES))


def session() -> dict[str, str]:
    """What each command prints and writes, in a new folder."""
    before, results = Path.cwd(), {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            tables()
            for line in SESSION.strip().splitlines():
                outcome = CliRunner(env={"COLUMNS": "110", "TERM": "dumb"}).invoke(app, line.split())
                text = f"exit code {outcome.exit_code}\n{outcome.stdout}"
                text += f"-- stderr\n{outcome.stderr}" if outcome.stderr else ""
                results[line] = without_what_varies(text.replace(folder, "<folder>"))
            for path in sorted(Path().glob("*")):
                if path.suffix in (".json", ".sql", ".md") and path.name != WITHOUT_SEED:
                    results[f"file {path}"] = without_what_varies(path.read_text())
            results["models of Python"] = json.dumps(of_python(), indent=1)
        finally:
            os.chdir(before)
    return results


def of_python() -> dict[str, object]:
    """Seeded estimators and private transformers, with the digests of their plans."""
    frame = pd.read_csv("labels.csv")
    X, y, ids = frame[["a", "b", "c"]].to_numpy(), frame.y.to_numpy(), np.arange(ROWS) // 2
    t = pd.read_csv("targets.csv").y.to_numpy()
    three, counts = (t > 0.0).astype(int) + (t > 10.0), np.round(np.abs(t))
    seed, labels = {"random_state": 5, "epsilon": 5.0}, {"classes": [0, 1]}
    classifier, ridge = discreet.LogisticRegression, discreet.Ridge
    models = {
        "labels": classifier(**seed, **labels).fit(X, y),
        "three classes": classifier(**seed, classes=[0, 1, 2]).fit(X, three),
        "three classes, gd": classifier(**seed, classes=[0, 1, 2], solver="gd").fit(X, three),
        "persons": classifier(**seed, **labels).fit(X, y, groups=ids),
        "weights": classifier(**seed, **labels).fit(X, y, sample_weight=np.linspace(0.1, 1.0, ROWS)),
        "class weights": classifier(**seed, **labels, class_weight={0: 1.0, 1: 0.5}).fit(X, y),
        "add_remove": classifier(**seed, **labels, relation="add_remove", public_n=ROWS).fit(X, y),
        "LinearSVC": discreet.LinearSVC(**seed, **labels).fit(X, y),
        "Ridge": ridge(**seed).fit(X, t),
        "Ridge, bounds": ridge(**seed, bounds=(-20.0, 30.0), y_bounds=(-60.0, 60.0)).fit(X, t),
        "LinearRegression": discreet.LinearRegression(**seed).fit(X, t),
        "Lasso": discreet.Lasso(**seed, solver="cd").fit(X, t),
        "ElasticNet": discreet.ElasticNet(**seed, solver="admm").fit(X, t),
        "HuberRegressor": discreet.HuberRegressor(**seed).fit(X, t),
        "PoissonRegressor": discreet.PoissonRegressor(**seed).fit(X, counts),
        "GammaRegressor": discreet.GammaRegressor(**seed).fit(X, counts + 1.0),
    }
    fits = {name: facts(model) for name, model in models.items()}
    wide = {"bounds": (-30.0, 30.0)}
    gaps = np.where(X > 24.0, np.nan, X)
    released = {
        "scaler": PrivateScaler(**seed, **wide).fit(X).scale_,
        "bounds": PrivateBounds(**seed).fit(X).high_,
        "quantiles": PrivateQuantiles(**seed, **wide).fit(X).quantiles_,
        "imputer": PrivateImputer(**seed, **wide).fit(gaps).statistics_,
        "medians": PrivateImputer(**seed, **wide, strategy="median").fit(gaps).statistics_,
        "means": private_means(X, **wide, **seed).values,
        "smoothness": private_smoothness(X, Squared(), **wide, budget=5.0, random_state=5).values,
    }
    numbers = {name: [f"{each:.9g}" for each in np.ravel(values)] for name, values in released.items()}
    return fits | numbers


def facts(model: discreet.estimators.base.PrivateLinearModel) -> list[object]:
    """Coefficients, solver, digest and epsilon of a fitted model."""
    numbers = [f"{each:.9g}" for each in (*np.ravel(model.coef_), *np.ravel(model.intercept_))]
    return [numbers, model.plan_.solver.name, model.plan_.digest.hex(), f"{model.guarantee_.epsilon:.9g}"]


def stored() -> dict[str, str]:
    """The texts of the file, by command."""
    parts = re.split(r"^\$ (.*)$", STORED.read_text(), flags=re.MULTILINE)
    return {name: text.strip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


if __name__ == "__main__":
    STORED.write_text("".join(f"$ {name}\n{text}\n\n" for name, text in session().items()))
