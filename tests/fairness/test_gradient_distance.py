"""The distance that a gradient proves: for every solver, never below the truth, plain with a warning or paid for.

Statistical tests have fixed seeds and level 1e-4 for each of two tests: were the seeds redrawn, one run of this file in
5,000 would raise a false alarm.
"""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.linear_model import LogisticRegression as SkLogisticRegression

from discreet import Ledger, LinearSVC, LogisticRegression, Ridge, load_model, save_model
from discreet._common.exceptions import (
    BudgetExceededError,
    InsecureRandomnessWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
)
from discreet.fairness import certificate, gradient_distance, private_certificate
from discreet.fairness.evaluation.gradient_distance import GradientDistance, Objective, objective_of
from discreet.problem.constraints import Box, L2Ball

LEVEL = 1e-4
rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(-1.0, 1.0, (2000, 2)) * [1.0, 4.0], np.ones(2000)])  # a penalised intercept
Y = (X[:, 0] + 0.1 * X[:, 1] + 0.3 + 0.4 * rng.normal(size=2000) > 0.0).astype(int)
THREE = Y + (X[:, 1] > 1.0)
KNOWN = {"bounds": ([-1.0, -4.0, 0.0], [1.0, 4.0, 1.0]), "fit_intercept": False, "alpha": 0.1, "epsilon": 2.0}


def fitted(kind=LogisticRegression, y=Y, **settings):
    """A model with a seed, so that every run of these tests sees the same one."""
    model = kind(**(KNOWN | {"classes": np.unique(y).tolist(), "random_state": 0} | settings))
    with pytest.warns(InsecureRandomnessWarning):
        return model.fit(X, y)


def plain(model, y=Y, **settings):
    with pytest.warns(PrivacyLeakWarning, match="without noise"):
        return gradient_distance(model, X, y, **settings)


def distance_to_optimum(model, y=Y, law=None):
    """The true distance in the norm of the law, to the optimum of the model's own objective."""
    codes = np.searchsorted(model.classes_, y).astype(float)
    codes = 2.0 * codes - 1.0 if model.classes_.size == 2 else codes
    clipped = np.clip(X, *model.ranges_)
    best = model._problem(model.classes_.size).optimum(clipped, codes, tolerance=1e-13)
    move = (model.coef_ - np.atleast_2d(best.coef)) * model.scaling_.scale
    return math.sqrt((law.weights * move**2).sum())


MODELS = {
    "newton": {},
    "cd": {"solver": "cd"},
    "gd": {"solver": "gd"},
    "sgd": {"solver": "sgd"},
    "output-perturbation": {"solver": "output-perturbation"},
    "svc": {"kind": LinearSVC, "solver": "cd"},
    "elastic net": {"penalty": "elasticnet", "l1_ratio": 0.3, "solver": "cd"},
    "box": {"constraint": Box(-0.2, 0.2), "solver": "cd"},
    "three classes": {"y": THREE},
    "one against the rest": {"y": THREE, "multi_class": "ovr", "solver": "gd"},
    "learned ranges": {"bounds": None},
    "zero_out": {"relation": "zero_out"},
    "add_remove": {"relation": "add_remove", "public_n": 2000},
}


@pytest.mark.parametrize("name", MODELS)
def test_the_truth_is_below_the_bound_for_every_solver(name):
    settings = dict(MODELS[name])
    y = settings.get("y", Y)
    model = fitted(**settings)
    law = plain(model, y)
    true = distance_to_optimum(model, y, law)
    assert true <= law.radius(0.5) + 1e-6
    if name != "box":  # where both may lie at the same corner
        assert law.radius(0.5) <= 12.0 * true + 1e-3  # the bound is worth something
    paid = gradient_distance(model, X, y, epsilon=5.0, delta=1e-4)
    assert paid.radius(1e-6) >= true
    assert paid.guarantee.epsilon == 5.0
    assert paid.guarantee.relation == model.relation
    assert paid.radius(1e-6) >= paid.radius(0.1)


