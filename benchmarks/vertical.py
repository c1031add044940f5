"""Columns split between two to four holders: what the joint model gains over the label holder alone.

Run: make bench-vertical, which rewrites the tables and pictures of docs/benchmarks/vertical.md; or this file with names
of tables. Shown is how much of the held-out loss of the best constant is explained: R^2 for the squared loss.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from stored_tables import command, labelled, may_write, stored_table

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.federated.vertical import Holder, HolderFacts, plan_vertical, run_vertical
from discreet.privacy.random.generator import secure_generator
from discreet.problem.losses import Logistic, Loss, Squared
from discreet.problem.penalties import L2
from discreet.solvers import CoordinateDescent

FloatArray = npt.NDArray[np.float64]
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
RUNS = 9
PENALTY = L2(1e-4)
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "vertical.md"

# Which columns each holder has, by the beginnings of their names; the label holder is the last.
SPLITS: dict[str, dict[str, tuple[str, ...]]] = {
    "electricity, 2 holders": {
        "market": ("nswprice", "vicprice"),
        "grid": ("date", "day", "period", "nswdemand", "vicdemand", "transfer"),
    },
    "electricity, 2 states": {
        "victoria": ("vicprice", "vicdemand", "transfer"),
        "new south wales": ("date", "day", "period", "nswprice", "nswdemand"),
    },
    "electricity, 3 holders": {
        "market": ("nswprice", "vicprice"),
        "grid": ("nswdemand", "vicdemand", "transfer"),
        "customer": ("date", "day", "period"),
    },
    "california, 2 holders": {
        "tax office": ("MedInc", "Population", "AveOccup"),
        "land registry": ("HouseAge", "AveRooms", "AveBedrms", "Latitude", "Longitude"),
    },
    "california, 4 holders": {
        "tax office": ("MedInc",),
        "census": ("Population", "AveOccup"),
        "map": ("Latitude", "Longitude"),
        "land registry": ("HouseAge", "AveRooms", "AveBedrms"),
    },
    "acsincome_co, 2 holders": {
        "registry": ("MAR", "RELP", "RAC1P", "POBP", "SCHL"),
        "employer": ("AGEP", "WKHP", "COW", "OCC", "SEX"),
    },
    "acsincome_co, 3 holders": {
        "employer": ("WKHP", "COW", "OCC"),
        "registry": ("MAR", "RELP", "RAC1P", "POBP"),
        "school": ("AGEP", "SCHL", "SEX"),
    },
}
# Public limits of the columns that are not indicators or fractions, by the meaning of their numbers.
LIMITS = {
    "day": (1, 7), "MedInc": (0, 15), "HouseAge": (0, 60), "AveRooms": (0, 20), "AveBedrms": (0, 5),
    "Population": (0, 10_000), "AveOccup": (0, 20), "Latitude": (32, 42), "Longitude": (-125, -114),
    "AGEP": (16, 96), "SCHL": (1, 24), "WKHP": (0, 99),
}  # fmt: skip
TARGETS = {"california": (0.0, 5.0)}


@dataclass(frozen=True, eq=False)
class Case:
    """A table, cut into columns of holders and into people that are fitted and people that are held out."""

    name: str
    loss: Loss
    columns: dict[str, list[int]]
    bounds: FloatArray  # (2, columns)
    X: FloatArray
    y: FloatArray
    held_out: FloatArray
    held_out_y: FloatArray

    @property
    def problem(self) -> Problem:
        return Problem(self.loss, PENALTY)

    @property
    def labels(self) -> str:
        return list(self.columns)[-1]

    @property
    def y_bounds(self) -> tuple[float, float] | None:
        return TARGETS.get(self.name.split(",", maxsplit=1)[0])

    def explained(self, coef: FloatArray, intercept: float) -> float:
        """How much of the held-out loss of the best constant is explained."""
        constant = Problem(self.loss).optimum(np.zeros((len(self.y), 1)), self.y).intercept
        losses = self.loss.value(self.held_out @ coef + intercept, self.held_out_y)
        return 1.0 - float(
            losses.mean() / self.loss.value(np.full(len(self.held_out_y), constant), self.held_out_y).mean()
        )


def case(name: str) -> Case:
    table = name.split(",", maxsplit=1)[0]
    data = stored_table(table)
    X, y, names = data["X"], data["y"], [str(column) for column in data["feature_names"]]
    starts = SPLITS[name]
    columns = {
        holder: [j for j, column in enumerate(names) if column.split("=")[0] in own] for holder, own in starts.items()
    }
    assert sorted(j for own in columns.values() for j in own) == list(range(len(names))), "every column has one holder"
    bounds = np.array([LIMITS.get(column, (0, 1)) for column in names], dtype=np.float64).T
    loss: Loss = Squared() if table in TARGETS else Logistic()
    y = y if table in TARGETS else 2.0 * y - 1.0
    X = np.clip(X, *bounds)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    return Case(name, loss, columns, bounds, X[train], y[train], X[test], y[test])


def split_model(case: Case, epsilon: float, sweeps: int | None = None) -> tuple[float, float]:
    """What the joint model of all holders explains, and the epsilon of all their rows together."""
    n = len(case.y)
    facts = [
        HolderFacts(name, len(own), Budget(epsilon, 1.0 / n**2), tuple(case.bounds[:, own]))
        for name, own in case.columns.items()
    ]
    plan = plan_vertical(case.problem, facts, n, labels=case.labels, y_bounds=case.y_bounds, sweeps=sweeps)
    holders = {
        name: Holder(plan, name, case.X[:, own], case.y if name == case.labels else None)
        for name, own in case.columns.items()
    }
    model = run_vertical(plan, holders)
    coef = np.zeros(case.X.shape[1])
    for name, own in case.columns.items():
        coef[own] = model.coef[name]
    return case.explained(coef, model.intercept), plan.total.epsilon


def central_model(case: Case, own: list[int], epsilon: float) -> float:
    """What private coordinate descent on these columns explains, if one trusted holder has them and the target."""
    n = len(case.y)
    public = Public.of(n, len(own), bounds=tuple(case.bounds[:, own]), y_bounds=case.y_bounds)
    solver = CoordinateDescent()
    plan = solver.plan(case.problem, public, Budget(epsilon, 1.0 / n**2))
    solution = solver.solve(case.problem, Data(case.X[:, own], case.y), plan, secure_generator())
    coef = np.zeros(case.X.shape[1])
    coef[own] = solution.coef
    return case.explained(coef, float(solution.intercept))


def exact_model(case: Case, own: list[int]) -> float:
    """What the model of these columns explains without privacy."""
    best = case.problem.optimum(case.X[:, own], case.y)
    coef = np.zeros(case.X.shape[1])
    coef[own] = best.coef
    return case.explained(coef, float(best.intercept))


def repeated(run: Callable[[], float], runs: int) -> tuple[float, float, float]:
    """Median, lowest and highest of several runs with fresh noise."""
    found = [run() for _ in range(runs)]
    return statistics.median(found), min(found), max(found)


def measure(case: Case, runs: int) -> dict[str, list[tuple[float, float, float]]]:
    everything = list(range(case.X.shape[1]))
    lines: dict[str, list[tuple[float, float, float]]] = {
        "split": [],
        "label holder alone": [],
        "one trusted holder": [],
    }
    for epsilon in EPSILONS:
        total = split_model(case, epsilon)[1]
        runs_of = {
            "split": lambda epsilon=epsilon: split_model(case, epsilon)[0],
            "label holder alone": lambda epsilon=epsilon: central_model(case, case.columns[case.labels], epsilon),
            "one trusted holder": lambda total=total: central_model(case, everything, total),
        }
        for name, run in runs_of.items():
            lines[name].append(repeated(run, runs))
    return lines


def table_of(case: Case, lines: dict[str, list[tuple[float, float, float]]]) -> str:
    joint = exact_model(case, list(range(case.X.shape[1])))
    alone = {name: exact_model(case, own) for name, own in case.columns.items()}
    head = "| model | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " | without privacy |"
    rows = [head, "| --- " * (len(EPSILONS) + 2) + "|"]
    exact = {"split": joint, "label holder alone": alone[case.labels], "one trusted holder": joint}
    for name, line in lines.items():
        cells = [f"{middle:.3f} ({low:.3f} to {high:.3f})" for middle, low, high in line]
        rows.append(f"| {name} | " + " | ".join(cells) + f" | {exact[name]:.3f} |")
    others = ", ".join(f"{name} {value:.3f}" for name, value in alone.items())
    return "\n".join(rows) + f"\n\nColumns of one holder with the target, without privacy: {others}.\n"


def picture(case: Case, lines: dict[str, list[tuple[float, float, float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for (name, line), colour in zip(lines.items(), ("C0", "C1", "C2"), strict=True):
        middle, low, high = np.array(line).T
        axes.plot(EPSILONS, middle, marker="o", color=colour, label=name)
        axes.fill_between(EPSILONS, low, high, color=colour, alpha=0.15, linewidth=0)
    own = exact_model(case, case.columns[case.labels])
    joint = exact_model(case, list(range(case.X.shape[1])))
    axes.axhline(joint, color="black", linestyle="--", linewidth=1, label="all columns, without privacy")
    axes.axhline(own, color="black", linestyle=":", linewidth=1, label="label holder, without privacy")
    axes.set(
        xscale="log", xlabel="epsilon of each holder", ylabel="explained part of the held-out loss", title=case.name
    )
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.0, top=1.1 * joint)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    stored = {name: name.split(",", maxsplit=1)[0] for name in SPLITS}
    parser = command(__doc__, *dict.fromkeys(stored.values()))
    parser.add_argument("names", nargs="*", help="beginnings of names, such as 'california' (default: all)")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--write", action="store_true", help="rewrite the tables and pictures of the page")
    arguments = parser.parse_args()
    chosen = [name for name in SPLITS if not arguments.names or name.startswith(tuple(arguments.names))]
    write = arguments.write and may_write(*dict.fromkeys(stored[name] for name in chosen))
    for name in chosen:
        made = case(name)
        lines = measure(made, arguments.runs)
        table = table_of(made, lines)
        print(f"{labelled(name, stored[name])}: {len(made.y):,} people, {made.X.shape[1]} columns\n{table}", flush=True)
        if write:
            rewrite(name, table)
            file = "vertical-" + name.replace(", ", "-").replace(" holders", "").replace(" ", "-") + ".png"
            picture(made, lines, PAGE.parent / file)


def rewrite(name: str, table: str) -> None:
    """Put a new table between the marks of the page."""
    text = PAGE.read_text()
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{start}\n{table}\n{end}{after}")


if __name__ == "__main__":
    main()
