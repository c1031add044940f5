"""What is compared at one point of the fairness benchmark: the thesis's bounds, ours, and what private models do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet import Problem
from discreet.fairness import FairnessCertificate, certificate, linear_classifier
from discreet.fairness.cells import RowCells, row_cells
from discreet.fairness.certificates.certify import chernoff_bound
from discreet.fairness.certificates.classifier import LinearClassifier
from discreet.fairness.figures import Interval, ModelValues, Point, values_of
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from fairness.cases import ROW_NORM, Case, FloatArray, Regime
from fairness.fits import Fits, Setting, private_model

FAILURE = 0.01
NOTIONS = ("equality of opportunity", "equalised odds", "demographic parity", "accuracy parity", "accuracy")
PRINTED = 2.0  # Lipschitz constant of a margin, over the norm of the row: as printed in the thesis
CODED = 2.0 * math.sqrt(2.0)  # the same in the thesis's code


def printed_distance(columns: int, rows: int, epsilon: float, convexity: float = 1.0) -> float:
    """The distance of output perturbation from its optimum that Lemma 6.5.1 prints, with delta = 1/rows^2."""
    logs = math.log(1.25 * rows**2) * math.log(2.0 / FAILURE)
    return ROW_NORM * math.sqrt(32.0 * columns * logs) / (convexity * rows * epsilon)


def needed_distances(coef: FloatArray, X: FloatArray) -> FloatArray:
    """How far a coefficient vector must move before the prediction of a row can change."""
    lengths = np.maximum(np.linalg.norm(X, axis=1), 1e-300)
    return np.asarray(np.abs(X @ coef) / lengths)


def thesis_bounds(needed: FloatArray, distance: float, rows: RowCells, speed: float, tail: bool) -> dict[str, float]:
    """The bounds of Corollary 6.4.1, as means over groups: E(group) + E(everybody), for each notion.

    Parameters
    ----------
    needed, distance
        Of each row, and between the models.
    rows : RowCells
        Labels and groups.
    speed : float
        The Lipschitz constant that is assumed, over the norm of the row.
    tail : bool
        The share of rows within the distance, which the thesis's code computes; else Chernoff's bound, as printed.
    """

    def share(chosen: FloatArray) -> float:
        reach = needed[chosen] / speed
        return float(np.mean(reach <= distance)) if tail else chernoff_bound(reach, distance)

    everybody = np.ones(needed.size, dtype=bool)
    labels, groups = range(len(rows.labels)), range(len(rows.groups))
    within = {
        y: [share((rows.label == y) & (rows.group == r)) + share(rows.label == y) for r in groups] for y in labels
    }
    parity = float(np.mean([share(rows.group == r) + share(everybody) for r in groups]))
    return {
        "equality of opportunity": float(np.mean(within[len(rows.labels) - 1])),
        "equalised odds": float(np.mean(list(within.values()))),
        "demographic parity": parity,
        "accuracy parity": parity,
        "accuracy": share(everybody),
    }


@dataclass(frozen=True, eq=False)
class Measured:
    """One setting: its private models, their noise-free twin, and every bound between them, on the rows held out."""

    case: Case
    regime: Regime
    setting: Setting
    fits: Fits

    @cached_property
    def rows(self) -> RowCells:
        return row_cells(self.case.y_test, self.case.sensitive, labels=np.array([0, 1]))

    @cached_property
    def first(self) -> LinearClassifier:
        """The columns and the law of the models."""
        return linear_classifier(private_model(self.case, self.regime, self.setting))

    @cached_property
    def twin(self) -> LinearClassifier:
        """The optimum of the same objective: no solver of the benchmark clips anything."""
        X, y = self.case.X[: self.setting.rows], 2.0 * self.case.y[: self.setting.rows] - 1.0
        best = Problem(Logistic(), L2(self.regime.alpha), fit_intercept=False).optimum(X, y)
        return self.first.with_parameters(best.coef[None, :], np.zeros(1))

    @cached_property
    def distances(self) -> FloatArray:
        """Of every private model from the twin."""
        return np.asarray(np.linalg.norm(self.fits.coef - self.twin.coef, axis=1))

    @cached_property
    def gradient_distances(self) -> FloatArray:
        """What the gradient at every private model proves about its distance; read from the training rows."""
        X, y = self.case.X[: self.setting.rows], 2.0 * self.case.y[: self.setting.rows] - 1.0
        slopes = Logistic().slope((X @ self.fits.coef.T).T, y)
        gradients = slopes @ X / self.setting.rows + self.regime.alpha * self.fits.coef
        return np.asarray(np.linalg.norm(gradients, axis=1) / self.regime.alpha)

    @cached_property
    def values(self) -> ModelValues:
        scores = self.fits.scores(self.case.X_test)
        return values_of((score[:, None] for score in scores), self.rows, NOTIONS)

    def certify(self, distance: float | None = None, reference: str = "twin") -> FairnessCertificate:
        """The certificate of the private model that is farthest from its twin; None takes the law of the solver."""
        worst = self.fits.coef[int(self.distances.argmax())]
        private = self.first.with_parameters(worst[None, :], np.zeros(1))
        table, y, groups = self.case.X_test, self.case.y_test, self.case.sensitive
        known = {"distance": distance, "failure": FAILURE, "notions": NOTIONS, "reference": reference}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return certificate(private, table, y, groups, twin=self.twin if reference == "twin" else None, **known)

    @cached_property
    def bounds(self) -> dict[str, dict[str, float]]:
        """For each form of the bound, the bounds of all notions."""
        found: dict[str, dict[str, float]] = {}
        exact = self.setting.solver == "output-perturbation"  # the one whose noise has a law that is attained
        if exact:
            needed = needed_distances(self.twin.coef[0], self.case.X_test)
            distance = printed_distance(self.case.columns, self.setting.rows, self.setting.epsilon, self.regime.alpha)
            found["printed"] = thesis_bounds(needed, distance, self.rows, PRINTED, tail=False)
        if self.first.law is not None:
            proved = self.certify()
            found |= ({"tail": signed_tail(proved)} if exact else {}) | {"best": best_form(proved)}
        if not exact:
            found["gradient"] = aggregate_bounds(self.certify(float(self.gradient_distances.max())))
        known = self.certify(float(self.distances.max()))
        found["distance known"] = aggregate_bounds(known)
        found["both known"] = {name: float(total.refined or 0.0) for name, total in known.aggregate.items()}
        return found

    def points(self, axis: str) -> dict[str, Point]:
        """What is drawn of each notion."""
        reference = values_of([self.twin.scores(self.case.X_test)], self.rows, NOTIONS)
        at = float(self.setting.rows) if axis == "rows" else self.setting.epsilon
        made = {}
        for notion in NOTIONS:
            value = float(reference.aggregate(notion)[0])
            ends = {form: around(value, bounds[notion]) for form, bounds in self.bounds.items()}
            made[notion] = Point(at, value, self.values.band(notion), ends)
        return made


def signed_tail(found: FairnessCertificate) -> dict[str, float]:
    """The bound from the radius alone, with the two signs of each cell's change; holds for all groups together."""
    return {name: float(np.mean([s.bounds["signed"] for s in found.of(name)])) for name in found.aggregate}


def best_form(found: FairnessCertificate) -> dict[str, float]:
    """The least of all forms: around the twin, which has no noise, every form bounds the same fixed quantile."""
    return {name: min(total.bound, signed_tail(found)[name]) for name, total in found.aggregate.items()}


def aggregate_bounds(found: FairnessCertificate) -> dict[str, float]:
    return {name: total.bound for name, total in found.aggregate.items()}


def around(value: float, bound: float) -> Interval:
    """The interval of an aggregate, which lies between 0 and 1."""
    return max(0.0, value - bound), min(1.0, value + bound)


def largest_change(values: ModelValues, reference: Mapping[str, float]) -> dict[str, float]:
    """How far the aggregates of the private models were from the twin's, at most."""
    return {name: float(np.abs(values.aggregate(name) - reference[name]).max()) for name in reference}
