"""How far group fairness and accuracy of a private model can be from those of its noise-free twin.

How to use it: docs/fairness.md; theorems and proofs: docs/guarantees/fairness.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from discreet._common.checks import at_least_zero, number_in, one_of
from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import BoolArray, FloatArray
from discreet.fairness.cells import RowCells, row_cells
from discreet.fairness.certificates.classifier import LinearClassifier, linear_classifier
from discreet.fairness.certificates.margins import gaps_of, margins_of
from discreet.fairness.certificates.record import FairnessCertificate
from discreet.fairness.certificates.statements import AroundReference
from discreet.fairness.evaluation.gradient_laws import is_leaking
from discreet.fairness.quantities import quantities
from discreet.theory.distance import DistanceLaw, KnownDistance


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
    warnings.warn(text, PrivacyLeakWarning, stacklevel=3)
