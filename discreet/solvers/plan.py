"""What is decided before the first row is read: the plan of a run, the settings of its solver, their description."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet._common.blocks import Block, Facts, Groups, Shown, Table, numbers_of
from discreet._common.codec import written
from discreet._common.digest import digest_of
from discreet._common.text import facts
from discreet.data.public import MOST_ROWS
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.mechanisms.additive import Mechanism
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, with_shares
from discreet.scaling.plan import ScalingPlan, scaling_releases

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicModel
    from discreet.privacy.budget import Budget
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem
    from discreet.solvers.base import Solver
    from discreet.solvers.theory.plan_theory import PlanTheory
    from discreet.theory.bound import Bound
    from discreet.theory.distance import DistanceLaw

# The size that a good linear predictor has: a log-odds of 2 is a probability of 0.88, and no predictor explains more
# than the target's whole variance.
LABEL_MARGIN, TARGET_MARGIN = 2.0, 1.0
# What the noise of a release is measured in, in the words of a plan.
SCORES_BY_LABEL = "counts of scores by label"
OF_THE_THRESHOLD = "of the clipping threshold"
SQUARED_LENGTH = "of the squared length limit"
COEFFICIENT = "per scaled coefficient"
SQUARED_RANGE = "of a column's squared half-width"
SCALING_WORDS = {
    "declared": "declared bounds; nothing is learned about them",
    "moments": "declared bounds; centres and widths are learned privately",
    "narrowed": "declared bounds; ends of the bulk, centres and widths inside them are learned privately",
    "factor": "declared bounds, too little data for more: one factor by which they are too wide is learned privately",
    "columns": "radius, centre and width of every column are learned privately",
    "soft": "declared bounds where there are any; the others' centres and widths by fitting templates to counts",
    "common": "too little data for scales per column: one common radius is learned privately",
    "public": "ranges, centres and widths of the columns are those of a public table",
    "none": "columns as they are",
    "target": "columns as they are; range and mean of the target are learned privately",
}
UNIT_WORDS = {
    Relation.REPLACE: "a person, with all rows, replaced by any other one (relation replace)",
    Relation.ZERO_OUT: "a person, all of whose rows become empty (relation zero_out)",
    Relation.ADD_REMOVE: "a person added or removed with all rows (relation add_remove)",
}
RELATION_WORDS = {
    Relation.REPLACE: "a row replaced by any other one (relation replace)",
    Relation.ZERO_OUT: "a row replaced by an empty one (relation zero_out)",
    Relation.ADD_REMOVE: "a row added or removed (relation add_remove)",
}
REASON = "chosen because"
HEADER = ("what is spent on what", "times", "share", "noise / sensitivity", "standard deviation of the noise")


@dataclass(frozen=True)
class Settings:
    """What a solver fixes beside its noise: a frozen dataclass of numbers, words and flags for each solver."""

    @property
    def is_constant(self) -> bool:
        """Whether the whole budget goes into a constant prediction, because the rows are too few for more."""
        return False

    @property
    def passes_over_rows(self) -> int | None:
        """How often the steps read all rows where these are stored; None: once for each release."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values: what is None is left out, an infinite number is written as "inf"."""
        return {name: value for name, value in written(self).items() if value is not None}


