"""Private and fairer models of incomes: accuracy and differences between men and women, for several strengths.

Run: make bench-fair-models, which rewrites the tables and the picture of docs/fair_models.md. The column SEX=Male is
not a feature. Differences of rates are between men and women, on held-out rows; the directions are paid from the same
epsilon as the model. "Without privacy" has exact directions and the exact optimum. `gd` takes the penalty itself,
`newton` and `cd` take fair features.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two processes share the machine

import numpy as np
import numpy.typing as npt
from sklearn import linear_model
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from stored_tables import command, labelled, may_write, stored_table

from discreet import Budget, LogisticRegression, Problem, Relation, solve
from discreet.fairness import FairFeatures, ReleasedDirections, mean_differences, private_directions
from discreet.privacy import accounting
from discreet.problem import L2, DirectionalL2, Logistic
from discreet.solvers import Newton

FloatArray = npt.NDArray[np.float64]
TABLES = ("acsincome_co", "acsincome_ne")
HIDDEN = "SEX=Male"
LARGEST = {"AGEP": 99.0, "SCHL": 24.0, "WKHP": 99.0}  # public, by the meaning of the columns; all others are 0 or 1
EPSILON = 1.0
DIRECTION_SHARE = 0.25  # of the squared Gaussian-DP parameter
ALPHA = 1e-3
LARGEST_STRENGTH = 1e9  # of the penalty itself, in place of infinity
STRENGTHS = (0.0, 1.0, 10.0, 100.0, 1000.0, math.inf)
SOLVERS = ("newton", "cd", "gd")
EXACT = "without privacy"
SEEDS = 10
PARITY, OPPORTUNITY = "demographic parity", "equality of opportunity"
MEASURES = ("accuracy", "log-loss", "parity difference", "opportunity difference")
PAGE = Path(__file__).parent.parent / "docs" / "fair_models.md"


@dataclass(frozen=True, eq=False)
class Split:
    """Rows that are fitted and rows that are held out; columns lie in [0, 1]."""

    X: FloatArray
    y: FloatArray
    men: FloatArray
    held_out: FloatArray
    held_out_y: FloatArray
    held_out_men: FloatArray

    def judge(self, scores: FloatArray) -> FloatArray:
        """The measures, on the rows that were held out."""
        chosen, good, men = scores > 0.0, self.held_out_y == 1.0, self.held_out_men == 1.0
        log_loss = np.logaddexp(0.0, np.where(good, -scores, scores)).mean()
        parity = chosen[men].mean() - chosen[~men].mean()
        opportunity = chosen[men & good].mean() - chosen[~men & good].mean()
        return np.array([(chosen == good).mean(), log_loss, parity, opportunity])


def split_of(table: str, seed: int) -> Split:
    data = stored_table(table)
    names = data["feature_names"]
    X = data["X"] / np.array([LARGEST.get(str(name), 1.0) for name in names])
    X, y, men = np.clip(X[:, names != HIDDEN], 0.0, 1.0), data["y"], data["sensitive"]
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[: len(y) // 5], order[len(y) // 5 :]
    return Split(X[train], y[train], men[train], X[test], y[test], men[test])


def exact_scores(split: Split, strength: float, notion: str) -> FloatArray:
    directions = mean_differences(
        split.X, split.men, split.y, groups=[1.0, 0.0], notion=notion, favourable=1.0 if notion == OPPORTUNITY else None
    )
    exact = linear_model.LogisticRegression(C=1.0 / (ALPHA * len(split.y)), solver="newton-cholesky", tol=1e-8)
    fitted = make_pipeline(FairFeatures(directions, strength), exact).fit(split.X, split.y)
    return np.asarray(fitted.decision_function(split.held_out))


def paid_directions(split: Split, notion: str, seed: int) -> ReleasedDirections:
    total = Budget(EPSILON, 1.0 / len(split.y) ** 2)
    spent = Budget.gdp(math.sqrt(DIRECTION_SHARE) * total.gaussian_mu())
    favourable = 1.0 if notion == OPPORTUNITY else None
    rows = (split.X, split.y, split.men, (0.0, 1.0), spent)
    return private_directions(*rows, groups=[1.0, 0.0], notion=notion, favourable=favourable, random_state=seed)


def private_scores(split: Split, strength: float, notion: str, solver: str, seed: int) -> FloatArray:
    """Directions and model, whose guarantees together are checked against the total."""
    total = Budget(EPSILON, 1.0 / len(split.y) ** 2)
    share = DIRECTION_SHARE if strength > 0.0 else 0.0
    left = Budget.gdp(math.sqrt(1.0 - share) * total.gaussian_mu())
    directions = paid_directions(split, notion, seed) if share else None
    fit = by_penalty if solver == "gd" else by_features
    scores, event = fit(split, strength, directions, solver, left, seed)
    events = [event] if directions is None else [directions.event, event]
    assert total.delta is not None
    assert accounting.epsilon_of(accounting.compose(events), total.delta, Relation.REPLACE) <= EPSILON + 1e-6
    return scores


def by_features(
    split: Split, strength: float, directions: ReleasedDirections | None, solver: str, budget: Budget, seed: int
) -> tuple[FloatArray, Any]:
    """Scores of held-out rows, and the cost, of a pipeline with fair features."""
    step = FairFeatures(np.zeros((1, split.X.shape[1])) if directions is None else directions, strength)
    bounds = step.fit(split.X[:1]).transformed_bounds((0.0, 1.0))
    # Fair features mix indicators, whose bulk is then narrow: newton does better with the declared ranges.
    declared = solver == "newton" and directions is not None
    model = LogisticRegression(
        alpha=ALPHA, solver=Newton(scale_share=0.0) if declared else solver, epsilon=budget, bounds=bounds,
        classes=[0.0, 1.0], random_state=seed,
    )  # fmt: skip
    fitted = make_pipeline(step, model).fit(split.X, split.y)
    return np.asarray(fitted.decision_function(split.held_out)), model.guarantee_.event


def by_penalty(
    split: Split, strength: float, directions: ReleasedDirections | None, solver: str, budget: Budget, seed: int
) -> tuple[FloatArray, Any]:
    """Scores of held-out rows, and the cost, of a solver that takes the penalty itself."""
    beta = ALPHA * min(strength, LARGEST_STRENGTH)
    penalty = L2(ALPHA) if directions is None else DirectionalL2(ALPHA, beta, directions.values)
    y = 2.0 * split.y - 1.0
    found = solve(
        Problem(Logistic(), penalty), split.X, y, solver=solver, budget=budget, bounds=(0.0, 1.0), random_state=seed
    )
    return split.held_out @ found.coef + float(found.intercept), found.plan.event


Line = tuple[str, str, FloatArray]  # strength, solver, measures of every seed


def cases() -> list[tuple[str, str, float, str]]:
    """The lines of a table: strength in words, solver, strength, and which rows are compared."""
    found = [(f"{strength:g}", solver, strength, PARITY) for strength in STRENGTHS for solver in (EXACT, *SOLVERS)]
    return found + [("inf, among y = 1", solver, math.inf, OPPORTUNITY) for solver in (EXACT, SOLVERS[0])]


def measure_split(table: str, seed: int) -> list[FloatArray]:
    """The measures of every line, for one split and one seed of the noise."""
    warnings.simplefilter("ignore")  # in this process too
    made = split_of(table, seed)
    scores = [
        exact_scores(made, strength, notion)
        if solver == EXACT
        else private_scores(made, strength, notion, solver, seed)
        for _, solver, strength, notion in cases()
    ]
    return [made.judge(one) for one in scores]


def measure(table: str, seeds: int, pool: ProcessPoolExecutor) -> list[Line]:
    found = list(pool.map(measure_split, [table] * seeds, range(seeds)))
    return [
        (name, solver, np.array([of_seed[line] for of_seed in found]))
        for line, (name, solver, _, _) in enumerate(cases())
    ]


def table_of(lines: list[Line]) -> str:
    """Means over the seeds, and the worst in brackets: the lowest accuracy, the largest loss and differences."""
    worst: list[Callable[[FloatArray], FloatArray]] = [np.min, np.max, largest, largest]
    rows = ["| strength | solver | " + " | ".join(MEASURES) + " |", "| --- " * (2 + len(MEASURES)) + "|"]
    for name, solver, found in lines:
        cells = [f"{column.mean():.3f} ({far(column):.3f})" for column, far in zip(found.T, worst, strict=True)]
        rows.append(f"| {name} | {solver} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def remark(table: str, seeds: int) -> str:
    """How noisy the directions are, and how well the columns that are left tell the sex. Not private."""
    shares = {
        notion: np.mean([paid_directions(split_of(table, seed), notion, seed).noise_share for seed in range(seeds)])
        for notion in (PARITY, OPPORTUNITY)
    }
    split = split_of(table, 0)
    sex = linear_model.LogisticRegression(solver="newton-cholesky").fit(split.X, split.men)
    area = roc_auc_score(split.held_out_men, sex.decision_function(split.held_out))
    return (
        f"Part of the direction's squared length that may be noise: {shares[PARITY]:.2f} of all people, "
        f"{shares[OPPORTUNITY]:.2f} among y = 1. The other columns tell the sex with an area under the curve of "
        f"{area:.2f}.\n"
    )


def largest(column: FloatArray) -> FloatArray:
    """The entry of largest absolute value, with its sign."""
    return column[np.abs(column).argmax()]


def picture(measured: dict[str, list[Line]], path: Path) -> None:
    from discreet._common.plotting import pyplot

    plt = pyplot()
    figure, panels = plt.subplots(1, len(measured), figsize=(10.0, 4.0), layout="constrained", squeeze=False)
    for axes, (table, lines) in zip(panels[0], measured.items(), strict=True):
        for colour, solver in enumerate((EXACT, *SOLVERS)):
            means = [found.mean(axis=0) for name, s, found in lines if s == solver and "," not in name]
            parity, accuracy = np.array(means)[:, 2], np.array(means)[:, 0]
            axes.plot(parity, accuracy, marker="o", color=f"C{colour}", label=solver)
            for at in (0, -1):
                axes.annotate(("0", "inf")[at], (parity[at], accuracy[at]), fontsize=8, xytext=(4, 4),
                              textcoords="offset points")  # fmt: skip
        axes.set(xlabel="demographic parity difference", ylabel="accuracy", title=f"{table}, epsilon {EPSILON:g}")
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def rewrite(table: str, text: str) -> None:
    """Put a new table between the marks of the page."""
    start, end = f"<!-- {table} -->\n", f"<!-- end of {table} -->"
    before, _, rest = PAGE.read_text().partition(start)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{after}")


def main() -> None:
    parser = command(__doc__, *TABLES)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--write", action="store_true", help="rewrite the tables and the picture of the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # seeds, and directions that are mostly noise: the page says both
    write = arguments.write and may_write(*TABLES)
    measured = {}
    with ProcessPoolExecutor(2) as pool:
        for table in TABLES:
            measured[table] = measure(table, arguments.seeds, pool)
            text = table_of(measured[table]) + "\n" + remark(table, arguments.seeds)
            print(f"{labelled(table)}\n{text}", flush=True)
            if write:
                rewrite(table, text)
    if write and measured:
        picture(measured, PAGE.parent / "fair-models.png")


if __name__ == "__main__":
    main()