def test_the_bound_is_zero_at_the_optimum_and_exact_for_a_quadratic_direction():
    model = fitted()
    best = model._problem(2).optimum(np.clip(X, *model.ranges_), 2.0 * Y - 1.0, tolerance=1e-13)
    model.coef_ = np.atleast_2d(best.coef)
    assert plain(model).distance < 1e-5
    model.coef_ = model.coef_ + 1.0
    assert plain(model).distance > 0.1


def test_rows_are_shortened_to_the_norm_that_is_given():
    model = fitted()
    law = plain(model, row_norm=1.5)
    assert "shortened to norm 1.5" in law.reference
    clipped = np.clip(X, *model.ranges_)
    short = clipped * np.minimum(1.0, 1.5 / np.linalg.norm(clipped, axis=1))[:, None]
    best = model._problem(2).optimum(short, 2.0 * Y - 1.0, tolerance=1e-13)
    true = math.sqrt((law.weights * ((model.coef_[0] - best.coef) * model.scaling_.scale) ** 2).sum())
    assert true <= law.distance
    objective, whole = objective_of(model, 1.5), objective_of(model)
    assert objective.longest == pytest.approx(1.5 / math.sqrt(0.1))
    assert objective.longest < whole.longest
    least = gradient_distance(model, X, Y, epsilon=1.0, row_norm=1.5)
    assert least.scale < gradient_distance(model, X, Y, epsilon=1.0).scale
    no_intercept_column = np.linalg.norm(objective._rows(_data(X)), axis=1)
    assert no_intercept_column.max() <= objective.longest * (1 + 1e-12)


def _data(table):
    from discreet.data.rows import Data

    return Data(np.asarray(table, dtype=float), np.zeros(len(table)))


def test_sparse_tables_and_weights_give_the_same_bound():
    model = fitted()
    assert plain(model).distance == pytest.approx(_plain_of(model, sp.csr_array(X)), rel=1e-12)
    half = plain(model, sample_weight=np.r_[np.ones(1000), np.zeros(1000)]).distance
    objective = objective_of(model)
    sums = objective.gradient_sum(_labelled(X[:1000], Y[:1000]), 0.0)
    assert half == pytest.approx(objective.residual(sums / 2000), rel=1e-12)


