"""Tables and settings that should not be: refused with a clear error, or survived with finite numbers."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from discreet import Budget, NotPrivateWarning, PrivacyLeakWarning, UtilityWarning
from discreet.preprocessing import PrivateQuantiles, PrivateScaler, private_means, private_smoothness
from discreet.problem.losses import Logistic
from tests.preprocessing_tools import TRANSFORMERS, table


@pytest.mark.parametrize("make", TRANSFORMERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(make, bad):
    X = table(100)
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        make().fit(X)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        private_means(X, (0.0, 1.0))
    with pytest.raises(ValueError, match="0 feature"):
        make().fit(np.empty((5, 0)))
    with pytest.raises(ValueError, match="0 sample"):
        make().fit(np.empty((0, 3)))


HOSTILE = {
    "huge": np.full((60, 2), 1e308),
    "both signs": np.array([[1.7e308, -1.7e308]] * 30 + [[-1.7e308, 1.7e308]] * 30),
    "subnormal": np.full((60, 2), 5e-324),
    "constant": np.full((60, 2), 7.0),
    "zeros": np.zeros((60, 2)),
    "one row": np.array([[1e308, -5e-324]]),
    "single precision": np.full((60, 2), 3e38, dtype=np.float32),
}


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0, math.inf])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("make", TRANSFORMERS)
def test_no_finite_table_breaks_a_transformer(make, name, epsilon):
    X = HOSTILE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (UtilityWarning, NotPrivateWarning))  # NumPy's stay errors
        step = make(epsilon=epsilon).fit(X)
    assert np.isfinite(step.transform(X)).all()
    assert np.isfinite(step.transform(table(50)[:, :2])).all()
    assert (step.low_ <= step.high_).all()
    if make is PrivateScaler:
        assert (step.scale_ > 0.0).all()
        assert np.isfinite(step.mean_).all()


def test_functions_survive_hostile_tables_and_ask_for_bounds():
    for X in HOSTILE.values():
        means = private_means(X, (-1e100, [1.0, 1e100]))
        assert np.isfinite(means.values).all()
        constants = private_smoothness(X, Logistic(), (-1e-99, 1e100), 0.01).values
        assert (constants > 0.0).all()
        assert np.isfinite(constants).all()
    with pytest.raises(ValueError, match="bounds is missing"):
        private_means(X, None)
    with pytest.raises(ValueError, match="no curvature"):
        private_smoothness(X, Logistic(), (0.0, 0.0))
    with pytest.raises(ValueError, match="public_n"):
        private_means(X, (0.0, 1.0), relation="add_remove")


def test_settings_that_make_no_sense_are_refused():
    X = table(100)
    for bad in ([], [0.5, 0.5], [0.0], [1.0], [0.9, 0.1], [np.nan]):
        with pytest.raises(ValueError, match="quantiles must be increasing"):
            PrivateQuantiles(quantiles=bad).fit(X)
    with pytest.raises(ValueError, match="both False"):
        PrivateScaler(with_mean=False, with_std=False).fit(X)
    with pytest.raises(ValueError, match="Gaussian DP"):
        PrivateQuantiles(epsilon=Budget.gdp(1.0)).fit(X)
    with pytest.warns(UtilityWarning, match="too few"):
        PrivateScaler(epsilon=0.01, bounds=(-1.0, 1.0)).fit(X)
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        leaky = PrivateScaler(epsilon=10.0, bounds="data").fit(X)
    assert "the bounds of the columns" in leaky.guarantee_.statement()
