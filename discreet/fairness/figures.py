"""How a certificate would change with the number of rows and with epsilon, beside a band of private models; pictures.

The band is made of private fits, or of models drawn from the law of a distance. The laws of the distances come from
plans, which read no rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet._common.checks import whole
from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.plotting import picture
from discreet._common.types import FloatArray, Progress
from discreet.data.validation import Table
from discreet.estimators.fitting import plan_fit
from discreet.estimators.stored_plan import plan_of
from discreet.fairness.cells import Quantity, RowCells, quantities, row_cells
from discreet.fairness.certificates.certify import certificate
from discreet.fairness.certificates.classifier import LinearClassifier, gaps_of, linear_classifier, unknown_distance
from discreet.fairness.certificates.record import FairnessCertificate
from discreet.fairness.evaluation.gradient_distance import gradient_distance
from discreet.theory.distance import DistanceLaw

Interval = tuple[float, float]

# Line style and colour of each bound, by its name; solid lines need neither of the two models to be compared.
STYLES = {
    "printed": ("-", "#7f7f7f", "bound as printed in the thesis"),
    "tail": ("-", "#1f77b4", "our bound, distance alone"),
    "best": ("-", "#d62728", "our bound, best form"),
    "gradient": ("-", "#9467bd", "bound from the gradients (owner only)"),
    "distance known": ("--", "#1f77b4", "distance known"),
    "both known": (":", "#1f77b4", "both models known"),
}
BAND, REFERENCE = "#2ca02c", "black"
COLUMNS = 3  # panels beside each other


@dataclass(frozen=True)
class Point:
    """What is drawn at one number of rows, or at one epsilon.

    Attributes
    ----------
    at : float
        The number of rows, or epsilon.
    value : float
        The value of the reference model.
    band : tuple of two floats, or None
        Smallest and largest value among private models.
    bounds : mapping of str to tuple of two floats
        For each form of the bound, the interval that it certifies.
    """

    at: float
    value: float
    band: Interval | None = None
    bounds: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """One panel: a quantity (a notion of fairness, or accuracy) along an axis."""

    title: str
    axis: str  # what `Point.at` is: "rows" or "epsilon"
    points: Sequence[Point]
    reference: str = "without noise"  # what the black line is


def plot_curves(
    curves: Sequence[Curve], path: str | Path, heading: str | None = None, band: str = "", across: int = COLUMNS
) -> None:
    """Draw the panels and write them to one picture.

    Parameters
    ----------
    curves : sequence of Curve
        The panels, in reading order.
    path : str or Path
        Where to write the picture.
    heading : str, optional
        Above all panels.
    band : str
        What the band is made of, for the legend.
    across : int, default=3
        Number of panels beside each other.
    """
    across = min(across, len(curves))
    down = -(-len(curves) // across)
    size = (4.1 * across, 3.0 * down + 1.1)
    with picture(path, down, across, figsize=size, squeeze=False, layout="constrained") as (figure, grid):
        for axes, curve in zip(grid.flat, curves, strict=False):
            _draw(axes, curve, band)
        for axes in grid.flat[len(curves) :]:
            axes.set_axis_off()
        legends = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in grid.flat)
        entries = {label: line for legend in legends for line, label in legend}
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, fontsize=9)
        if heading is not None:
            figure.suptitle(heading)


def _draw(panel: Any, curve: Curve, band: str) -> None:
    at = [point.at for point in curve.points]
    panel.plot(at, [point.value for point in curve.points], color=REFERENCE, linewidth=1.2, label=curve.reference)
    if all(point.band is not None for point in curve.points):
        low, high = zip(*(point.band for point in curve.points if point.band is not None), strict=True)
        panel.fill_between(at, low, high, color=BAND, alpha=0.35, linewidth=0, label=band or "private models")
    for name, (line, colour, label) in STYLES.items():
        known = [point for point in curve.points if name in point.bounds]
        if known:
            ends = zip(*(point.bounds[name] for point in known), strict=True)
            for end, text in zip(ends, (label, None), strict=True):
                panel.plot([point.at for point in known], end, line, color=colour, linewidth=1.2, label=text)
    panel.set(xscale="log", title=curve.title, ylim=_limits(curve))
    panel.set_xlabel("rows" if curve.axis == "rows" else "epsilon")
    panel.grid(alpha=0.25)


def _limits(curve: Curve) -> Interval:
    """From 0 to 1 for values that fill it; else the widest interval drawn, with room around it."""
    ends = [end for point in curve.points for pair in point.bounds.values() for end in pair]
    ends += [end for point in curve.points if point.band is not None for end in point.band]
    ends += [point.value for point in curve.points]
    low, high = min(ends), max(ends)
    room = 0.04 * max(high - low, 1e-6)
    return max(low - room, -1.02), min(high + room, 1.02)


@dataclass(frozen=True, eq=False)
class ModelValues:
    """What several models are worth on the same rows.

    Attributes
    ----------
    asked : list of Quantity
        The quantities of all notions, in the order of a certificate's statements.
    values : array of shape (models, quantities)
        NaN for a group without rows.
    """

    asked: list[Quantity]
    values: FloatArray

    @property
    def models(self) -> int:
        return self.values.shape[0]

    @property
    def notions(self) -> list[str]:
        return list(dict.fromkeys(quantity.notion for quantity in self.asked))

    def aggregate(self, notion: str) -> FloatArray:
        """The mean over groups of the absolute values, for each model; groups without rows are left out."""
        chosen = [place for place, quantity in enumerate(self.asked) if quantity.notion == notion and quantity.defined]
        if not chosen:
            return np.full(self.models, np.nan)
        return np.asarray(np.abs(self.values[:, chosen]).mean(axis=1))

    def band(self, notion: str) -> tuple[float, float]:
        """The smallest and the largest of the aggregates."""
        found = self.aggregate(notion)
        return float(found.min()), float(found.max())


def values_of(
    scores: Iterable[FloatArray], rows: RowCells, notions: Iterable[str] | str | None = None, favourable: Any = None
) -> ModelValues:
    """Return the values of all notions for models given by their scores.

    Parameters
    ----------
    scores : iterable of arrays of shape (rows, outputs)
        One array for each model.
    rows : RowCells
        The label and the group of each row.
    notions, favourable
        As in `certificate`.
    """
    counts = rows.counts
    right = [rows.sums(gaps_of(score, rows.label)[1]) for score in scores]
    if not right:
        raise ValueError("there are no models.")
    asked = quantities(rows.table(np.zeros(rows.label.size)), notions, favourable)
    rates = np.divide(np.array(right), counts, out=np.zeros((len(right), *rows.shape)), where=counts > 0.0)
    weights = np.array([quantity.weights for quantity in asked])
    constants = np.array([quantity.constant for quantity in asked])
    return ModelValues(asked, constants + np.tensordot(rates, weights, axes=([1, 2], [1, 2])))


def drawn_scores(
    classifier: LinearClassifier, law: DistanceLaw, table: Any, count: int, seed: int | None = None
) -> Iterator[FloatArray]:
    """Yield the scores of models drawn around a classifier, in a uniformly random direction of the law's norm.

    The distance has the survival function that the law proves. For Gaussian and for spherical Laplace noise this is
    how private models lie around their noise-free twin; for other laws, which only bound the distance, the drawn
    models lie further out than private models do.

    Parameters
    ----------
    classifier : LinearClassifier
        The centre.
    law : DistanceLaw
        In the columns of the classifier.
    table : array
        What `LinearClassifier.features` returned.
    count : int
        Number of models.
    seed : int, optional
        Nothing is released here, so that ordinary random numbers are enough.
    """
    rng = np.random.default_rng(seed)
    rows, centre = classifier.rows(table), classifier.weights
    for _ in range(whole("count", count, least=1)):
        direction = rng.standard_normal(centre.shape)
        distance = law.radius(float(rng.uniform(1e-9, 1.0)))
        step = direction * (distance / np.linalg.norm(direction)) / np.sqrt(law.weights)
        yield rows @ (centre + step).T


def refitted(model: Any, X: Any, y: Any, count: int) -> list[Any]:
    """Return private models that are fitted like a given one, each with fresh noise.

    Guarantee: none for all of them together: every fit is one more release of the rows, so that only the owner of the
    rows may see the result. No ledger is charged.

    Parameters
    ----------
    model : estimator
        A classifier of discreet; its parameters are used, without its ledger and seed.
    X, y
        The training rows.
    count : int
        Number of fits.
    """
    own = {"ledger": None, "dataset": None, "random_state": None, "verbose": 0}
    return [clone(model).set_params(**own).fit(X, y) for _ in range(whole("count", count, least=1))]


def scores_of(models: Iterable[Any], table: Any) -> Iterator[FloatArray]:
    """Yield the scores of fitted models for the same rows."""
    for model in models:
        classifier = linear_classifier(model)
        yield classifier.scores(classifier.features(table))


POINTS = 8  # of a curve
FEWEST_ROWS, MOST_POINTS_APART = 50, 100.0  # curves begin at the rows of the fit over 100, but at 50 rows
EPSILONS = (1.0 / 30.0, 10.0)  # times the epsilon of the model


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The rows on which models are judged, and how.

    Attributes
    ----------
    X, y, sensitive
        The rows, their labels and their groups.
    failure : float
        Of the certificates.
    models : int
        Number of models of a band.
    train : tuple of X and y, or None
        The training rows, for an owner who may refit models; None draws models from the law instead.
    """

    X: Any
    y: Any
    sensitive: Any
    failure: float = 0.01
    models: int = 100
    train: tuple[Any, Any] | None = None

    def band(self, model: Any, law: DistanceLaw | None, train: tuple[Any, Any] | None = None) -> ModelValues | None:
        """The values of private models like a given one: refitted if there are training rows, else drawn from a law.

        None if there is neither.
        """
        classifier = linear_classifier(model)
        rows = row_cells(self.y, self.sensitive, labels=classifier.classes)
        if train is not None:
            with said_before():
                return values_of(scores_of(refitted(model, *train, self.models), self.X), rows)
        if law is None:
            return None
        return values_of(drawn_scores(classifier, law, classifier.features(self.X), self.models), rows)

    def certify(self, model: Any, law: DistanceLaw | None) -> FairnessCertificate:
        """The certificate around a private model."""
        with said_before():
            return certificate(model, self.X, self.y, self.sensitive, distance=law, failure=self.failure)