M = TypeVar("M", bound=Mechanism)
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, eq=False)
class Plan(Shown, Generic[M, S]):
    """Everything that is decided before the first row is read.

    Attributes
    ----------
    solver : Solver
        The solver that made the plan and will run it.
    problem : Problem
        The loss, the penalty and the constraint.
    public : Public
        What is known about the table without reading its rows.
    budget : Budget
        The privacy budget of the whole run.
    scaling_plan : ScalingPlan
        Which scales of the columns will be learned, and by which mechanisms.
    mechanism : Mechanism
        What draws the noise of the solver and states its cost.
    settings : Settings
        Steps, batches and whatever else the solver fixed from public facts.
    chosen_because : str
        Why "auto" took this solver; empty where the caller named it.
    """

    solver: Solver[M, S]
    problem: Problem
    public: Public
    budget: Budget
    scaling_plan: ScalingPlan
    mechanism: M
    settings: S
    chosen_because: str = ""

    @cached_property
    def event(self) -> Any:
        """What the run will do to privacy, in the vocabulary of dp-accounting."""
        if self.budget.is_infinite:
            return accounting.non_private_event()
        return self.solver._event(self)

    @property
    def is_noisy(self) -> bool:
        """Whether noise is added: whether the budget is finite."""
        return not self.budget.is_infinite

    @property
    def rows_per_person(self) -> int:
        """The most rows of a person that are used, which are drawn at random; 1 where each row is a person."""
        if self.public.unit == "row":
            return 1
        return self.public.rows_per_person or (MOST_ROWS if self.solver.capabilities.persons else 1)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the run will promise, with its exact cost."""
        public = self.public
        rows, leaks, inputs = public.rows, public.leaks, public.inputs
        return guarantee_for(self.event, self.budget, public.relation, rows, leaks, inputs, public.unit)

    @property
    def has_public_start(self) -> bool:
        """Whether the solver begins at public coefficients, unless the rows tell that these are worse than none."""
        return self.solver.capabilities.start and self.public.has_start

    @cached_property
    def start(self) -> PublicModel | None:
        """The public coefficients at which the solver begins: as given, or fitted on the public table; else None."""
        if not self.has_public_start or self.public.start is not None:
            return self.public.start
        from discreet.solvers._shared.minimisers import fitted_start

        return fitted_start(self.problem, self.public)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything that decides what a run does to the rows; seeded noise is keyed by it.

        Left out are where the rows are stored, since a file and memory give the same model, and what was read from the
        rows outside the guarantee.
        """
        public = replace(self.public, stored=False, leaks=(), neutral=None)
        parts = (self.solver, self.problem, public, self.budget, self.scaling_plan, self.mechanism, self.settings)
        return digest_of("plan", *parts)

    @cached_property
    def releases(self) -> list[PlannedRelease]:
        """What will be told about the rows, in order, each with its noise and its share; empty without noise."""
        if self.budget.is_infinite:
            return []
        first = self.solver.capabilities.scales_first
        scales = scaling_releases(self.scaling_plan, self.public) if first else []
        return with_shares(scales + self.solver._releases(self), self.budget)

    @cached_property
    def standard_error(self) -> float | None:
        """The noise of a coefficient of a scaled column, predicted from public facts; None where it cannot be.

        In standard deviations of the target for regressions. docs/plans.md says how.
        """
        if self.budget.is_infinite or self.problem.loss.outputs > 1 or self.scaling_plan.method == "none":
            return None
        from discreet.solvers.run import standard_error_of

        return standard_error_of(self.solver, self)

    def warnings(self) -> list[str]:
        """Say what a person should know before the budget is spent; from public facts alone."""
        if self.budget.is_infinite:
            return []
        if self.settings.is_constant:
            return [self._warn_of_constant()]
        from discreet.solvers._shared.noisy_scores import warn_before

        told = [*self.scaling_plan.warnings(self.public), *self.solver._warnings(self), warn_before(self)]
        return [warning for warning in told if warning]

    def _warn_of_constant(self) -> str:
        what = "the shares of the labels" if self.problem.loss.classification else "the mean of the target"
        return (
            f"{self.public.rows} {self.public.unit}s are too few at this budget to learn privately what the columns "
            f"tell, so all of it goes into {what}, and the model predicts the same for every row; use more "
            f"{self.public.unit}s or a larger epsilon."
        )

    def weaknesses(self, rows_are_known: bool = True) -> list[str]:
        """Say why the promise itself protects little: epsilon > 10, or delta > 1/rows; from public facts alone."""
        return self.guarantee.weaknesses(self.public.rows if rows_are_known else None)

    def theory(self, radius: float = 1.0) -> PlanTheory:
        """Return where the plan stands between lower and upper bounds of the literature; from public facts alone.

        Parameters
        ----------
        radius : float, default=1.0
            An assumed bound on the norm of the optimum in the solver's (scaled) columns. Where the penalty gives a
            smaller one, that is used.
        """
        from discreet.solvers.theory.plan_theory import theory_of

        return theory_of(self, radius)

    def error_bound(self, radius: float) -> Bound | None:
        """Return the bound of the literature on the error of the planned run; None where no theorem covers it.

        `radius` is an assumed bound on the norm of the optimum in the scaled columns.
        """
        from discreet.solvers.theory import bound_of

        return bound_of(self.solver, self, radius) if self.is_noisy else None

    def distance_law(self, scaling: ColumnScaling) -> DistanceLaw:
        """Return how far the run can be from its noise-free limit, in the scaled columns (the intercept last).

        From the plan and the released scales alone. A ValueError where no theorem covers the plan.
        """
        from discreet.solvers.theory import distance_of

        return distance_of(self.solver, self, scaling)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "solver": self.solver.name,
            "chosen_because": self.chosen_because,
            "needs_all_rows": not self.solver.capabilities.stored,
            "public": self.public.to_dict(),
            "budget": self.budget.to_dict(),
            "scaling": self.scaling_plan.to_dict(),
            "settings": self.settings.to_dict(),
            "rows_per_person": self.rows_per_person,
            "releases": [release.to_dict() for release in self.releases],
            "standard_error": self.standard_error,
            "warnings": self.weaknesses() + self.warnings(),
            "event": accounting.event_to_dict(self.event),
        }

    def _blocks(self) -> Groups:
        """The whole plan, for people."""
        spending: list[list[Block]] = []
        if self.is_noisy:
            releases = Table("", HEADER, tuple(spending_of(self)), numbers_of(HEADER, words=(0, 4)))
            spending = [[releases], [Facts((("share", describe_shares(self)),))]]
        warned = [[Facts((("warning", text),))] for text in self.weaknesses() + self.warnings()]
        error = Facts((("standard error", describe_error(self)),))
        return [[Facts(tuple(facts_of(self).items()))], *spending, [error], *warned]


