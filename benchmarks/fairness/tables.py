"""Tables of docs/benchmarks/fairness.md, from private models and the bounds about them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from framework.markdown import table

from discreet import Problem
from discreet.fairness.figures import values_of
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from fairness.bounds import (
    CODED,
    NOTIONS,
    PRINTED,
    Measured,
    aggregate_bounds,
    best_form,
    largest_change,
    needed_distances,
    printed_distance,
    signed_tail,
    thesis_bounds,
)
from fairness.cases import Case, FloatArray, thesis, weak, with_ones
from fairness.fits import FitsOf, Setting

# Table 6.1, as printed: bounds at 99 % and epsilon 1 on tables that are not at hand.
THESIS = {
    "celebA, n = 182,339": (0.1044, 0.0975, 0.0975, 0.0975, 0.0487),
    "folktables, n = 1,498,050": (0.0017, 0.0026, 0.0026, 0.0026, 0.0013),
}
THESIS_ROWS = 1_498_050
OWN, FAR = "own ridge", 1e9  # the form with another optimum; a distance within which every prediction may change
EPSILON = 1.0  # of all tables
SHORT = {"equality of opportunity": "opportunity", "accuracy": "accuracy"}


def _numbers(found: Mapping[str, float]) -> list[str]:
    return [f"{min(found[notion], 1.0):.4f}" for notion in NOTIONS]


def _reference(cell: Measured) -> dict[str, float]:
    """The values of the noise-free twin."""
    values = values_of([cell.twin.scores(cell.case.X_test)], cell.rows, NOTIONS)
    return {notion: float(values.aggregate(notion)[0]) for notion in NOTIONS}


def bounds_table(cell: Measured) -> str:
    """Table 6.1: bounds on the change of each notion, means over groups."""
    needed = needed_distances(cell.twin.coef[0], cell.case.X_test)
    distance = printed_distance(cell.case.columns, cell.setting.rows, cell.setting.epsilon)
    proved, private = cell.certify(), cell.certify(reference="private")
    here = f"n = {cell.setting.rows:,}"
    lines = [[f"thesis, {name}, as printed there", *(f"{v:.4f}" for v in values)] for name, values in THESIS.items()]
    found = {
        f"formulas of the thesis, {here}": thesis_bounds(needed, distance, cell.rows, PRINTED, tail=False),
        "the same distance, share of rows within it": thesis_bounds(needed, distance, cell.rows, PRINTED, tail=True),
        "ours, distance alone": signed_tail(proved),
        "**ours, best form**": best_form(proved),
        "ours, around the private model": aggregate_bounds(private),
        "distance known (largest of the models)": cell.bounds["distance known"],
        "both models known (farthest of the models)": cell.bounds["both known"],
        f"largest change of {cell.setting.models} models": largest_change(cell.values, _reference(cell)),
    }
    lines += [[name, *_numbers(values)] for name, values in found.items()]
    lines.append(["value of the model without noise", *_numbers(_reference(cell))])
    return table(["bound on the change of", *NOTIONS], lines)


def code_table(cell: Measured) -> str:
    """What the thesis's code computes: another model, another Lipschitz constant, and equalised odds by group alone."""
    X, y = cell.case.X[: cell.setting.rows], 2.0 * cell.case.y[: cell.setting.rows] - 1.0
    rows = cell.setting.rows
    loose = Problem(Logistic(), L2(1.0 / rows**2), fit_intercept=False).optimum(X, y).coef
    models = {"1-strongly convex": cell.twin.coef[0], "C = n": loose}
    lines = []
    for name, coef in models.items():
        needed = needed_distances(coef, cell.case.X_test)
        for count in (rows, THESIS_ROWS):
            distance = printed_distance(cell.case.columns, count, cell.setting.epsilon)
            found = thesis_bounds(needed, distance, cell.rows, CODED, tail=True)
            coded = found | {"equalised odds": found["accuracy parity"]}
            norm = float(np.linalg.norm(coef))
            lines.append([name, f"{norm:.3f}", f"{count:,}", *_numbers(coded), f"{found['equalised odds']:.4f}"])
    lines.append(["thesis, folktables", "", f"{THESIS_ROWS:,}", *(f"{v:.4f}" for v in list(THESIS.values())[1]), ""])
    return table(["model", "norm", "n in the distance", *NOTIONS, "equalised odds, as defined"], lines)


def solver_table(cells: Mapping[str, Measured]) -> str:
    """For each solver what is proved, what the gradient proves to the owner, and what models did."""
    what = ("proved", "gradient (owner)", "observed")
    head = ["solver", *(f"distance, {kind}" for kind in what)]
    head += [f"{label}, {kind}" for kind in what for label in SHORT.values()]
    return table(head, [[name, *_solver_line(cell, OWN in name)] for name, cell in cells.items()])