def law_at(model: Any, rows: int, epsilon: float) -> DistanceLaw:
    """Return the law that a fit like a given one would have with other rows and another epsilon, in the same columns.

    A ValueError where no theorem covers the fit.
    """
    again = clone(model).set_params(epsilon=epsilon, ledger=None, dataset=None)
    public = replace(plan_of(model).public, rows=rows)  # with the names and types of the columns, which a clone forgets
    plan = plan_fit(again, public, len(model.classes_))
    return plan.distance_law(model.scaling_)


def curves_of(model: Any, evaluation: Evaluation, axis: str, progress: Progress | None = None) -> list[Curve]:
    """Return one panel for each notion: bound and band along an axis.

    Parameters
    ----------
    model : estimator
        A private classifier of discreet, with a numeric epsilon.
    evaluation : Evaluation
        With training rows, models are fitted again at every point, and the bound is around the first of them; without,
        the bound and the band are around `model`, whatever the number of rows and epsilon.
    axis : {"rows", "epsilon"}
        What changes.
    progress : callable, optional
        Called as progress(done, points).
    """
    if isinstance(model.epsilon, bool) or not isinstance(model.epsilon, (int, float)):
        raise ValueError("the figures vary epsilon, and the budget of this model is not stated as an epsilon.")
    points: dict[str, list[Point]] = {}
    places = _places(model, evaluation, axis)
    for done, (rows, epsilon) in enumerate(places):
        for notion, point in _points(model, evaluation, axis, rows, epsilon):
            points.setdefault(notion, []).append(point)
        if progress is not None:
            progress(done + 1, len(places))
    what = "the private model" if evaluation.train is None else "one private model"
    return [Curve(notion, axis, found, what) for notion, found in points.items()]


