"""Private screening: the columns that go with the target are chosen first, and a model is fitted on these alone.

Noise in a model of all columns grows with their number; that of the choices grows with its logarithm. Where columns are
many against rows times epsilon, a few that matter are worth more than all. Theorem and proof:
docs/guarantees/screened.md.

How many columns can be told from chance, and whether it is better to leave the others out, follows from public facts.
Scores count by how many pairs of rows a column orders as the target does (Kendall's tau, without dividing). Ranks alone
count, so no scale of a column or of the target must be known, and one row can move a score by no more than the pairs it
is in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import number_in, positive
from discreet._common.types import FloatArray, IntArray, Progress
from discreet.data.public import Public
from discreet.data.rows import Data, Rows
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import SelectionsThenFit
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem, feasible
from discreet.scaling.plan import ScalingPlan, binary
from discreet.solvers import SOLVERS
from discreet.solvers.base import Capabilities, Run, Solution, Solver, planned_rows, refused
from discreet.solvers.plan import Plan, Settings

SHARE = 0.5  # of the budget for the choices: neither they nor the fit are noisier than sqrt(2) times what they could be
CLEAR = 2.0  # scales of the noise beyond log(columns): such a column beats all others with probability 0.88
# The score of a column whose correlation with the target is r: its limit, for small r, is this times r times the rows.
TARGET_SIGNAL = 1.0 / math.pi  # normal columns and targets
LABEL_SIGNAL = 1.0 / (math.sqrt(2.0) * math.pi)  # the target cut at its median


def found_columns(problem: Problem, public: Public, budget: Budget, share: float = SHARE) -> float:
    """How many columns that tell everything about the target together, each as much, can be found; below 1: none.

    k uncorrelated columns of equal weight have correlations of at most 1 / sqrt(k), and the noise of the choices grows
    with sqrt(k) (with k for pure budgets): the number balances the two (docs/guarantees/screened.md).
    """
    if budget.is_infinite:
        return float(public.columns)
    signal = LABEL_SIGNAL if problem.loss.classification else TARGET_SIGNAL
    level = mechanisms.concordant_pairs(public.relation).l2 * (math.log(max(public.columns, 1)) + CLEAR)
    if budget.kind == "pure":
        return (signal * public.rows * share * budget.amount / (2.0 * level)) ** (2.0 / 3.0)
    return signal * public.rows * math.sqrt(share) * budget.gaussian_mu() / level


def worth_screening(problem: Problem, public: Public, budget: Budget) -> bool:
    """Whether a model of few chosen columns is planned to be better than one of all; from public facts alone.

    It is where the noise in a prediction by all columns exceeds what they can tell, some column can be found, and the
    solver `screened` takes the problem. docs/guarantees/screened.md has the derivation.
    """
    if public.table is not None or public.has_start:  # what they tell about all columns would be lost
        return False
    if budget.is_infinite or public.stored or SOLVERS["screened"]().why_incompatible(problem, budget) is not None:
        return False
    return noise_of_all(public, budget) > 1.0 and 1.0 <= found_columns(problem, public, budget) < public.columns


def noise_of_all(public: Public, budget: Budget) -> float:
    """The noise in a prediction by all columns, in standard deviations of the target, if it is fitted in one step.

    Rows have a length of sqrt(columns) in columns of scale 1, so that a gradient has noise of that size in each entry,
    and so has a prediction, times another sqrt(columns).
    """
    unit = mechanisms.clipped_sum(public.relation)
    return mechanisms.additive(budget, 1.0).deviation(unit) * public.columns / public.rows


def concordance_scores(problem: Problem, data: Data, public_rows: int) -> FloatArray:
    """One score per column: |concordant pairs - discordant pairs| over the number of rows. Not private.

    With several classes it is the largest over the classes, each against all others. Without an intercept every row is
    joined by its mirror image (-x, -y), so that a column that goes with the target through the origin scores as well.
    """
    mirrored = not problem.fit_intercept
    weight = pair_weights(data.weight, data.rows, public_rows)
    best = np.zeros(data.columns)
    for target in _targets(problem, data.y):
        np.maximum(best, np.abs(_concordance(data.X, target, weight, mirrored)), out=best)
    return best / (max(data.rows, 1) * (4.0 if mirrored else 1.0))


def pair_weights(weight: FloatArray | None, rows: int, public_rows: int) -> FloatArray:
    """The weights of the rows, rounded so that sums over all pairs are exact, for up to 8 times as many rows."""
    if weight is None:
        return np.ones(rows)
    digits = max(0, (46 - 2 * math.ceil(math.log2(max(public_rows, 1)))) // 2)
    return np.asarray(np.floor(np.ldexp(weight, digits)) * 2.0**-digits)


def _targets(problem: Problem, y: FloatArray) -> list[FloatArray]:
    """The target, or one of -1 and 1 for each class."""
    if problem.loss.outputs == 1:
        return [y]
    return [np.where(y == k, 1.0, -1.0) for k in range(problem.loss.outputs)]


def _concordance(X: object, target: FloatArray, weight: FloatArray, mirrored: bool) -> FloatArray:
    from discreet.kernels import concordance

    if mirrored:
        target, weight = np.concatenate([target, -target]), np.concatenate([weight, weight])
    values, rank = np.unique(target, return_inverse=True)
    ranks = values.size
    rank = rank.astype(np.int64)
    balance = _balance(rank, ranks, weight)
    if sp.issparse(X):
        columns = sp.csc_array(X)
        out = np.empty(columns.shape[1])
        parts = (columns.indptr, columns.indices, columns.data)
        concordance.of_sparse(*parts, mirrored, columns.shape[0], rank, ranks, weight, balance, out)
        return out
    table = np.asarray(X)
    out = np.empty(table.shape[1])
    concordance.of_dense(table, mirrored, rank, ranks, weight, balance, out)
    return out


def _balance(rank: IntArray, ranks: int, weight: FloatArray) -> FloatArray:
    """For each row, the weight of the rows with a lower target less that of those with a higher one."""
    upto = np.append(0.0, np.bincount(rank, weights=weight, minlength=ranks).cumsum())
    return np.asarray(upto[rank] - (upto[-1] - upto[rank + 1]))


LEAST_SHARE, MOST_SHARE = 0.01, 0.99  # of the choices: both they and the fit need some


@dataclass(frozen=True)
class ScreenedSettings(Settings):
    """How many columns are chosen, and by which solver the model is fitted on them."""

    chosen_columns: int
    then: str


ScreenedPlan = Plan[SelectionsThenFit, ScreenedSettings]


@dataclass(frozen=True)
class Screened(Solver[SelectionsThenFit, ScreenedSettings]):
    """A private choice of columns, and then a fit on the chosen ones; all other coefficients are 0.

    Columns are scored by how many pairs of rows they order as the target does, which needs no scale, and the best are
    chosen by the exponential mechanism. The fit is that of another solver, for a table of the chosen columns.

    Parameters
    ----------
    columns : int, optional
        How many columns to choose; by default as many as can be told from chance with the noise of the plan.
    share : float
        Share of the budget for the choices.
    then : str
        Name of the solver of the fit; "auto" takes the one that is best for so many columns.
    scale_share : float, optional
        Share of what is left to the fit for learning scales of the chosen columns (default 0.1).
    """

    name = "screened"
    capabilities = Capabilities(order="F", pure=True, selects=True, scales_first=False, consistent=False)

    columns: int | None = None
    share: float = SHARE
    then: str = "auto"
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("columns", self.columns, whole=True)
        number_in("share", self.share, LEAST_SHARE, MOST_SHARE)
        allowed = ["auto", *(name for name in SOLVERS if name != self.name)]
        if self.then not in allowed:
            raise ValueError(f"then must be one of {', '.join(map(repr, allowed))}; got {self.then!r}.")

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        """Why this solver cannot take this problem under this budget; None if it can."""
        reason = super().why_incompatible(problem, budget)
        if reason is None and self.then != "auto":
            rest = SelectionsThenFit(1.0, 1, self.share, pure=budget.kind == "pure").rest
            reason = SOLVERS[self.then]().why_incompatible(problem, rest)
            reason = reason and f"its fit by {self.then!r} is refused, as {reason}"
        return reason

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[SelectionsThenFit, ScreenedSettings]:
        mechanism = self._mechanism(problem, public, budget)
        chosen = _public_of_fit(public, mechanism.count)
        then = _solver_of_fit(self.then, self.scale_share, problem, chosen, mechanism.rest)
        return mechanism, ScreenedSettings(mechanism.count, then.name)

    def _mechanism(self, problem: Problem, public: Public, budget: Budget) -> SelectionsThenFit:
        """The choices and what is left to the fit, with the least noise that keeps the budget.

        Guarantee: the choices, together with the releases of the fit as it will be planned, fit the budget.
        """
        count = self._count(problem, public, budget)
        mechanism = _shared_budget(count, self.share, budget, public.relation)
        if budget.is_infinite:
            return mechanism
        chosen = _public_of_fit(public, count)

        def event_at(multiplier: float) -> Any:
            """The whole run: the certificate of many releases is rounded up by more than that of one."""
            found = replace(mechanism, multiplier=multiplier)
            then = _solver_of_fit(self.then, self.scale_share, problem, chosen, found.rest)
            return accounting.compose([found.selections.event, then.plan(problem, chosen, found.rest).event])

        if accounting.amount_of(event_at(mechanism.multiplier), budget, public.relation) <= budget.amount:
            return mechanism
        multiplier = accounting.calibrate(event_at, budget, public.relation, start=mechanism.multiplier or 1.0)
        return replace(mechanism, multiplier=multiplier)

    def _count(self, problem: Problem, public: Public, budget: Budget) -> int:
        """All columns without noise: the fit is then the exact one."""
        if budget.is_infinite and self.columns is None:
            return public.columns
        wanted = self.columns or max(1, math.floor(found_columns(problem, public, budget, self.share)))
        return min(wanted, public.columns)

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        """The scales that the fit will learn, of the chosen columns."""
        if public.table is not None:  # what it says depends on which columns are chosen, and plans must not
            raise refused(self, "it takes no public table", problem, budget, start=True)
        mechanism = self._mechanism(problem, public, budget)
        chosen, rest = _public_of_fit(public, mechanism.count), mechanism.rest
        then = _solver_of_fit(self.then, self.scale_share, problem, chosen, rest)
        return then._plan_scaling(problem, chosen, rest)

    def fit_plan(self, plan: ScreenedPlan, chosen: IntArray | None = None) -> Plan[Any, Any]:
        """Return the plan of the fit on the chosen columns; which ones they are changes nothing but their bounds."""
        planned = _planned_fit(plan)
        if chosen is None:
            return planned
        return replace(planned, public=_public_of_fit(plan.public, plan.settings.chosen_columns, chosen))

    def _event(self, plan: ScreenedPlan) -> Any:
        return accounting.compose([plan.mechanism.selections.event, self.fit_plan(plan).event])

    def _releases(self, plan: ScreenedPlan) -> list[PlannedRelease]:
        chosen = planned_releases("choices of a column", plan.mechanism.selections.event, plan.public.relation)
        return chosen + self.fit_plan(plan).releases

    def _warnings(self, plan: ScreenedPlan) -> list[str]:
        if plan.budget.is_infinite or found_columns(plan.problem, plan.public, plan.budget, self.share) >= 1.0:
            return []
        told = f"even a column that tells everything about the target cannot be found among {plan.public.columns:,}"
        return [f"{told} with this noise, so that a constant may predict better; use more rows or a larger epsilon."]

    def solve(
        self,
        problem: Problem,
        data: Rows,
        plan: ScreenedPlan,
        rng: RandomGenerator,
        progress: Progress | None = None,
        trace: Literal["non-private"] | None = None,
    ) -> Solution:
        """Choose the columns, then fit on them as planned.

        Guarantee: the result costs exactly `plan.event` under the plan's relation, unless `rng` is seeded.
        """
        rows = planned_rows(self, problem, data, plan, rng)
        chosen = self._choose(problem, rows, plan, rng)
        inner = self.fit_plan(plan, chosen)
        table = Data(rows.X[:, chosen], rows.y, rows.weight)
        fit = inner.solver.solve(problem, table, inner, rng, progress, trace)
        coef = np.zeros((*np.shape(fit.coef)[:-1], data.columns))
        coef[..., chosen] = fit.coef
        coef = feasible(problem, coef)  # a box may exclude the 0 of a column that was not chosen
        scaling = _scaling_of_all(fit.scaling, chosen, data.columns)
        return Solution(coef, fit.intercept, fit.iterations, plan, scaling, fit.objective_trace, fit.seeded)

    def _choose(self, problem: Problem, data: Data, plan: ScreenedPlan, rng: RandomGenerator) -> IntArray:
        """The places of the chosen columns.

        Guarantee: costs the selections of the plan's mechanism.
        """
        if plan.settings.chosen_columns >= data.columns and not plan.is_noisy:
            return np.arange(data.columns)
        scores = concordance_scores(problem, data, plan.public.rows)
        return plan.mechanism.selections.choose_all(rng, scores, mechanisms.concordant_pairs(plan.public.relation))

    def _descend(self, scaled: ScaledProblem, plan: ScreenedPlan, run: Run) -> tuple[FloatArray, int]:
        raise NotImplementedError("the fit is made by the solver that the plan names.")


@lru_cache(maxsize=16)  # two steps of one plan ask for it
def _shared_budget(count: int, share: float, budget: Budget, relation: Relation) -> SelectionsThenFit:
    """The choices and what is left to the fit, with the least noise if the fit is one release that costs all of it."""

    def make(multiplier: float) -> SelectionsThenFit:
        return SelectionsThenFit(multiplier, count, share, pure=budget.kind == "pure")

    if budget.is_infinite:
        return make(0.0)
    return make(accounting.calibrate(lambda z: make(z).event, budget, relation))


@lru_cache(maxsize=16)  # plans are compared by identity; several parts of one plan ask for its fit
def _planned_fit(plan: ScreenedPlan) -> Plan[Any, Any]:
    """The plan of the fit, for columns with the bounds of the first ones."""
    settings, rest = plan.settings, plan.mechanism.rest
    public = _public_of_fit(plan.public, settings.chosen_columns)
    share = plan.solver.scale_share
    return _solver_of_fit(settings.then, share, plan.problem, public, rest).plan(plan.problem, public, rest)


def _public_of_fit(public: Public, count: int, chosen: IntArray | None = None) -> Public:
    """The public facts of a table of the chosen columns; a plan is the same whichever they are.

    Of the bounds, a plan sees their presence and how many columns are indicators, with the bounds 0 and 1. Unless all
    are, or none is, that number depends on the choice: indicators are then narrowed as all other columns. Bounds that
    some columns lack are not used: how many of the chosen ones have them depends on the choice, too. One row of each
    person is left, so that the fit is one of rows.
    """
    public = replace(public, persons=None, rows_per_person=None)
    if public.partly_bounded:
        public = replace(public, low=None, high=None)
    indicators = binary(public)
    mixed = bool(indicators.any() and not indicators.all())
    columns = np.arange(count) if chosen is None else chosen
    low = None if public.low is None else public.low[columns]
    high = None if public.high is None else public.high[columns]
    narrowed = True if mixed else public.narrows_indicators
    return replace(public, columns=count, low=low, high=high, narrows_indicators=narrowed)


def _solver_of_fit(
    name: str, scale_share: float | None, problem: Problem, public: Public, rest: Budget
) -> Solver[Any, Any]:
    from discreet.solvers.run import make_solver

    found = make_solver(name, problem, public, rest).name
    kind: Any = SOLVERS["gd" if found == Screened.name else found]
    fit: Solver[Any, Any] = kind(scale_share=scale_share)
    return fit


def _scaling_of_all(scaling: ColumnScaling, chosen: IntArray, columns: int) -> ColumnScaling:
    """The scaling of the chosen columns in its place among all; the others are frozen."""

    def spread(part: Any, other: float) -> FloatArray:
        whole = np.full(columns, other)
        whole[chosen] = part
        return whole

    others = {"low": 0.0, "high": 0.0, "shift": 0.0, "scale": 1.0, "second_moment": 1.0}
    parts: dict[str, Any] = {name: spread(getattr(scaling, name), other) for name, other in others.items()}
    return replace(scaling, **parts, frozen=spread(scaling.frozen, 1.0) > 0.0)