def _solver_line(cell: Measured, own: bool) -> list[str]:
    """Distances over the norm of the optimum, then bounds and changes of two notions.

    A ridge of its own makes another optimum, which is not at hand: the bound is then around a private model.
    """
    norm = float(np.linalg.norm(cell.twin.coef))
    radius, proved = "none", None
    if cell.first.law is not None:
        radius = f"{_user_radius(cell) / norm:.3g}"
        proved = aggregate_bounds(cell.certify(reference="private")) if own else best_form(cell.certify())
    gradient = aggregate_bounds(cell.certify(float(cell.gradient_distances.max())))
    nothing = aggregate_bounds(cell.certify(FAR))
    change = largest_change(cell.values, _reference(cell))
    return [
        radius,
        f"{float(cell.gradient_distances.max()) / norm:.3g}",
        f"{float(cell.distances.max()) / norm:.3g}",
        *(_shown(proved, nothing, notion) for notion in SHORT),
        *(_shown(gradient, nothing, notion) for notion in SHORT),
        *(f"{change[notion]:.4f}" for notion in SHORT),
    ]


def _shown(found: Mapping[str, float] | None, nothing: Mapping[str, float], notion: str) -> str:
    """A bound, unless it says no more than that every prediction may change."""
    if found is None:
        return "none"
    return "trivial" if found[notion] >= 0.99 * nothing[notion] else f"{found[notion]:.4f}"


def _user_radius(cell: Measured) -> float:
    """The proved distance in the user's columns: weights there are those of the solver over the scale."""
    law, scaling = cell.first.law, cell.first.scaling
    assert law is not None
    return law.radius(0.01) / float((np.sqrt(law.weights) * scaling.scale).min())


def model_table(strong: Mapping[str, Measured], usual: Mapping[str, Measured]) -> str:
    """Accuracy and log-loss, means and worst cases, of all models."""
    lines = []
    for title, cells in (("1-strongly convex", strong), ("penalty 1e-4", usual)):
        first = next(iter(cells.values()))
        twin = first.twin.coef
        lines.append([title, "without noise", *_judged(first, twin)])
        lines += [[title, name, *_judged(cell, cell.fits.coef)] for name, cell in cells.items()]
    head = ["objective", "solver", "accuracy", "worst model", "worst group", "log-loss", "worst log-loss"]
    return table([*head, "opportunity", "its worst group"], lines)


def _judged(cell: Measured, coef: FloatArray) -> list[str]:
    scores = np.atleast_2d(coef) @ cell.case.X_test.T
    values = values_of((score[:, None] for score in scores), cell.rows, NOTIONS)
    accuracy = values.aggregate("accuracy")
    right = (scores > 0.0) == (cell.rows.label == 1)
    groups = [right[:, cell.rows.group == r].mean() for r in range(len(cell.rows.groups))]
    signs = np.where(cell.rows.label == 1, 1.0, -1.0)
    losses = np.array([Logistic().value(score, signs).mean() for score in scores])
    asked = [i for i, quantity in enumerate(values.asked) if quantity.notion == "equality of opportunity"]
    return [
        f"{accuracy.mean():.4f}",
        f"{accuracy.min():.4f}",
        f"{min(groups):.4f}",
        f"{losses.mean():.4f}",
        f"{losses.max():.4f}",
        f"{values.aggregate('equality of opportunity').mean():.4f}",
        f"{np.abs(values.values[:, asked]).max():.4f}",
    ]


def settings_of_tables(name: str, rows: int, columns: int, models: int) -> list[Setting]:
    """All that the tables need, with all rows: the solvers of both regimes."""
    regimes = {"thesis": thesis(columns), "weak": weak(columns + 1)}
    return [Setting(name, of, s, rows, EPSILON, models) for of, regime in regimes.items() for s in regime.solvers]


def tables_of(name: str, case: Case, models: int, fits: FitsOf) -> dict[str, str]:
    """The tables of a state by the names of their places on the page."""
    opened = {"thesis": (case, thesis(case.columns)), "weak": (with_ones(case), weak(case.columns + 1))}
    found: dict[str, dict[str, Measured]] = {regime: {} for regime in opened}
    for one in settings_of_tables(name, len(case.y), case.columns, models):
        found[one.regime][one.solver] = Measured(*opened[one.regime], one, fits(one))
    strong, usual = found["thesis"], found["weak"]
    return {
        f"{name} bounds": bounds_table(strong["output-perturbation"]),
        f"{name} code": code_table(strong["output-perturbation"]),
        f"{name} solvers": solver_table(strong),
        f"{name} weak": solver_table(usual),
        f"{name} models": model_table(strong, usual),
    }