def _places(model: Any, evaluation: Evaluation, axis: str) -> Sequence[tuple[int, float]]:
    rows = plan_of(model).public.rows if evaluation.train is None else len(evaluation.train[1])
    if axis == "rows":
        least = min(rows, max(FEWEST_ROWS, round(rows / MOST_POINTS_APART)))
        return [(round(n), float(model.epsilon)) for n in np.geomspace(least, rows, POINTS)]
    return [(rows, float(model.epsilon * factor)) for factor in np.geomspace(*EPSILONS, POINTS)]


def _points(model: Any, evaluation: Evaluation, axis: str, rows: int, epsilon: float) -> Iterator[tuple[str, Point]]:
    train = None if evaluation.train is None else _subset(evaluation.train, rows)
    form: str | None = "best"
    if train is None:
        centre, law = model, law_at(model, rows, epsilon)
    else:
        centre, form, law = _fitted_again(model, epsilon, train)
    found = evaluation.certify(centre, law)
    band = evaluation.band(centre, law, train)
    at = float(rows) if axis == "rows" else epsilon
    for notion, total in found.aggregate.items():
        bounds = {form: total.bound} if form is not None else {}
        bounds |= {} if total.printed is None else {"printed": total.printed}
        ends = {name: (max(0.0, total.value - most), min(1.0, total.value + most)) for name, most in bounds.items()}
        yield notion, Point(at, total.value, None if band is None else band.band(notion), ends)


def _fitted_again(model: Any, epsilon: float, train: tuple[Any, Any]) -> tuple[Any, str | None, DistanceLaw]:
    """One private model, which form its bounds have (None: none), and the law of its distance."""
    with said_before():
        fitted = refitted(clone(model).set_params(epsilon=epsilon), *train, 1)[0]
        made = linear_classifier(fitted)
        if made.law is not None:
            return fitted, "best", made.law
        try:
            return fitted, "gradient", gradient_distance(fitted, *train)
        except ValueError:  # the gradient proves no distance either: the band alone is drawn
            return fitted, None, unknown_distance(made)


def _subset(train: tuple[Any, Any], rows: int) -> tuple[Any, Any]:
    """The first rows of a random order that is always the same."""
    X, y = train
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    part = replace(X, X=X.X[chosen], y=None) if isinstance(X, Table) else np.asarray(X)[chosen]
    return part, np.asarray(y)[chosen]


@contextmanager
def said_before() -> Iterator[None]:
    """Silence warnings about leaks, for a caller who has given one about everything that is computed inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        yield