def describe_theory(theory: PlanTheory) -> str:
    """Lower and upper bound of a plan, for people."""
    known = "assumed" if theory.radius_is_assumed else "by the penalty"
    lines = [("norm of optimum", f"at most {theory.radius:.4g} in scaled columns ({known})")]
    for name, bound in (("lower bound", theory.lower), ("upper bound", theory.upper)):
        if bound is not None:
            lines.append((name, f"{bound}{', proved' if bound.proved else ''}"))
            lines += [("  assumes", told) for told in bound.assumptions]
    if theory.ratio is not None:
        told = f"the upper bound is {theory.ratio:.3g} times the order of the lower one, whose constant is not known"
        lines.append(("between them", told))
    return facts([*lines, *(("not known", reason) for reason in theory.reasons)])


def describe_scaling(method: str, private: bool) -> str:
    """How the scales of the columns are found; with an infinite epsilon nothing is learned privately."""
    return SCALING_WORDS[method] if private else SCALING_WORDS[method].replace("privately", "without noise")


def facts_of(plan: Plan) -> dict[str, str]:
    """What was decided, by name: solver, table, relation, budget, scales and settings."""
    public = plan.public
    told = {
        "solver": plan.solver.name,
        **({REASON: plan.chosen_because} if plan.chosen_because else {}),
        "table": f"{public.rows:,} {public.unit}s, {public.columns:,} columns",
        "protected": (UNIT_WORDS if public.persons else RELATION_WORDS)[public.relation],
        "rows in memory": _describe_memory(plan),
        "budget": str(plan.budget).strip("()"),
        "scales": describe_scaling(plan.scaling_plan.method, plan.is_noisy),
    }
    if public.stored:
        told["passes over rows"] = _describe_passes(plan)
    if public.persons:
        told["rows of a person"] = _rows_used(plan)
    if public.neutral:
        told["unreadable rows"] = "count as empty ones, which add nothing"
    if public.partly_bounded:
        others = "not used by this solver" if plan.solver.name == "screened" else "open sides of the others are learned"
        told["declared bounds"] = f"of {int(public.declared.sum()):,} columns; {others}"
    if plan.has_public_start:
        told["start"] = "public coefficients" if public.start is not None else "fitted on the public table"
    if public.inputs:
        told["taken as public"] = "; ".join(public.inputs)
    return told | {name.replace("_", " "): _value(value) for name, value in plan.settings.to_dict().items()}


def _describe_memory(plan: Plan) -> str:
    takes = plan.solver.capabilities
    held = not takes.stored or (takes.copied and not plan.public.stored)
    return "all at once" if held else "block by block"


def _describe_passes(plan: Plan) -> str:
    passes = plan.settings.passes_over_rows
    return f"{passes:,} by the steps, and some for checks and scales" if passes else "one a release, and one for checks"


def _rows_used(plan: Plan) -> str:
    if plan.rows_per_person > 1:
        return f"up to {plan.rows_per_person:,}, drawn at random; their gradients are averaged, then clipped"
    return "one, drawn at random" + ("" if plan.solver.capabilities.persons else " (newton, adaptive and gd use more)")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def spending_of(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """The lines below `HEADER`, one for each kind of release; none if nothing is noisy."""
    return [_row(what, list(group)) for what, group in groupby(plan.releases, key=lambda release: release.what)]


def describe_shares(plan: Plan) -> str:
    """What the shares are parts of."""
    if plan.budget.kind == "pure":
        return "part of epsilon"
    gaussian = "part of mu^2, mu being the parameter of the Gaussian differential privacy that the budget allows"
    if all(release.kind == "Gaussian" for release in plan.releases):
        return gaussian
    return f"{gaussian}; releases whose noise is not Gaussian take what the others leave"


def _row(what: str, releases: list[PlannedRelease]) -> tuple[str, str, str, str, str]:
    """Releases of one kind on one line; their noise may differ from step to step."""
    times, share = sum(release.times for release in releases), sum(release.share for release in releases)
    ratio = _range(release.noise_over_sensitivity for release in releases)
    return (what, f"{times:,}", f"{share:.1%}", ratio, _noise(releases))


def _noise(releases: list[PlannedRelease]) -> str:
    first = releases[0]
    words = []
    if first.deviation is not None:
        words.append(f"{_range(r.deviation for r in releases if r.deviation is not None)} {first.unit}")
    elif first.epsilon is not None:
        words.append(f"each costs epsilon = {first.epsilon:.3g}")
    if first.sample_rate is not None:
        words.append(f"{first.sample_rate:.2g} of the rows at a time")
    return "; ".join(words)


def _range(numbers: Iterable[float]) -> str:
    """One number, or the first and the last where they differ."""
    found = [f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}" for number in numbers]
    return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def describe_error(plan: Plan) -> str:
    """The noise that is expected in a coefficient."""
    if not plan.is_noisy:
        return "0 from noise: epsilon is infinite"
    if plan.standard_error is None:
        return "not predicted for this solver"
    loss = plan.problem.loss
    unit = "" if loss.classification else " standard deviations of the target"
    unit += ", over its mean," if loss.log_link else ""
    return f"about {plan.standard_error:.2g}{unit} in the coefficient of a scaled column, from the noise alone"
