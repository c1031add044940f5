"""What is decided before any holder reads a row: whose turn it is to send what, how often, and with how much noise.

Each message has a share of its holder's budget. In words, the plan is for the people at the holders who decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

from discreet._common.digest import digest_of
from discreet._common.text import paragraph
from discreet.data.public import Public
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.privacy.relation import Relation, relation_from
from discreet.privacy.release import ReleasePlan
from discreet.problem.losses import Squared
from discreet.problem.problem import Problem
from discreet.scaling.plan import ScalingPlan, plan_scaling
from discreet.solvers.base import calibrated

Kind = Literal["scales", "moments", "weights", "slopes", "margins"]

# How the budget beside the scales is divided, flat around these values: docs/vertical.md.
MOMENTS_SHARE, WEIGHTS_SHARE = 0.1, 0.3
OWN_STEPS = 4  # of the label holder on its own block before the first exchange, where its loss is not quadratic
NOISY_SWEEPS, MOST_SWEEPS = 0.02, 4  # sweeps are added while their noise explains less than this part of the target
SLOPE_CLIP = 2.0  # in standard deviations of the target, for losses with unbounded slopes


@dataclass(frozen=True)
class Turn:
    """One message of the schedule: who sends what, in which sweep (0: before the first exchange)."""

    holder: str
    kind: Kind
    sweep: int


def schedule_of(others: list[str], labels: str, sweeps: int, steps: int) -> list[Turn]:
    """All turns of a run, in their order."""
    turns = [Turn(name, kind, 0) for kind in ("scales", "moments") for name in [*others, labels]]
    turns += [Turn(labels, "weights", 0)] * steps
    for sweep in range(1, sweeps + 1):
        turns.append(Turn(labels, "slopes", sweep))
        turns += [Turn(name, kind, sweep) for name in others for kind in ("weights", "margins")]
        turns.append(Turn(labels, "weights", sweep))
    return turns


def shares_of(has_labels: bool, sweeps: int, steps: int) -> tuple[float, ...]:
    """The shares of a holder's messages after its scales, in their order."""
    per_person = (1.0 - MOMENTS_SHARE - WEIGHTS_SHARE) / sweeps
    if not has_labels:
        return (MOMENTS_SHARE, *(WEIGHTS_SHARE / sweeps, per_person) * sweeps)
    weights = WEIGHTS_SHARE / (steps + sweeps)
    return (MOMENTS_SHARE, *(weights,) * steps, *(per_person, weights) * sweeps)


def default_sweeps(budgets: Sequence[Budget], columns: int, rows: int) -> int:
    """As many sweeps as keep the noise that each adds to the predictions small; from public facts."""
    mu = min(budget.gaussian_mu() for budget in budgets)
    noise = columns * (2.0 * SLOPE_CLIP / mu) ** 2 / rows  # of one sweep, over the variance of the target
    return int(min(max(NOISY_SWEEPS / max(noise, 1e-9), 1.0), MOST_SWEEPS))


def own_steps(problem: Problem) -> int:
    """How many steps the label holder makes on its block alone: one is exact for the squared loss."""
    return 1 if has_linear_slopes(problem) else OWN_STEPS


def has_linear_slopes(problem: Problem) -> bool:
    """Whether slopes are linear in the margins, so that noise in the margins leaves no bias."""
    return isinstance(problem.loss, Squared)


RADIUS = 1.25  # to which rows are shortened, in units of the root of the number of columns
EXACT_SWEEPS = 5_000  # without noise, at most


@dataclass(frozen=True)
class HolderFacts:
    """What is public about one holder.

    Attributes
    ----------
    name : str
    columns : int
        How many columns it has, the target not counted.
    budget : Budget
        What the holder allows to be learned about one person's row of its table, by all others together.
    bounds : (low, high), optional
        Public limits of the columns: numbers, or one per column. Without them ranges are learned privately.
    """

    name: str
    columns: int
    budget: Budget
    bounds: Any = None


def plan_of_holder(
    facts: HolderFacts, first: int, public: Public, scaling: ScalingPlan, mechanism: BudgetSplit, has_labels: bool
) -> ReleasePlan:
    """What all messages of a holder release: first its scales, then one share of the mechanism for each message.

    `first` is the number of its first column among all columns of the model. `radius` is the norm to which scaled rows,
    the intercept's 1 included, are shortened in sums.
    """
    budget = facts.budget
    exact = accounting.non_private_event() if budget.is_infinite else None
    radius = math.inf if budget.is_infinite else RADIUS * math.sqrt(public.columns + has_labels)
    settings = {"name": facts.name, "first": first, "has_labels": has_labels, "radius": radius}
    return ReleasePlan("messages", public, budget, {"scaling_plan": scaling, "mechanism": mechanism}, settings, exact)