def _plain_of(model, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return gradient_distance(model, table, Y).distance


def _labelled(table, y):
    from discreet.data.rows import Data

    return Data(table, 2.0 * y - 1.0)


# --- the paid radius -----------------------------------------------------------------------------------------


def law_of(seen, scale, size, **kind):
    settings = {"rounding": 0.0, "spherical": False, "exact": True, "guarantee": None} | kind
    return GradientDistance(np.ones(size), 1, "x", residual=seen, scale=scale, **settings)


KINDS = {
    "exact": {},
    "plain": {"exact": False},
    "spherical": {"spherical": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_radius_covers_the_truth_as_often_as_stated(kind):
    draws, failure, size = 300, 0.1, 6
    seeded = np.random.default_rng(8)

    def wrong(true, factor):
        """How often the radius is too short, for noise of `factor` times the scale that the law claims."""
        count, mean = 0, np.r_[true, np.zeros(size - 1)]
        for _ in range(draws):
            noise = seeded.normal(size=size)
            if kind == "spherical":
                noise *= seeded.gamma(size) / np.linalg.norm(noise)
            seen = float(np.linalg.norm(mean + factor * noise))
            count += law_of(seen, 1.0, size, **KINDS[kind]).radius(failure) < true
        return count

    most = stats.binom.isf(LEVEL / 8, draws, failure)
    for true in (0.0, 3.0, 300.0):
        assert wrong(true, 1.0) <= most
    assert wrong(300.0, 10.0) > most  # noise that was understated
    if kind == "exact":
        assert wrong(3.0, 1.0) >= stats.binom.ppf(LEVEL / 8, draws, failure)  # nothing is given away


def test_the_exact_radius_is_never_the_longer_one_and_meets_it_far_out():
    for seen in (0.0, 0.5, 3.0, 100.0, 999.0):
        for failure in (1e-9, 0.01, 0.5):
            exact, safe = (law_of(seen, 1.0, 5, exact=exact).radius(failure) for exact in (True, False))
            assert max(exact, 1.0) <= max(safe, 1.0) + 1e-9
    assert law_of(0.0, 2.0, 5).radius(0.5) == 2.0  # never less than the noise
    assert law_of(2001.0, 1.0, 5).radius(0.01) == law_of(2001.0, 1.0, 5, exact=False).radius(0.01)
    assert law_of(3.0, 0.0, 5).radius(0.01) == 3.0


def test_the_noise_is_drawn_with_the_scale_that_the_law_states():
    """The released mean minus the exact one, over 100 seeds and 3 columns."""
    model = fitted()
    objective, data = objective_of(model), _labelled(X, Y)
    exact = objective.gradient_sum(data, 0.0) / 2000
    noise, drawn = [], []
    original = Objective.residual
    try:
        Objective.residual = lambda self, mean: drawn.append(mean) or original(self, mean)
        for seed in range(100):
            with pytest.warns(InsecureRandomnessWarning):
                law = gradient_distance(model, X, Y, epsilon=1.0, random_state=seed)
            noise.append((drawn[-1] - exact) / law.scale)
    finally:
        Objective.residual = original
    noise = np.concatenate(noise)
    assert stats.kstest(noise, stats.norm.cdf).pvalue > LEVEL
    assert stats.kstest(noise * 0.5, stats.norm.cdf).pvalue < LEVEL


def test_pure_budgets_get_spherical_noise():
    model = fitted()
    law = gradient_distance(model, X, Y, epsilon=1.0, delta=0.0)
    assert law.spherical
    assert law.guarantee.delta == 0.0
    assert law.radius(1e-6) >= distance_to_optimum(model, Y, law)


def test_fresh_noise_unless_seeded_and_the_seed_is_named():
    model = fitted()
    first, second = (gradient_distance(model, X, Y, epsilon=1.0) for _ in range(2))
    assert first.residual != second.residual
    with pytest.warns(InsecureRandomnessWarning):
        seeded = [gradient_distance(model, X, Y, epsilon=1.0, random_state=3) for _ in range(2)]
    assert seeded[0].residual == seeded[1].residual
    assert seeded[0].guarantee.leaks


def test_the_cost_is_booked_before_a_row_is_read(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open("ward", 1.0, 1e-6)
    settings = {"epsilon": 0.7, "delta": 1e-6, "ledger": ledger, "dataset": "ward"}
    model = fitted()
    law = gradient_distance(model, X, Y, **settings)
    assert ledger.spent("ward") == pytest.approx(0.7, rel=1e-3)
    assert law.guarantee.release.ledger.dataset == "ward"
    monkeypatch.setattr(Objective, "gradient_sum", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(BudgetExceededError):
        gradient_distance(model, X, Y, **settings)


@pytest.mark.parametrize("row", [[1e308, -1e308, 1.0], [5e-324, 0.0, 0.0], [-1.0, 4.0, -1e300]])
def test_hostile_rows_move_the_sum_by_at_most_the_claim(row):
    objective = objective_of(fitted(solver="cd"))
    hostile = X.copy()
    hostile[0] = row
    for label in (0, 1):
        y = Y.copy()
        y[0] = label
        step = 2.0**-30
        move = objective.gradient_sum(_labelled(hostile, y), step) - objective.gradient_sum(_labelled(X, Y), step)
        assert np.isfinite(move).all()
        assert np.linalg.norm(move) <= 2.0 * objective.loss.lipschitz * objective.longest + 2.0 * step


# --- use and refusals ----------------------------------------------------------------------------------------


def test_a_certificate_takes_the_law_and_a_loaded_model_gives_the_same(tmp_path):
    model = fitted()
    save_model(model, tmp_path / "model.json")
    law = plain(model)
    assert plain(load_model(tmp_path / "model.json")).distance == law.distance
    with pytest.warns(PrivacyLeakWarning, match="its distance was read from the training rows"):
        found = certificate(model, X, Y, X[:, 1] > 0.0, distance=law, public_rows=True)
    assert not found.private
    assert found.radius == law.distance
    assert "optimum of the model's own objective" in str(found)
    with pytest.warns(NotPrivateWarning):
        free = gradient_distance(model, X, Y, epsilon=math.inf)
    assert free.radius(0.01) == pytest.approx(law.distance)
    with pytest.raises(ValueError, match="read from rows without noise"):
        private_certificate(model, X, Y, X[:, 1] > 0.0, groups=[0, 1], distance=free)
    paid = gradient_distance(model, X, Y, epsilon=1.0)
    assert certificate(model, X, Y, X[:, 1] > 0.0, distance=paid, public_rows=True).private


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"fit_intercept": True}, "column of ones"),
        ({"penalty": "l1", "solver": "cd"}, "needs an l2 penalty"),
        ({"penalty": None}, "needs an l2 penalty"),
        ({"constraint": L2Ball(1.0), "solver": "gd"}, "ties coefficients together"),
    ],
)
def test_objectives_that_are_not_strongly_convex_are_refused(settings, word):
    with pytest.raises(ValueError, match=word):
        gradient_distance(fitted(**settings), X, Y, epsilon=1.0)


def test_other_mistakes_are_refused():
    model = fitted()
    with pytest.raises(ValueError, match="classifier of discreet"):
        gradient_distance(Ridge(epsilon=5.0).fit(X, X[:, 0]), X, Y)
    with pytest.raises(ValueError, match="classifier of discreet"):
        gradient_distance(SkLogisticRegression().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="columns"):
        gradient_distance(model, X[:, :2], Y)
    with pytest.raises(ValueError, match="values but X has"):
        gradient_distance(model, X, Y[1:])
    with pytest.raises(ValueError, match="labels that are not in classes"):
        gradient_distance(model, X, Y + 5)
    with pytest.raises(ValueError, match="row_norm"):
        gradient_distance(model, X, Y, row_norm=-1.0)
    boxed = fitted(constraint=Box(-0.2, 0.2), solver="cd")
    boxed.coef_ = boxed.coef_ + 1.0
    with pytest.raises(ValueError, match="outside its constraint"):
        gradient_distance(boxed, X, Y)


def test_rows_or_weights_of_another_objective_are_refused():
    """The mean of the losses must be that of the fit: with another divisor or other weights it has another optimum."""
    model = fitted()
    for other in ({"relation": "add_remove", "public_n": 500}, {"relation": "add_remove", "public_n": 8000}):
        with pytest.raises(ValueError, match="divides by 2000"):
            gradient_distance(model, X, Y, epsilon=1.0, **other)
    with pytest.raises(ValueError, match="divides by 2000"):
        gradient_distance(model, X[:500], Y[:500], epsilon=1.0)
    with pytest.warns(InsecureRandomnessWarning):
        weighted = LogisticRegression(**KNOWN, classes=[0, 1], random_state=0).fit(
            X, Y, sample_weight=np.full(2000, 0.5)
        )
    with pytest.raises(ValueError, match="sample_weight"):
        gradient_distance(weighted, X, Y, epsilon=1.0)


def test_sparse_rows_are_refused_where_a_zero_would_be_clipped():
    model = fitted(bounds=([-1.0, -4.0, 0.5], [1.0, 4.0, 1.0]))
    with pytest.raises(ValueError, match="must contain 0"):
        gradient_distance(model, sp.csr_array(X), Y, epsilon=1.0)
