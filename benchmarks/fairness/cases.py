"""The tables and solvers of the fairness benchmark: census rows of two states, prepared with public constants.

The ten columns of the folktables task ACSIncome, without the sensitive one, are what the thesis's experiment uses.
They are standardised with means and deviations of the other state's table, which counts as public here, and every row
is shortened to a norm of at most 3. Both act on each row alone, so the guarantee of a fit is that of the raw rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from stored_tables import stored_table

from discreet import LogisticRegression
from discreet.solvers import CoordinateDescent, Newton, OutputPerturbation, StochasticGradientDescent

FloatArray = npt.NDArray[np.float64]
NAMES = {"acsincome_co": "Colorado", "acsincome_ne": "Nebraska"}
OTHER = {"acsincome_co": "acsincome_ne", "acsincome_ne": "acsincome_co"}
SENSITIVE = "SEX"
GROUPS = {1.0: "men", 2.0: "women"}  # the codes of the census
ROW_NORM = 3.0  # as in the thesis's code
TEST_SHARE = 0.1
CONVEXITY = 1.0  # of the thesis's objective
WEAK = 1e-4  # a penalty that a user would choose
SPLIT_SEED = 42


@dataclass(frozen=True, eq=False)
class Case:
    """Rows to fit, rows to judge on, and the group of each row to judge on; labels are 0 and 1."""

    name: str
    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    sensitive: npt.NDArray[np.str_]

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])


def split_case(name: str, X: FloatArray, y: FloatArray, sensitive: npt.NDArray[np.str_]) -> Case:
    """Nine tenths of the rows to fit, in a fixed random order, one tenth to judge on."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
    cut = round(TEST_SHARE * len(y))
    test, train = order[:cut], order[cut:]
    return Case(name, X[train], y[train], X[test], y[test], sensitive[test])


def census_case(name: str) -> Case:
    """One state's rows, standardised with the other state's means and deviations."""
    X, y, sensitive = _codes(name)
    public, _, _ = _codes(OTHER[name])
    X = shortened((X - public.mean(axis=0)) / public.std(axis=0), ROW_NORM)
    return split_case(name, X, y, sensitive)


def _codes(name: str) -> tuple[FloatArray, FloatArray, npt.NDArray[np.str_]]:
    stored = stored_table(name)
    codes, names, y = stored["X_codes"], [str(column) for column in stored["X_codes_names"]], stored["y"]
    groups = codes[:, names.index(SENSITIVE)]
    features = [j for j, column in enumerate(names) if column != SENSITIVE]
    return codes[:, features], y, np.array([GROUPS[float(code)] for code in groups])


def shortened(X: FloatArray, norm: float) -> FloatArray:
    """Rows of at most this norm; shorter ones stay as they are."""
    lengths = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    # A little shorter than allowed: what rounding adds must not make a solver clip a row of exactly this norm.
    return np.asarray(X * np.minimum(1.0, norm * (1.0 - 1e-12) / lengths))


@dataclass(frozen=True)
class Regime:
    """How strongly models are regularised, and with which settings each solver runs.

    Attributes
    ----------
    title : str
        In the headings of the page.
    alpha : float
        The l2 penalty.
    solvers : mapping of str to a solver
        By the name that the page uses.
    bounds : tuple of floats
        Public bounds of the absolute values of the columns.
    """

    title: str
    alpha: float
    solvers: dict[str, Any]
    bounds: tuple[float, ...]

    def model(self, solver: str, epsilon: float, seed: int | None = None) -> LogisticRegression:
        """Return an estimator that is not fitted, without an intercept: every coefficient has its penalty."""
        return LogisticRegression(
            alpha=self.alpha,
            epsilon=epsilon,
            bounds=([-bound for bound in self.bounds], list(self.bounds)),
            classes=[0, 1],
            fit_intercept=False,
            solver=self.solvers[solver],
            random_state=seed,
        )


def thesis(columns: int) -> Regime:
    """The thesis's protocol: objective 1-strongly convex, no intercept; no row is clipped by any solver.

    The solvers divide every column by its bound, 3, so that rows have norm at most 1 there. The thresholds are the
    largest that a gradient can have: nothing is clipped, and all solvers have the same limit without noise. Passes and
    step of `cd` and `sgd` are near those with the smallest proved distance, which reads no rows.
    """
    unit = 1.0 / math.sqrt(columns)
    return Regime(
        "objective 1-strongly convex",
        CONVEXITY,
        {
            "output-perturbation": OutputPerturbation(row_norm=unit, ridge=CONVEXITY / ROW_NORM**2, scale_share=0.0),
            "cd": CoordinateDescent(
                sampling="uniform", clip=1.001 * math.sqrt(columns), passes=30, average=False, scale_share=0.0
            ),
            "newton": Newton(scale_share=0.0),
            "sgd": StochasticGradientDescent(clip=1.0, passes=30, step=0.2, average=False, scale_share=0.0),
        },
        (ROW_NORM,) * columns,
    )


def weak(columns: int) -> Regime:
    """A penalty that a user would choose, 1e-4; the last column is 1 and has its penalty, as every theorem asks.

    Thresholds again clip nothing. The second form of output perturbation picks its own, larger penalty.
    """
    longest = math.sqrt(2.0)  # of a row, in columns divided by their bounds: the 9 columns have norm at most 1
    row_norm = longest / math.sqrt(columns)
    return Regime(
        "penalty 1e-4",
        WEAK,
        {
            "output-perturbation": OutputPerturbation(row_norm=row_norm, ridge=WEAK / ROW_NORM**2, scale_share=0.0),
            "output-perturbation, own ridge": OutputPerturbation(row_norm=row_norm, scale_share=0.0),
            "cd": CoordinateDescent(sampling="uniform", clip=1.001 * math.sqrt(columns), scale_share=0.0),
            "newton": Newton(scale_share=0.0),
            "sgd": StochasticGradientDescent(clip=longest, scale_share=0.0),
        },
        tuple(ROW_NORM if j < columns - 1 else 1.0 for j in range(columns)),
    )


def with_ones(case: Case) -> Case:
    """The same rows with a last column of ones, in place of an intercept."""
    X, X_test = (np.column_stack([part, np.ones(len(part))]) for part in (case.X, case.X_test))
    return replace(case, X=X, X_test=X_test)
