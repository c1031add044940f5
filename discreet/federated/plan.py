"""What is decided before the first round: the plan of a federated run, made from public facts alone, and told in words.

Theorems and proofs of the guarantees that it states: docs/guarantees/federated.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet._common.blocks import Facts, Groups, Shown, Text
from discreet._common.checks import LARGEST, number_in, one_of, whole
from discreet._common.digest import digest_of
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.mechanisms import Gaussian, Sensitivity, clipped_sum
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.problem import Problem


def protected_count(clients: int, unit: str, public: Public) -> int:
    """How many clients, or rows of all clients, there are, about."""
    return clients if unit == "client" else clients * public.rows


def less_delta(budget: Budget, lost: float) -> Budget:
    """The budget without a small part of its delta; other kinds of budget have none to spare."""
    if budget.kind != "approximate":
        raise ValueError("the central model needs a budget in epsilon and delta; use Budget(epsilon, delta).")
    assert budget.delta is not None
    if budget.delta <= 2.0 * lost:
        raise ValueError(f"delta must be above {2.0 * lost:.2g} in the central model; got {budget.delta:g}.")
    return Budget(budget.epsilon, budget.delta - lost)


def check_problem(problem: Problem, public: Public) -> None:
    """Refuse a problem that federated runs cannot solve, from public facts."""
    loss = problem.loss
    if loss.outputs > 1:
        raise ValueError("federated runs need a loss with one margin: for several classes, train one model each.")
    for form in ("slope", "curvature"):
        if form not in loss.forms:
            raise ValueError(f"the compiled loop of federated runs does not know the {form} of the {loss.name} loss.")
    if not public.bounded or (not loss.classification and not public.target_bounded):
        missing = "y_bounds" if public.bounded else "bounds"
        raise ValueError(f"federated runs need {missing}=(low, high): nobody sees the rows of all clients.")
    if public.relation is Relation.ADD_REMOVE:
        raise ValueError("federated runs protect against relation replace or zero_out: who the clients are is public.")
    if public.sparse:
        raise ValueError("federated runs need dense columns.")


Unit = Literal["client", "record"]
Model = Literal["local", "central"]
Sampling = Literal["cohorts", "uniform"]
UNITS: tuple[Unit, ...] = ("client", "record")
MODELS: tuple[Model, ...] = ("local", "central")
SAMPLINGS: tuple[Sampling, ...] = ("cohorts", "uniform")

DEVIATIONS = 12.0  # beyond its mean length, by which the noise of a message exceeds `bound` less than once in 10^31
LARGEST_CONDITION = 1_000.0  # of a proximal step that must reach its tolerance: local_problem.py then always does
LARGEST_WEIGHT = 1e12  # of a scaled column; a server that sends more is refused


@dataclass(frozen=True, eq=False)
class FederatedPlan(Shown):
    """Everything that is decided before the first round, the same for the server and for every client.

    Made by `plan_federated`. The model minimises (1/N) sum over clients of the mean loss of their rows + penalty.

    Guarantee: `guarantee` holds for a run of this plan by `Server` and `Client`, for every client that follows the
    plan: in the local model whatever the server and the others do, in the central model with a server that is trusted
    and all clients of its cohort but `dropouts` of them following the plan. Its epsilon covers all rounds.

    Attributes
    ----------
    problem : Problem
        Loss, penalty, constraint and intercept.
    public : Public
        Columns, their bounds, the bounds of the target and the relation; `rows` is the number of rows that every
        client is taken to have at least: the losses of a client with fewer are divided by this number all the same.
    clients : int
        How many clients there are.
    per_round : int
        How many are asked in a round: at least so many (cohorts), or at most (uniform).
    rounds : int
        How many rounds there are at most.
    participations : int
        How often a client answers at most.
    unit : {"client", "record"}
        What is protected: all rows of a client together, or each of them.
    model : {"local", "central"}
        Whom it is protected from within the budget: the server too, or those who see only the models.
    budget : Budget
        What may be spent in all rounds together.
    dropouts : int
        How many clients of one cohort may miss one of its rounds; a central run does not use a round with more.
    gamma : float
        Length of the proximal steps.
    relaxation : float
        How far a dual variable moves, in (0, 1/2]; 1/2 is the plain method of multipliers.
    clip : float
        The largest norm of a client's gradient (unit "client") or of a row's gradient (unit "record").
    tolerance : float
        How exactly a proximal step is solved.
    multiplier : float
        Standard deviation of the noise of a message over its sensitivity; 0 without privacy.
    sampling : {"cohorts", "uniform"}
        Who is asked: cohorts that are drawn once, in turn; or those asked least often, at random among equals.
    run : str
        Name of the run. Another run needs another name: clients count their replies by it.
    """

    problem: Problem
    public: Public
    clients: int
    per_round: int
    rounds: int
    participations: int
    unit: Unit
    model: Model
    budget: Budget
    dropouts: int
    gamma: float
    relaxation: float
    clip: float
    tolerance: float
    multiplier: float
    sampling: Sampling = "cohorts"
    run: str = "run"

    def __post_init__(self) -> None:
        for name in ("clients", "per_round", "rounds", "participations"):
            whole(name, getattr(self, name), least=1)
        whole("dropouts", self.dropouts, least=0)
        one_of("unit", self.unit, UNITS)
        one_of("model", self.model, MODELS)
        one_of("sampling", self.sampling, SAMPLINGS)
        if self.per_round > self.clients:
            raise ValueError(f"per_round must be at most the number of clients; got {self.per_round!r}.")
        if self.dropouts >= self.smallest_cohort:
            least = f"{self.smallest_cohort}, the clients that are asked together"
            raise ValueError(f"dropouts must be below {least}; got {self.dropouts!r}.")
        for name in ("gamma", "clip", "tolerance"):
            number_in(name, getattr(self, name), 0.0, above=True)
        number_in("relaxation", self.relaxation, 0.0, 0.5, above=True)
        number_in("multiplier", self.multiplier, 0.0, LARGEST)
        check_problem(self.problem, self.public)
        most = LARGEST_CONDITION / (self.problem.loss.smoothness * self.dimension)
        if self.unit == "record" and self.gamma > most:
            raise ValueError(f"gamma must be at most {most:.3g} for unit 'record' here; got {self.gamma:g}.")
        if not self.budget.is_infinite and not self._fits():
            raise ValueError("the noise of this plan is too little for its budget.")

    @property
    def relation(self) -> Relation:
        """Which clients, or rows of a client, count as neighbours."""
        return self.public.relation

    @property
    def dimension(self) -> int:
        """How many numbers the model and every message have: the columns, and the intercept last."""
        return self.public.columns + self.problem.fit_intercept

    @property
    def is_noisy(self) -> bool:
        """Whether the clients add noise: whether the budget is finite."""
        return not self.budget.is_infinite

    @property
    def counts_others(self) -> int:
        """How many clients' noise a release in the central model is sure to contain; 1: only the protected client's.

        The noise of a cohort is counted if its clients are always asked together, and keep exact dual variables.
        """
        together = self.sampling == "cohorts" or self.per_round == self.clients
        return self.smallest_cohort - self.dropouts if self.unit == "client" and together else 1

    @property
    def watches_dropouts(self) -> bool:
        """Whether a round is not used that more clients of the cohort have missed than planned."""
        return self.model == "central" and self.counts_others > 1

    @property
    def cohorts(self) -> int:
        """In how many cohorts the clients are asked; 1: all of them are one."""
        return self.clients // self.per_round if self.sampling == "cohorts" else 1

    @property
    def smallest_cohort(self) -> int:
        """How many clients the smallest cohort has; no other has more than one more."""
        return self.clients // self.cohorts

    @property
    def cohort_rounds(self) -> int:
        """In how many rounds one cohort, and so each of its clients, is asked at most."""
        return min(self.participations, math.ceil(self.rounds / self.cohorts))

    @cached_property
    def scaling(self) -> ColumnScaling:
        """The map of the columns to [-1, 1], and of a regression target, from the declared bounds."""
        from discreet.scaling.learn import declared_scaling
        from discreet.scaling.plan import ScalingPlan

        intercept, target = self.problem.fit_intercept, not self.problem.loss.classification
        scaling = declared_scaling(ScalingPlan("declared", None, None, None, None, intercept, target), self.public)
        return scaling.uniform() if self.problem.common_scale else scaling

    @property
    def mechanism(self) -> Gaussian:
        """The noise of a client's messages."""
        return Gaussian(self.multiplier, self.participations)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far a message can move with what is protected, before it is rounded."""
        moved = clipped_sum(self.relation, self.dimension) * self.clip
        if self.unit == "client":
            return moved
        moved, inexact = moved * (1.0 / self.public.rows), 2.0 * self.tolerance
        return Sensitivity(moved.l2 + inexact, moved.l1 + inexact * math.sqrt(self.dimension))

    @cached_property
    def grid(self) -> NoisyGrid:
        """Where messages lie, and their noise."""
        # Gradients are rounded to multiples of `counts_others` steps: see the proof for the central model.
        return self.mechanism.grid(self.sensitivity, self.dimension, loose=self.counts_others + 1.0)

    def on_grid(self, gradient: FloatArray) -> FloatArray:
        """A gradient, rounded to those points of the grid from which sums over clients can be released."""
        step = self.counts_others * self.grid.step
        return gradient if step == 0.0 else np.rint(gradient / step) * step

    @cached_property
    def bound(self) -> float:
        """The largest norm of a message: more is cut off by the client, and again by the server."""
        return self.clip + self.grid.scale * (math.sqrt(self.dimension) + DEVIATIONS)

    def within_bound(self, message: FloatArray) -> FloatArray:
        """A message, shortened to the bound if it is longer; what was shortened once is left as it is."""
        if np.abs(message).max() > self.bound:  # squares of larger numbers could overflow
            message = np.clip(message, -self.bound, self.bound)
        length = float(np.linalg.norm(message))
        return message if length <= self.bound else message * (self.bound / length * (1.0 - 2.0**-40))

    def event(self, model: Model, unit: Unit) -> Any:
        """What a run costs in one of the four readings, as the accountant reads it."""
        if self.multiplier == 0.0:
            return accounting.non_private_event()
        ratio = self.multiplier if unit == self.unit else self.grid.scale / self._moved_by_other_unit()
        if model == "central" and self.counts_others > 1:
            return accounting.gaussian_event(ratio * math.sqrt(self.counts_others), self.cohort_rounds)
        return accounting.gaussian_event(ratio, self.participations)

    @cached_property
    def guarantees(self) -> dict[tuple[Model, Unit], Guarantee]:
        """What is promised, by (model, unit), all for the same run; epsilons that differ are at the same delta."""
        return {(model, unit): self._guarantee(model, unit) for model in MODELS for unit in UNITS}

    @property
    def guarantee(self) -> Guarantee:
        """What is promised in the model and for the unit for which the plan was made."""
        return self.guarantees[self.model, self.unit]

    @property
    def claimed_rho(self) -> float:
        """The zCDP cost that lecture slides on private ADMM state for the models alone; it is not certified."""
        scale = self.grid.scale * self.clients
        return 0.0 if scale == 0.0 else 4.0 * self.rounds * (self.clip / scale) ** 2

    @property
    def cut_off(self) -> float:
        """Bound on the probability that the noise of any message of the run exceeds `bound`."""
        return self.clients * self.cohort_rounds * math.exp(-0.5 * DEVIATIONS**2)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the plan; clients and server of a run have the same, and seeded noise is keyed by it."""
        return digest_of("federated plan", *(getattr(self, field.name) for field in fields(self)))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values, with the guarantees that follow from them."""
        from discreet.federated.planning import plan_to_dict

        return plan_to_dict(self)

    @classmethod
    def from_dict(cls, content: Any) -> FederatedPlan:
        """Return the plan that `to_dict` wrote; guarantees are computed anew, not believed.

        Raises
        ------
        ValueError
            Something is missing or damaged, or the noise does not keep the budget.
        """
        from discreet.federated.planning import plan_from_dict

        return plan_from_dict(content)

    def warnings(self, weights: FloatArray | None = None) -> list[str]:
        """Say what a person should know before the run, from public facts alone, or of the weights that it released."""
        if not self.is_noisy:
            return []
        from discreet.solvers._shared import noisy_scores

        noise = self.grid.scale / (self.clip * math.sqrt(self.clients * self.participations))
        spread, columns = noisy_scores.largest_spread(self.problem), self.public.columns
        least = noisy_scores.SHRUNK * noisy_scores.LEAST_SPREAD  # few rounds from 0 leave scores short
        scores = noisy_scores.Scores(spread, noisy_scores.noise_of_scores(self.problem, noise, columns), least)
        before = noisy_scores.outweighed(self.problem, scores, columns, "client", ["fewer columns"])
        if weights is None or before:
            return [before] if before else []
        size = np.sqrt(self.scaling.second_moment) / self.scaling.target_scale
        released = scores._replace(spread=noisy_scores.spread_of(weights[:columns] * size, self.problem))
        after = noisy_scores.doubtful(released, "client", ["fewer columns"])
        return [after] if after else []

    def _blocks(self) -> Groups:
        """The whole plan, for people."""
        notes = [[Facts((("note", note),))] for note in [*_notes(self), *self.warnings()]]
        return [[Facts(tuple(_facts(self).items()))], [Text(line) for line in _promises(self)], *notes]

    def _moved_by_other_unit(self) -> float:
        """How far a message moves with a client where rows are protected, or with a row where clients are.

        A mean of clipped gradients moves no further than one of them. A row that stops counting turns a client's
        gradient into any other one within the clip: as far as if the client were replaced.
        """
        relation = self.relation if self.unit == "record" else Relation.REPLACE
        moved = clipped_sum(relation, self.dimension) * self.clip
        return moved.rounded((self.counts_others + 1.0) * self.grid.step, self.dimension).l2

    def _guarantee(self, model: Model, unit: Unit) -> Guarantee:
        event, count = self.event(model, unit), protected_count(self.clients, self.unit, self.public)
        if (model, unit) == (self.model, self.unit) or self.multiplier == 0.0:
            return guarantee_for(event, self.budget, self.relation, count)
        delta = self.budget.delta or 1.0 / max(2, count) ** 2
        lost = self.cut_off if model == "central" and self.counts_others > 1 else 0.0
        epsilon = accounting.epsilon_of(event, delta - lost, self.relation)
        return Guarantee(epsilon, delta, self.relation, event)

    def _fits(self) -> bool:
        """Whether the noise keeps the budget."""
        budget, event = self.budget, self.event(self.model, self.unit)
        if self.model == "central" and self.counts_others > 1:
            budget = less_delta(budget, self.cut_off)
        return self.multiplier > 0.0 and accounting.fits(event, budget, self.relation)


PROTECTED = {
    ("client", Relation.REPLACE): "all rows of a client, replaced by any others",
    ("client", Relation.ZERO_OUT): "all rows of a client, which may stop counting",
    ("record", Relation.REPLACE): "each row of a client, replaced by any other",
    ("record", Relation.ZERO_OUT): "each row of a client, which may stop counting",
}
FROM = {
    "local": "everybody, the server included: the clients add noise that is enough for each of them alone",
    "central": "those who see the models: the server is trusted with the messages, whose noise adds up",
}
SEEN_BY = {"local": "local: what the server sees", "central": "central: what the models tell"}
ABOUT = {"client": "about a whole client", "record": "about one row of a client"}


def _facts(plan: FederatedPlan) -> dict[str, str]:
    problem, public = plan.problem, plan.public
    told = {
        "method": f"consensus ADMM, {problem.loss.name} loss, {problem.penalty.name} penalty",
        "clients": _asked(plan),
        "answers": f"at most {plan.participations:,} by each client; a client counts them itself",
        "columns": f"{public.columns:,}, scaled by declared bounds; nothing is learned about them",
        "protected": PROTECTED[plan.unit, plan.relation],
        "protected from": FROM[plan.model],
        "budget": f"{str(plan.budget).strip('()')}, for all rounds together",
        "clipping": f"gradient of a {'client' if plan.unit == 'client' else 'row'} to norm {plan.clip:.4g}",
        "noise": f"standard deviation {plan.grid.scale:.4g} in each of the {plan.dimension:,} numbers of a message",
        "proximal steps": f"gamma {plan.gamma:.4g}, relaxation {plan.relaxation:g}, tolerance {plan.tolerance:.2g}",
    }
    if plan.unit == "record":
        told["rows"] = f"at least {public.rows:,} for each client, a public number"
    if plan.watches_dropouts:
        of = " of a cohort" if plan.cohorts > 1 else ""
        told["dropouts"] = (
            f"at most {plan.dropouts:,} clients{of} in a round; a round that more have missed is not used"
        )
    return told


def _asked(plan: FederatedPlan) -> str:
    if plan.cohorts == 1:
        asked = plan.per_round if plan.sampling == "uniform" else plan.clients
        return f"{plan.clients:,}, of which {asked:,} are asked in each of {plan.rounds:,} rounds"
    return (
        f"{plan.clients:,} in {plan.cohorts:,} cohorts of {plan.smallest_cohort:,} or more, drawn once at random; one "
        f"cohort is asked in each of {plan.rounds:,} rounds, in turn"
    )


def _promises(plan: FederatedPlan) -> list[str]:
    lines = ["what is promised, before the first round and for all of them:"]
    for (model, unit), promise in plan.guarantees.items():
        cost = f"epsilon = {promise.epsilon:.4g}, delta = {promise.delta:.3g}" if promise.is_private else "nothing"
        mark = "   <- the budget" if (model, unit) == (plan.model, plan.unit) else ""
        lines.append(f"  {SEEN_BY[model]:<34}{ABOUT[unit]:<26}{cost}{mark}")
    return lines


def _notes(plan: FederatedPlan) -> list[str]:
    if not plan.is_noisy:
        return ["epsilon is infinite: there is no noise and no privacy."]
    notes = []
    if plan.model == "central" and plan.counts_others == 1:
        notes.append(
            "what the models tell is bounded by what the server sees: a smaller bound is proved only where the same "
            "clients are always asked together, less those that may drop out, and whole clients are protected."
        )
    if plan.model == "local" and plan.counts_others > 1:
        notes.append(
            f"what the models tell is so little as long as at most {plan.dropouts:,} clients"
            f"{' of a cohort' if plan.cohorts > 1 else ''} miss a round; with model 'central' the server would not use "
            "a round that more have missed."
        )
    if plan.unit == "client":
        notes.append(
            f"lecture slides on this method claim a cost of rho = {plan.claimed_rho:.3g} for what the models tell; "
            "that is not certified, and wrong in general (docs/guarantees/federated.md)."
        )
    return notes