@dataclass(frozen=True, eq=False)
class VerticalSchedule:
    """Everything that is decided before the first row is read.

    Attributes
    ----------
    problem : Problem
    holders : tuple of ReleasePlan
        What the messages of each release, made by `plan_of_holder`, in the order of the model's columns; the label
        holder is the last.
    sweeps : int
        How often slopes and margins are exchanged.
    """

    problem: Problem
    holders: tuple[ReleasePlan, ...]
    sweeps: int

    def __post_init__(self) -> None:
        names, publics = [holder.name for holder in self.holders], [holder.public for holder in self.holders]
        if len(set(names)) < len(names) or len({(public.rows, public.relation) for public in publics}) > 1:
            raise ValueError("holders need different names, and the same relation and number of rows.")
        if [holder.has_labels for holder in self.holders] != [False] * (len(names) - 1) + [True]:
            raise ValueError("the last holder of a plan, and no other, has the labels.")
        for holder in self.holders:
            if holder.is_noisy and not accounting.fits(holder.event, holder.budget, holder.public.relation):
                raise ValueError(f"the plan has too little noise for the budget of holder {holder.name!r}.")
            planned = sum(turn.holder == holder.name for turn in self.schedule) - 1  # its scales are paid for elsewhere
            if len(holder.mechanism.shares) != planned:
                paid = len(holder.mechanism.shares)
                raise ValueError(f"holder {holder.name!r} is to send {planned} messages, of which {paid} are paid for.")

    @cached_property
    def schedule(self) -> tuple[Turn, ...]:
        """Whose turn it is to send what."""
        names = [holder.name for holder in self.holders]
        return tuple(schedule_of(names[:-1], names[-1], self.sweeps, own_steps(self.problem)))

    def holder(self, name: str) -> ReleasePlan:
        """Return the part of the plan that concerns this holder."""
        found = [holder for holder in self.holders if holder.name == name]
        if not found:
            raise ValueError(f"the plan knows no holder {name!r}; it has {[holder.name for holder in self.holders]}.")
        return found[0]

    @property
    def rows(self) -> int:
        """The number of people, the same at all holders."""
        return self.holders[0].public.rows

    @property
    def relation(self) -> Relation:
        """Which tables of one holder count as neighbours."""
        return self.holders[0].public.relation

    @property
    def is_noisy(self) -> bool:
        """Whether any holder has a finite budget."""
        return any(holder.is_noisy for holder in self.holders)

    @cached_property
    def total(self) -> Guarantee:
        """What is promised about all that the holders know of one person, against the world."""
        if not all(holder.is_noisy for holder in self.holders):
            return Guarantee(math.inf, 0.0, self.relation, accounting.non_private_event())
        event = accounting.compose([holder.event for holder in self.holders])
        delta = max(holder.guarantee.delta for holder in self.holders)
        return Guarantee(accounting.epsilon_of(event, delta, self.relation), delta, self.relation, event)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything that decides what a run does to the rows; seeded noise is keyed by it."""
        parts = [(h.name, h.public, h.budget, h.scaling_plan, h.mechanism, h.has_labels) for h in self.holders]
        return digest_of("vertical plan", self.problem, parts, self.sweeps)

    def __str__(self) -> str:
        return describe_plan(self)


def plan_vertical(
    problem: Problem,
    holders: Sequence[HolderFacts],
    rows: int,
    *,
    labels: str,
    y_bounds: Any = None,
    relation: str | Relation = Relation.REPLACE,
    sweeps: int | None = None,
    scale_share: float | None = None,
) -> VerticalSchedule:
    """Plan the messages of all holders from public facts.

    Parameters
    ----------
    problem : Problem
        A loss with one output and a finite smoothness, and a separable penalty.
    holders : sequence of HolderFacts
        Two or more, with different names.
    rows : int
        The number of people; row i of every holder is person i.
    labels : str
        The name of the holder that has the target. It comes last in the plan.
    y_bounds : (low, high), optional
        Public limits of a regression target.
    relation : {"replace", "zero_out"}
        Which tables of one holder count as neighbours.
    sweeps : int, optional
        How often slopes and margins are exchanged; by default 1 to 4, the more the less noise there is.
    scale_share : float, optional
        Share of each budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).

    Returns
    -------
    VerticalSchedule

    Examples
    --------
    >>> from discreet import Budget, Problem
    >>> from discreet.problem import Squared
    >>> budget = Budget(epsilon=4.0, delta=1e-8)
    >>> facts = [HolderFacts("bank", 3, budget, (0, 1)), HolderFacts("shop", 5, budget, (0, 1))]
    >>> plan = plan_vertical(Problem(Squared()), facts, 20_000, labels="shop", y_bounds=(0, 1))
    >>> [holder.guarantee.epsilon for holder in plan.holders], round(plan.total.epsilon, 2)
    ([4.0, 4.0], 5.86)
    """
    kind = relation_from(relation)
    _check(problem, holders, labels, kind)
    ordered = [facts for facts in holders if facts.name != labels] + [f for f in holders if f.name == labels]
    target = not problem.loss.classification
    publics = [
        Public.of(rows, facts.columns, relation=kind, bounds=facts.bounds, y_bounds=bounds)
        for facts, bounds in zip(ordered, [None] * (len(ordered) - 1) + [y_bounds], strict=True)
    ]
    budgets = [facts.budget for facts in ordered]
    made = None if sweeps is None else _whole("sweeps", sweeps)
    if all(budget.is_infinite for budget in budgets):
        made = EXACT_SWEEPS
    elif made is None:
        made = default_sweeps(budgets, sum(facts.columns for facts in ordered), rows)
    plans, first = [], 0
    for facts, public in zip(ordered, publics, strict=True):
        has_labels = facts.name == labels
        scaling = plan_scaling(public, facts.budget, scale_share, problem.fit_intercept, target and has_labels)
        shares = shares_of(has_labels, made, own_steps(problem))
        mechanism = calibrated(partial(BudgetSplit, shares=shares), scaling, facts.budget, public)
        plans.append(plan_of_holder(facts, first, public, scaling, mechanism, has_labels))
        first += facts.columns
    return VerticalSchedule(problem, tuple(plans), made)


def _check(problem: Problem, holders: Sequence[HolderFacts], labels: str, relation: Relation) -> None:
    names = [facts.name for facts in holders]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"a vertical split needs two or more holders with different names; got {names}.")
    if labels not in names:
        raise ValueError(f"labels must name the holder that has the target, one of {names}; got {labels!r}.")
    if relation is Relation.ADD_REMOVE:
        raise ValueError(
            'relation="add_remove" cannot be kept: all holders know how many people there are, and in which order; '
            'use "replace" or "zero_out".'
        )
    if problem.loss.log_link or problem.loss.outputs != 1 or not problem.separable:
        raise ValueError(
            "a vertical split needs a loss with one output and no log link, a separable penalty and constraint."
        )
    if any(facts.budget.kind == "pure" and not facts.budget.is_infinite for facts in holders):
        raise ValueError("the noise is Gaussian and never gives pure DP; use budgets with delta > 0.")
    for facts in holders:
        _whole("columns", facts.columns)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise ValueError(f"{name} must be a positive whole number; got {value!r}.")
    return int(value)


WHAT = {
    "moments": "the mean products of its columns with each other",
    "weights": "the gradient of its coefficients",
    "slopes": "one number per person: how the prediction from its own columns, and what is known of the others', "
    "differs from the target",
    "margins": "one number per person: what its columns add to the prediction",
}


def describe_plan(plan: VerticalSchedule) -> str:
    """What each holder will tell the others, with how much noise, and what is promised."""
    lines = [
        f"{len(plan.holders)} holders have different columns of the same {plan.rows:,} people, in the same order; "
        f"{plan.holders[-1].name} has the target. Slopes and margins are exchanged {plan.sweeps} times."
        if plan.is_noisy
        else f"{len(plan.holders)} holders exchange exact numbers about {plan.rows:,} people, without any privacy."
    ]
    for holder in plan.holders:
        lines += ["", *_of_holder(plan, holder)]
    total = plan.total
    lines += ["", "All that the holders know of one person, against whoever sees all messages:"]
    lines.append(
        f"  epsilon = {total.epsilon:.4g} at delta = {total.delta:.3g} ({plan.relation.explanation})."
        if total.is_private
        else "  nothing is promised."
    )
    lines.append("Not covered: that a person is in these tables is known to all holders; rows must come matched.")
    return "\n".join(paragraph(line, rest="    ") for line in lines)


def _of_holder(plan: VerticalSchedule, holder: ReleasePlan) -> list[str]:
    title = f"{holder.name}: {holder.public.columns} columns{' and the target' if holder.has_labels else ''}"
    if not holder.is_noisy:
        return [title, "  sends exact numbers: nothing is promised about its rows."]
    kinds = [turn.kind for turn in plan.schedule if turn.holder == holder.name][1:]
    lines = [title, f"  scales of its columns: {holder.scaling_plan.method}"]
    for kind in dict.fromkeys(kinds):
        part = holder.mechanism.part(kinds.index(kind))
        times = f"{kinds.count(kind)} times" if kinds.count(kind) > 1 else "once"
        lines.append(f"  {times}: {WHAT[kind]}; noise of {part.multiplier:.4g} times what one person can change")
    promise = holder.guarantee
    lines.append(
        f"  promised about one person's row at {holder.name}, against all others together: epsilon = "
        f"{promise.epsilon:.4g}, delta = {promise.delta:.3g}"
    )
    return lines
