"""Which constants are scanned, how each is measured, and on which of the synthetic tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from defaults.tables import EVEN, FAMILY, LABELS, SMALL, TARGETS, FloatArray, Table
from discreet import Budget, Problem, solve
from discreet.estimators.base import clip_columns
from discreet.preprocessing import PrivateQuantiles, PrivateScaler
from discreet.problem.constraints import L1Ball, L2Ball
from discreet.problem.penalties import L2
from discreet.solvers import SOLVERS
from discreet.solvers._shared.descents import ClippingRule, NoiseRule

Measure = Callable[..., float]  # settings of the solver -> error
RIDGE = L2(1e-6)
AROUND = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class FitError:
    """What a fit leaves of the way from the best constant to the optimum of the training objective."""

    solver: str
    form: Callable[[Table, FloatArray], Problem]
    pure: bool = False
    declared: bool = False  # whether bounds are declared, four times as wide as the columns are
    settings: tuple[tuple[str, Any], ...] = ()  # of the solver, the same for all values

    def __call__(self, table: Table, seed: int) -> Measure:
        X, y = table.draw(seed)
        free = Problem(table.loss, RIDGE).optimum(X, y, tolerance=1e-8)
        problem = self.form(table, np.asarray(free.coef))
        best = free if problem.constraint is None else problem.optimum(X, y, tolerance=1e-6)
        mean = float(y.mean())
        level = math.log((1.0 + mean) / (1.0 - mean)) if table.task == "labels" else mean
        constant = problem.objective(X, y, np.zeros(table.columns), level)
        budget = Budget.pure(table.epsilon) if self.pure else Budget(table.epsilon, table.rows**-2.0)
        known = {"bounds": wide_bounds(X)} if self.declared else {}

        def measure(**settings: Any) -> float:
            solver = SOLVERS[self.solver](**dict(self.settings), **settings)
            found = solve(problem, X, y, solver, budget, random_state=seed, **known)
            clipped = clip_columns(X, found.scaling.low, found.scaling.high)  # as the estimators predict
            value = problem.objective(clipped, y, found.coef, found.intercept)
            return (value - best.value) / (constant - best.value)

        return measure


def wide_bounds(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = X.min(axis=0), X.max(axis=0)
    return low - 1.5 * (high - low), high + 1.5 * (high - low)


def unconstrained(table: Table, coef: FloatArray) -> Problem:
    return Problem(table.loss, RIDGE)


def in_l1_ball(table: Table, coef: FloatArray) -> Problem:
    """With the next power of two as radius, which the optimum does not exceed."""
    return Problem(table.loss, constraint=L1Ball(2.0 ** math.ceil(math.log2(np.abs(coef).sum()))))


def in_l2_ball(table: Table, coef: FloatArray) -> Problem:
    return Problem(table.loss, constraint=L2Ball(2.0 ** math.ceil(math.log2(np.linalg.norm(coef)))))


def error_of_scaler(table: Table, seed: int) -> Measure:
    """Mean over the columns: error of the mean in deviations, plus that of the logarithm of the deviation."""
    X, _ = table.draw(seed)

    def measure() -> float:
        found = PrivateScaler(epsilon=table.epsilon, random_state=seed).fit(X)
        deviation = X.std(axis=0)
        return float(
            np.mean(np.abs(found.mean_ - X.mean(axis=0)) / deviation + np.abs(np.log(found.scale_ / deviation)))
        )

    return measure


def error_of_quantiles(table: Table, seed: int) -> Measure:
    """Mean over columns and quartiles: distance between the rank of a released quartile and the one asked for."""
    X, _ = table.draw(seed)

    def measure() -> float:
        found = PrivateQuantiles(epsilon=table.epsilon, random_state=seed).fit(X).quantiles_
        ranks = (X[None] < found[:, None]).mean(axis=1), (X[None] <= found[:, None]).mean(axis=1)
        wanted = np.array([0.25, 0.5, 0.75])[:, None]
        return float(np.mean(np.maximum(0.0, np.maximum(ranks[0] - wanted, wanted - ranks[1]))))

    return measure


@dataclass(frozen=True)
class Scan:
    """A constant, the values that are tried in its place, and how each is judged."""

    constant: str
    measure: Callable[[Table, int], Measure]
    tables: tuple[Table, ...] = FAMILY
    field: str | None = None  # of the solver, where the constant is only the default of a field
    most: float = math.inf  # values above it are not allowed
    seeds: int = 3

    @property
    def default(self) -> Any:
        """The current value of the constant, or of the field's default."""
        *home, name = self.constant.split(".")
        try:
            return getattr(import_module(".".join(["discreet", *home])), name)
        except ModuleNotFoundError:
            owner = getattr(import_module(".".join(["discreet", *home[:-1]])), home[-1])
            return owner.__dataclass_fields__[name].default

    @property
    def values(self) -> tuple[Any, ...]:
        """From a quarter to four times the default; of a rule, each of its numbers on its own."""
        default = self.default
        if isinstance(default, (NoiseRule, ClippingRule)):
            times = [("factor", x) for x in AROUND] + [("power", x) for x in (0.7, 1.4)]
            times += [("most", x) for x in (0.5, 2.0)] if isinstance(default, NoiseRule) else []
            return tuple(default._replace(**{part: _rounded(getattr(default, part) * x)}) for part, x in times)
        if isinstance(default, int):
            return tuple(dict.fromkeys(max(1, round(default * x)) for x in AROUND))
        return tuple(default * x for x in AROUND if x == 1.0 or default * x <= self.most)


