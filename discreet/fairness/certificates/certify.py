"""How far group fairness and accuracy of a private model can be from those of its noise-free twin.

How many predictions can change, in several forms (theorems 1 to 3 and 6); the statements around one reference model
that follow; and the certificate. How to use it: docs/fairness.md; theorems and proofs: docs/guarantees/fairness.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from discreet._common.callers import warn
from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import BoolArray, FloatArray
from discreet.fairness.cells import Quantity, RowCells, quantities, row_cells
from discreet.fairness.certificates.classifier import LinearClassifier, Margins, gaps_of, linear_classifier, margins_of
from discreet.fairness.certificates.record import AggregateStatement, FairnessCertificate, FairnessStatement
from discreet.fairness.evaluation.gradient_distance import is_leaking
from discreet.theory.distance import DistanceLaw, GaussianDistance, KnownDistance

SHARE = 0.001  # of the rows that may move further than the others, in the form for private margins
CHERNOFF_STEPS = 25  # halvings of the interval of the exponent


@dataclass(frozen=True)
class Reach:
    """How far rows can move: rows that need a larger distance keep their prediction, but for a share of the weight.

    Attributes
    ----------
    radius : float
        A distance between parameters.
    share : float
        At most this share of the rows, weighted as a statement weighs them, moves further.
    """

    radius: float
    share: float = 0.0


def all_rows_reach(law: DistanceLaw, failure: float, rows: int, rivals: int = 1) -> float:
    """The distance that, with probability 1 - failure, covers how all rows' margins move at once.

    It is the radius of the law or, for Gaussian noise, what `rows` given rows all stay below by a union bound, if that
    is less; both are known before any margin is.
    """
    radius = law.radius(failure)
    if not isinstance(law, GaussianDistance):
        return radius
    return min(radius, law.error + law.deviation * _normal_quantile(failure / (2.0 * rows * rivals)))


def reaches(law: DistanceLaw, failure: float, rows: int, rivals: int = 1, simultaneous: bool = False) -> list[Reach]:
    """Reaches that hold together with probability 1 - failure, for one statement; for all of them if `simultaneous`."""
    everything = all_rows_reach(law, failure, rows, rivals)
    if simultaneous or not isinstance(law, GaussianDistance):
        return [Reach(everything)]
    half = 0.5 * failure
    most = law.error + law.deviation * _normal_quantile(SHARE * half / (2.0 * rivals))
    if most >= everything:
        return [Reach(everything)]
    return [Reach(all_rows_reach(law, half, rows, rivals)), Reach(most, SHARE)]


def sides(rows: RowCells, margins: Margins, radius: float) -> tuple[FloatArray, FloatArray]:
    """Shares of each cell that can turn wrong (loss) and correct (gain) within a distance."""
    near = margins.needed <= radius
    return rows.means(near & margins.correct), rows.means(near & ~margins.correct)


def interval(quantity: Quantity, rows: RowCells, margins: Margins, reach: Reach) -> tuple[float, float]:
    """The least and the largest change of a quantity within a reach."""
    low, high = quantity.change_within(*sides(rows, margins, reach.radius))
    more = reach.share * float(np.abs(quantity.weights).sum())
    return low - more, high + more


def tail(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Share of each cell that can change within a distance: no other form is smaller."""
    return rows.means(margins.needed <= radius)