def shown(value: Any) -> str:
    """A number or the numbers of a rule, with few digits."""
    if isinstance(value, tuple):
        return ", ".join(shown(part) for part in value)
    return str(value) if isinstance(value, int) else f"{value:.3g}"


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _scans(module: str, names: str, measure: Callable[[Table, int], Measure], **settings: Any) -> list[Scan]:
    """One scan for each name; a name in lower case is a field of the solver's class."""
    found = []
    for name in names.split():
        own = settings | ({"field": name.rsplit(".", 1)[-1]} if name.rsplit(".", 1)[-1].islower() else {})
        found.append(Scan(f"{module}.{name}", measure, **own))
    return found


def _free(solver: str, **settings: Any) -> FitError:
    return FitError(solver, unconstrained, **settings)


_NEWTON, _SHARED = "solvers.newton.planning", "solvers._shared"
_SGD, _DUAL = "solvers.stochastic_gradient", "solvers.coordinate_descent"
_STREAM = (("aggregation", "tree"), ("epochs", 1))
SCANS = {
    scan.constant: scan
    for scan in [
        Scan(f"{_NEWTON}.MOMENT_SHARE", _free("newton"), field="moment_share", most=0.75),
        Scan(f"{_NEWTON}.HESSIAN_SHARE", _free("newton"), field="hessian_share", most=0.6),
        *_scans(_NEWTON, "STEPS FEW_STEPS NORM_BOUND_SHARE GROWTH FEWEST_STEPS", _free("newton")),
        *_scans("solvers.newton.descent", "CLIPPED_ROWS LONG_ROWS", _free("newton")),
        *_scans("solvers.newton.planning", "LEAST_CURVATURE", _free("newton")),
        *_scans(_NEWTON, "NOISIEST_HESSIAN MOST_GROWTH", _free("newton")),
        *_scans(f"{_SHARED}.descents", "COORDINATE_CLIP", _free("cd")),
        *_scans(f"{_SHARED}.coordinates", "PASSES NOISIEST FEWEST_PASSES", _free("cd")),
        *_scans(f"{_SHARED}.descents", "GRADIENT_CLIP", _free("gd")),
        *_scans(f"{_SHARED}.full_batch", "FEWEST_STEPS STEPS_PER_COORDINATE WEAK_NOISE MOST_STEPS", _free("gd")),
        *_scans(f"{_SHARED}.descents", "BATCH_CLIP", _free("sgd")),
        *_scans("scaling.plan", "DEFAULT_SHARE", _free("newton"), most=0.9),
        *_scans("scaling.plan", "NOISIEST_HISTOGRAM HISTOGRAM LOCATION CLOSER MOMENTS", _free("newton")),
        *_scans("scaling.learn", "MARGIN TAIL DOUBTFUL_BINS", _free("newton")),
        *_scans("scaling.learn", "FAR", _free("newton"), most=1.0),
        *_scans("scaling.learn", "TARGET_TAIL", _free("newton")),
        *_scans("scaling.plan", "NOISIEST_MOMENT", _free("newton", declared=True)),
        *_scans("scaling.second_moment", "CLEAR", _free("newton")),
        *_scans(_SGD, "PASSES SMALLEST_BATCH", _free("sgd")),
        *_scans(_SGD, "SMALLEST_RATE", _free("sgd"), most=1.0),
        *_scans("solvers.svrg", "ANCHORS MOST_INNER PATIENCE SMALLEST_BATCH", _free("svrg")),
        *_scans("solvers.svrg", "SVRG.anchor_share SMALLEST_RATE", _free("svrg"), most=0.99),
        Scan("solvers.svrg.DIFFERENCE", _free("svrg"), field="difference"),
        *_scans(_DUAL, "LARGEST_DUAL PASSES PROXIMITY SMALLEST_BATCH", _free("dual-cd")),
        *_scans(_DUAL, "SMALLEST_RATE", _free("dual-cd"), most=1.0),
        *_scans("solvers.ftrl.solver", "LEAVES EPOCHS", _free("ftrl")),
        Scan("solvers.ftrl.stream.CAPPED_LEAVES", _free("ftrl", settings=_STREAM), field="leaves"),
        Scan("solvers.ftrl.stream.OPEN_LEAVES", _free("ftrl", settings=_STREAM), field="leaves"),
        *_scans("solvers.gradient_descent", "GradientDescent.step", _free("gd"), most=1.99),
        *_scans("solvers.admm", "ADMM.gamma", _free("admm")),
        *_scans(_SGD, "StochasticGradientDescent.step", _free("sgd")),
        *_scans("solvers.svrg", "SVRG.step", _free("svrg")),
        *_scans("solvers.ftrl.solver", "FTRL.step", _free("ftrl")),
        *_scans("solvers.coordinate_descent", "CoordinateDescent.outer", _free("cd")),
        *_scans(
            "solvers.sufficient_statistics",
            "NORM_BOUND_SHARE LONG_ROWS",
            _free("sufficient-statistics"),
            tables=TARGETS,
        ),
        *_scans(f"{_SHARED}.minimisers", "ROW_NORM WEIGHTS_GUESS", _free("output-perturbation"), tables=LABELS),
        *_scans(
            "solvers.objective_perturbation",
            "DETERMINANT_SHARE",
            _free("objective-perturbation"),
            tables=LABELS,
            most=0.9,
        ),
        *_scans("solvers.output_perturbation", "PASSES SMALLEST_BATCH", _free("bolt-on"), tables=LABELS),
        *_scans("solvers.sketched.solver", "SIZE LARGE_SET LARGE_SET_STEP", _free("sketched")),
        *_scans("solvers.greedy_coordinate_descent", "MOST_STEPS", _free("greedy-cd")),
        *_scans(
            "solvers.frank_wolfe.solver", "ENTRY_CLIP MOST_STEPS", FitError("frank-wolfe", in_l1_ball), tables=EVEN
        ),
        *_scans(
            "solvers.gradient_descent",
            "MOST_STEPS FEWEST_STEPS",
            FitError("mirror-descent", in_l1_ball),
            tables=EVEN,
            seeds=2,
        ),
        *_scans("solvers.exponential", "LABEL_REACH", FitError("exponential", in_l2_ball), tables=SMALL[:3], most=2.0),
        *_scans(
            "solvers.exponential",
            "TARGET_REACH TARGET_SPREADS",
            FitError("exponential", in_l2_ball),
            tables=SMALL[3:],
        ),
        *_scans(f"{_SHARED}.coordinates", "PURE_PASSES", _free("cd", pure=True)),
        *_scans(f"{_SHARED}.full_batch", "PURE_STEPS", _free("gd", pure=True)),
        *_scans("preprocessing.ranges", "RANGE_SHARE", error_of_scaler, most=0.9),
        *_scans("preprocessing.quantiles", "RANGE_SHARE", error_of_quantiles, most=0.9),
        *_scans("preprocessing.ranges", "FAINTEST_BIN", error_of_scaler, most=1.0),
    ]
}