def markov(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Markov's inequality: radius times the mean inverse distance, at most 1."""
    return np.minimum(rows.means(_ratios(margins.needed, radius)), 1.0)


def truncated_markov(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Markov's inequality for the rows within the distance alone, at most 1."""
    near = margins.needed <= radius
    return np.minimum(rows.means(np.where(near, _ratios(margins.needed, radius), 0.0)), 1.0)


def chernoff(rows: RowCells, margins: Margins, radius: float) -> FloatArray:
    """Chernoff's bound: the least over t >= 0 of exp(t radius) times the mean of exp(-t distance)."""
    cells = [margins.needed[rows.cell == place] for place in range(rows.counts.size)]
    return np.array([chernoff_bound(part, radius) if part.size else 0.0 for part in cells]).reshape(rows.shape)


def chernoff_bound(needed: FloatArray, radius: float) -> float:
    """Chernoff's bound on the share of values that are at most the radius."""
    if not math.isfinite(radius):
        return 1.0
    finite = needed[np.isfinite(needed)]
    if finite.size == 0 or float(finite.min()) > radius:
        return 0.0  # the limit of large t
    if float(finite.mean()) <= radius and finite.size == needed.size:
        return 1.0  # the bound rises with t from its value 1 at t = 0
    away = finite - radius

    def logarithm_and_slope(t: float) -> tuple[float, float]:
        largest = float((-t * away).max())
        terms = np.exp(-t * away - largest)
        return largest + math.log(float(terms.sum()) / needed.size), -float((away * terms).sum())

    low, high = 0.0, 1.0 / max(float(np.abs(away).max()), np.finfo(float).tiny)
    doublings = 0
    while logarithm_and_slope(high)[1] < 0.0 and doublings < 4 * CHERNOFF_STEPS:
        low, high, doublings = high, 2.0 * high, doublings + 1
    for _ in range(CHERNOFF_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if logarithm_and_slope(middle)[1] < 0.0 else (low, middle)
    return min(1.0, math.exp(min(0.0, logarithm_and_slope(high)[0])))


FORMS = {"markov": markov, "truncated": truncated_markov, "chernoff": chernoff, "tail": tail}


def noise_side(weights: FloatArray, probabilities: FloatArray, failure: float) -> float:
    """What a weighted sum of changed rows exceeds with probability at most `failure`, given each row's probability."""
    return float((weights * np.minimum(probabilities / failure, 1.0)).sum())


def noise_interval(
    quantity: Quantity, rows: RowCells, correct: BoolArray, probabilities: FloatArray, failure: float
) -> tuple[float, float]:
    """The least and the largest change of a quantity, of which each end fails with half of the probability."""
    weight = row_weights(quantity, rows)
    rises = np.where(correct, weight < 0.0, weight > 0.0)
    size, half = np.abs(weight), 0.5 * failure
    fall = noise_side(np.where(rises, 0.0, size), probabilities, half)
    return 0.0 - fall, noise_side(np.where(rises, size, 0.0), probabilities, half)


def row_weights(quantity: Quantity, rows: RowCells) -> FloatArray:
    """How much the correctness of each row adds: the weight of its cell over the number of rows there."""
    shares = np.divide(quantity.weights, rows.counts, out=np.zeros(rows.shape), where=rows.counts > 0.0)
    return shares.ravel()[rows.cell]


def printed_radius(deviation: float, size: int, failure: float) -> float:
    """The distance printed in the literature for Gaussian noise of a deviation on each of `size` parameters."""
    failure = number_in("failure", failure, 0.0, 1.0, above=True)
    return deviation * math.sqrt(4.0 * whole("size", size, least=1) * math.log(2.0 / failure))


def _ratios(needed: FloatArray, radius: float) -> FloatArray:
    if not math.isfinite(radius):
        return np.full(needed.shape, math.inf)
    return np.divide(radius, needed, out=np.full(needed.shape, math.inf), where=needed > 0.0)


def _normal_quantile(above: float) -> float:
    """What a standard normal variable exceeds with this probability, at least 0."""
    from scipy.special import ndtri

    return max(0.0, -float(ndtri(min(above, 0.5))))


@dataclass(frozen=True, eq=False)
class AroundReference:
    """One reference model on one set of rows, with what is known of the distance to the other model.

    Attributes
    ----------
    law, failure, reference, simultaneous
        As in `certificate`.
    rows, margins : RowCells, Margins
        The cells of the rows, and their margins for the reference model.
    other : tuple of two arrays, or None
        Gaps of the other model's scores and which of its predictions are correct, where it is known.
    """

    law: DistanceLaw
    failure: float
    reference: str
    simultaneous: bool
    rows: RowCells
    margins: Margins
    other: tuple[FloatArray, BoolArray] | None

    def certificate(self, asked: list[Quantity], clean: bool) -> FairnessCertificate:
        made = [self.statement(quantity) for quantity in asked]
        aggregate = {
            notion: self.aggregate([q for q in asked if q.notion == notion], [s for s in made if s.notion == notion])
            for notion in dict.fromkeys(quantity.notion for quantity in asked)
        }
        plain = bool((self.law.weights == self.law.weights[0]).all())
        scale = f" times {math.sqrt(self.law.weights[0]):.4g}" if plain and self.law.weights[0] != 1.0 else ""
        norm = f"Euclidean norm{scale}" if plain else "Euclidean norm with a weight for each column"
        messages = tuple(f"No rows: {s.notion}, {s.who}; left out of the mean." for s in made if math.isnan(s.value))
        about = (self.failure, self.simultaneous, self.reference, self.law.reference, self.law.radius(self.failure))
        return FairnessCertificate(tuple(made), aggregate, *about, norm, self.rows.label.size, clean, messages)

    def statement(self, quantity: Quantity) -> FairnessStatement:
        value = quantity.value(self.rows.table(self.margins.correct))
        about = (quantity.notion, quantity.label, quantity.group, quantity.rows)
        if not quantity.defined:
            return FairnessStatement(*about, math.nan, math.nan, math.nan)
        low, high = self._change(quantity)
        bounds = {form: quantity.absolute_change(cells) for form, cells in self._forms.items()}
        ball = Reach(self.law.radius(self.failure))
        bounds["signed"] = _largest(interval(quantity, self.rows, self.margins, ball))
        if self._noise is not None:
            bounds["noise"] = _largest(self._noise_change(quantity))
        printed = None if self._printed is None else quantity.absolute_change(self._printed)
        return FairnessStatement(*about, value, low, high, bounds, printed, *self._known(quantity, value))

    def _change(self, quantity: Quantity) -> tuple[float, float]:
        """The tightest interval that holds for this quantity with probability 1 - failure."""
        found = [interval(quantity, self.rows, self.margins, reach) for reach in self._reaches]
        best = max(low for low, _ in found), min(high for _, high in found)
        if self._noise is None:
            return best
        # Each end is a quantile of a change around a fixed model: the choice between the two intervals reads no noise.
        return min(best, self._noise_change(quantity), key=lambda ends: ends[1] - ends[0])

    def _noise_change(self, quantity: Quantity) -> tuple[float, float]:
        assert self._noise is not None
        noise = noise_interval(quantity, self.rows, self.margins.correct, self._noise, self.failure)
        half = Reach(all_rows_reach(self.law, 0.5 * self.failure, self.rows.label.size, self.margins.rivals))
        ball = interval(quantity, self.rows, self.margins, half)
        return max(noise[0], ball[0]), min(noise[1], ball[1])

    def aggregate(self, asked: list[Quantity], made: list[FairnessStatement]) -> AggregateStatement:
        kept = [(quantity, found) for quantity, found in zip(asked, made, strict=True) if quantity.defined]
        if not kept:
            return AggregateStatement(made[0].notion, 0, math.nan, math.nan)
        value = float(np.mean([abs(found.value) for _, found in kept]))
        candidates = [
            float(np.mean([_largest(interval(q, self.rows, self.margins, reach)) for q, _ in kept]))
            for reach in self._reaches
        ]
        if self._noise is not None:
            weights = np.mean([np.abs(row_weights(quantity, self.rows)) for quantity, _ in kept], axis=0)
            candidates.append(noise_side(weights, self._noise, self.failure))
        refined = exact = None
        if self.other is not None:
            refined = float(np.mean([found.refined for _, found in kept]))
            exact = float(np.mean([abs(found.value + found.exact) for _, found in kept])) - value  # type: ignore[operator]
        bound = kept[0][1].bound if len(kept) == 1 else min(candidates)
        printed = None if self._printed is None else float(np.mean([found.printed for _, found in kept]))
        return AggregateStatement(made[0].notion, len(kept), value, bound, printed, refined, exact)

    def _known(self, quantity: Quantity, value: float) -> tuple[float | None, float | None]:
        """The refined bound and the exact change, if both models are known."""
        if self.other is None:
            return None, None
        gaps, correct = self.other
        moved = np.abs(gaps - self.margins.gaps).max(axis=1)
        near = np.abs(self.margins.margin) <= moved * (1.0 + 1e-9)
        right = self.margins.correct
        loss, gain = self.rows.means(near & right), self.rows.means(near & ~right)
        return _largest(quantity.change_within(loss, gain)), quantity.value(self.rows.table(correct)) - value

    @cached_property
    def _reaches(self) -> list[Reach]:
        return reaches(self.law, self.failure, self.rows.label.size, self.margins.rivals, self.simultaneous)

    @cached_property
    def _noise(self) -> FloatArray | None:
        """The probability of each row's change, for a reference that does not depend on the noise."""
        if self.reference != "twin" or self.simultaneous or not isinstance(self.law, GaussianDistance):
            return None
        return self.margins.flip_probabilities(self.law.deviation, self.law.error)

    @cached_property
    def _forms(self) -> dict[str, FloatArray]:
        radius = self.law.radius(self.failure)
        return {name: form(self.rows, self.margins, radius) for name, form in FORMS.items()}

    @cached_property
    def _printed(self) -> FloatArray | None:
        """Chernoff's form with the printed distance and twice the norm of each row as Lipschitz constant."""
        if not isinstance(self.law, GaussianDistance):
            return None
        speed = 2.0 if self.margins.rivals == 1 else math.sqrt(2.0)
        slower = Margins(self.margins.gaps, self.margins.correct, speed * self.margins.lipschitz)
        return chernoff(self.rows, slower, printed_radius(self.law.deviation, self.law.size, self.failure))


def _largest(ends: tuple[float, float]) -> float:
    return max(abs(ends[0]), abs(ends[1]))


def certificate(
    model: Any,
    X: Any,
    y: Any,
    sensitive: Any,
    *,
    distance: DistanceLaw | float | None = None,
    twin: Any = None,
    failure: float = 0.01,
    reference: str = "private",
    notions: Iterable[str] | str | None = None,
    favourable: Any = None,
    simultaneous: bool = False,
    public_rows: bool = False,
) -> FairnessCertificate:
    """Bound how far the noise of a private fit can have moved group fairness and accuracy, on the rows given.

    Parameters
    ----------
    model : fitted linear classifier or LinearClassifier
        The private model.
    X, y : array-like
        Rows and labels for which the quantities are computed.
    sensitive : array-like of shape (rows,)
        The group of each row.
    distance : DistanceLaw or float, optional
        How far the parameters of the two models can be apart. None asks the plan of the fit. A number is a Euclidean
        distance between the coefficients and intercepts of the user's columns.
    twin : fitted linear classifier, optional
        The noise-free model, where it is known: adds the exact change and the bound that uses each row's own change of
        score. Without `distance` and without a law of the fit, the distance between the two is used; both must then
        clip the rows alike.
    failure : float, default=0.01
        Probability over the noise of the fit with which a statement may be wrong.
    reference : {"private", "twin"}, default="private"
        Around which model the bounds are computed. "twin" takes the margins of `twin` or, without one, of `model`,
        which is then not the private model.
    notions : list of str, optional
        Names from `discreet.fairness.NOTIONS`; None takes all that apply.
    favourable : label or list of labels, optional
        The favourable outcome; None is the larger one of two labels.
    simultaneous : bool, default=False
        Whether all statements must hold together with probability 1 - failure, instead of each.
    public_rows : bool, default=False
        Say True if the rows are public. Otherwise a PrivacyLeakWarning says that the result must not be shown.

    Returns
    -------
    FairnessCertificate
        Printable; `statements` and `aggregate` hold the numbers.

    Guarantee: none for the rows given, which are read without noise; `private_certificate` pays for them. The distance
    law of a fit is computed from its plan and its released scales alone.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.fairness import certificate
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.uniform(-1.0, 1.0, (5000, 2)), rng.choice(["a", "b"], 5000)
    >>> y = (X[:, 0] + 0.2 * rng.normal(size=5000) > 0.0).astype(int)
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=0).fit(X[:4000], y[:4000])
    >>> found = certificate(model, X[4000:], y[4000:], group[4000:], distance=0.1, public_rows=True)
    >>> accuracy = found.of("accuracy")[0]
    >>> bool(accuracy.low <= 0.0 <= accuracy.high)
    True
    """
    one_of("reference", reference, ("private", "twin"))
    failure = number_in("failure", failure, 0.0, 1.0, above=True)
    private = linear_classifier(model)
    other = None if twin is None else linear_classifier(twin)
    measured = distance is None and private.law is None  # the distance is that of the twin given
    private, law = _columns_and_law(private, other, distance)
    table, first = private.features(X), private
    if other is not None and (measured or reference == "twin"):
        moved = _in_columns_of(private, other, table)
        first, other = (moved, private) if reference == "twin" else (private, other)
    rows = row_cells(y, sensitive, labels=private.classes)
    margins = margins_of(first, law, table, rows.label)
    leaking = is_leaking(law)
    clean = public_rows and twin is None and reference == "private" and not leaking
    if not clean:
        _warn(public_rows, leaking)
    around = AroundReference(law, failure, reference, simultaneous, rows, margins, _gaps_of_other(other, X, rows))
    return around.certificate(quantities(rows.table(margins.correct), notions, favourable), clean)


def _columns_and_law(
    private: LinearClassifier, other: LinearClassifier | None, distance: DistanceLaw | float | None
) -> tuple[LinearClassifier, DistanceLaw]:
    """The columns in which distances are measured, and the law of the distance there."""
    if isinstance(distance, DistanceLaw):
        return private, distance
    if distance is None and private.law is not None:
        return private, private.law
    if distance is None and other is None:
        raise ValueError(
            f"the distance of this model from its noise-free twin is unknown: {private.why_no_law.rstrip('.')}. Pass "
            "distance=, a law or a number; or twin=, the noise-free model; or the law that gradient_distance computes."
        )
    plain = private.in_user_columns()
    if other is not None and other.intercept.any():
        plain = replace(plain, has_intercept=True)
    shape = (np.ones(plain.size), plain.weights.shape[0])
    if distance is None:
        assert other is not None
        known = float(np.linalg.norm(plain.with_parameters(other.coef, other.intercept).weights - plain.weights))
        return plain, KnownDistance(*shape, "the twin given", known)
    if isinstance(distance, bool) or not isinstance(distance, Real):
        raise ValueError(f"distance must be a DistanceLaw or a number; got {distance!r}.")
    return plain, KnownDistance(*shape, "the model of the distance given", at_least_zero("distance", distance))


def _in_columns_of(private: LinearClassifier, other: LinearClassifier, table: Any) -> LinearClassifier:
    """The other model's parameters in the columns of the private one, whose rows must be clipped alike."""
    moved = private.with_parameters(other.coef, other.intercept)
    scores = other.scores(table)
    if not np.allclose(moved.scores(table), scores, rtol=1e-6, atol=1e-9 * (1.0 + np.abs(scores).max())):
        raise ValueError(
            "the twin clips the rows in another way than the private model, or only one of them has an intercept; fit "
            "it with the same settings, and pass rows that are within the bounds."
        )
    return moved


def _gaps_of_other(other: LinearClassifier | None, X: Any, rows: RowCells) -> tuple[FloatArray, BoolArray] | None:
    if other is None:
        return None
    if other.classes.tolist() != rows.labels.tolist():
        raise ValueError(f"the twin has the classes {other.classes.tolist()}, the model {rows.labels.tolist()}.")
    return gaps_of(other.scores(other.features(X)), rows.label)


def _warn(public_rows: bool, leaking: bool) -> None:
    if public_rows and leaking:
        why = "its distance was read from the training rows without noise; pass epsilon= to gradient_distance"
    elif public_rows:
        why = "the twin is not private, and neither is what is computed from it"
    else:
        why = "it reads these rows without noise; use private_certificate, or say public_rows=True if they are public"
    text = f"the fairness certificate is not private and must not be shown: {why}."
    warn(text, PrivacyLeakWarning)
