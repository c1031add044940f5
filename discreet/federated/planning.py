"""How a federated plan is made: from public facts, by rules that no guarantee rests on, or from JSON values.

As JSON values the server sends it to the clients before the first round.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet._common.checks import positive, whole
from discreet._common.codec import Format, built, by_name, checked, described, from_name, plain, read_json_file
from discreet.data.public import Public
from discreet.federated.plan import LARGEST_CONDITION, FederatedPlan, Model, Sampling, Unit, less_delta, protected_count
from discreet.privacy import accounting
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.mechanisms import Gaussian, clipped_sum
from discreet.privacy.relation import Relation
from discreet.problem import losses, penalties
from discreet.problem.constraints import CONSTRAINTS
from discreet.problem.problem import Problem
from discreet.solvers.plan import LABEL_MARGIN

ROUNDS = 20  # as many as a run over slow lines may take; more of them need more noise in each
TOLERANCE = 5e-4  # of the sensitivity of a message: its price is as much noise more
CLIENT_CLIP = 0.05  # in units of the slope of the loss: most clients' gradients are longer at the start
ALIGNMENT = 0.25  # guessed length of the mean of the clients' gradients, each shortened to length 1
RECORD_CLIP = 0.6  # in units of the slope times the norm of a row whose entries are uniform in [-1, 1]
SPREAD = 0.15  # guessed mean square of a scaled column


def plan_federated(
    problem: Problem,
    columns: int,
    bounds: Any,
    clients: int,
    *,
    epsilon: float | Budget = 1.0,
    delta: float | None = None,
    y_bounds: Any = None,
    rounds: int = ROUNDS,
    per_round: int | None = None,
    participations: int | None = None,
    sampling: Sampling = "cohorts",
    unit: Unit = "client",
    model: Model = "local",
    relation: Relation | str = Relation.REPLACE,
    rows_per_client: int = 1,
    dropouts: int | None = None,
    gamma: float | None = None,
    relaxation: float = 0.5,
    clip: float | None = None,
    tolerance: float | None = None,
    run: str = "run",
) -> FederatedPlan:
    """Plan a federated run from public facts; no row is read.

    Guarantee: the plan returned keeps the budget in its model and for its unit, for all rounds together.

    Parameters
    ----------
    problem : Problem
        Loss, penalty, constraint and intercept.
    columns : int
        Number of columns, the target not counted.
    bounds : (low, high)
        Public limits of the columns.
    clients : int
        How many clients there are.
    epsilon : float or Budget, default=1.0
        The budget for all rounds together; infinite for no privacy.
    delta : float, optional
        One over the square of the number of clients (unit "client") or of rows (unit "record") by default.
    y_bounds : (low, high), optional
        Public limits of a regression target, which needs them.
    rounds : int, default=20
        How many rounds.
    per_round : int, optional
        How many clients are asked in a round, at least; all by default.
    participations : int, optional
        How often one client answers at most: by default as often as it is asked if all are asked equally often.
    sampling : {"cohorts", "uniform"}, default="cohorts"
        Who is asked. "cohorts": the clients are split once, at random, into as many cohorts of at least `per_round`
        clients as there can be, which are asked in turn; in the central model the noise of a cohort adds up. "uniform":
        those asked least often so far, at random among equals; the models then tell no less than the server sees.
    unit : {"client", "record"}, default="client"
        What is protected: all rows of a client together, or each of them.
    model : {"local", "central"}, default="local"
        Whom it is protected from within the budget: the server too ("local"), or those who see only the models.
    relation : {"replace", "zero_out"}, default="replace"
        Whether what is protected is replaced, or stops counting.
    rows_per_client : int, default=1
        For unit "record": how many rows a client has at least, a public number. More rows need less noise.
    dropouts : int, optional
        How many clients of one cohort may miss a round; a central run does not use a round that more have missed. A
        tenth of them by default.
    gamma : float, optional
        Length of the proximal steps; by default chosen for the rounds and the noise.
    relaxation : float, default=0.5
        How far a dual variable moves, in (0, 1/2].
    clip : float, optional
        The largest norm of a client's (unit "client") or of a row's gradient (unit "record").
    tolerance : float, optional
        How exactly proximal steps are solved; for unit "record" it is part of the sensitivity.
    run : str, default="run"
        Name of the run; another run with the same clients needs another one.

    Returns
    -------
    FederatedPlan

    Examples
    --------
    >>> from discreet.federated import plan_federated
    >>> from discreet.problem import L2, Logistic, Problem
    >>> plan = plan_federated(Problem(Logistic(), L2(0.01)), 5, (-1.0, 1.0), clients=100, epsilon=2.0, model="central")
    >>> plan.guarantee.epsilon, plan.guarantee.delta
    (2.0, 0.0001)
    """
    clients = whole("clients", clients, least=1)
    asked = clients if per_round is None else whole("per_round", per_round, least=1)
    rounds = whole("rounds", rounds, least=1)
    cohorts = max(1, clients // asked) if sampling == "cohorts" else 1
    share = 1.0 / cohorts if sampling == "cohorts" else asked / clients
    rows = whole("rows_per_client", rows_per_client, least=1)
    public = Public.of(rows, columns, relation=relation, bounds=bounds, y_bounds=y_bounds)
    budget = budget_from(epsilon, delta, protected_count(clients, unit, public))
    for name, value in {"gamma": gamma, "clip": clip, "tolerance": tolerance}.items():
        positive(name, value)
    # Noise does not depend on the lengths, which may depend on the noise: a plan without noise is only a draft,
    # with a gamma that no loss and no number of columns forbids.
    lengths: dict[str, Any] = {"gamma": 1e-100, "clip": 1.0, "tolerance": 1.0, "multiplier": 0.0}
    settings: dict[str, Any] = {"unit": unit, "model": model, "sampling": sampling, "run": run}
    settings |= {"clients": clients, "per_round": asked, "rounds": rounds, "relaxation": float(relaxation)}
    settings["participations"] = math.ceil(rounds * share) if participations is None else participations
    settings["dropouts"] = clients // cohorts // 10 if dropouts is None else dropouts
    draft = FederatedPlan(problem=problem, public=public, budget=Budget(math.inf, 0.0), **settings, **lengths)
    multiplier = _multiplier(budget, draft)
    clip = _default_clip(draft, multiplier > 0.0) if clip is None else float(clip)
    size = clip if unit == "client" else clip / rows
    if gamma is None:
        noise = Gaussian(multiplier).deviation(clipped_sum(public.relation) * size) * math.sqrt(draft.dimension)
        gamma = _default_gamma(draft, noise, clip)
    tolerance = TOLERANCE * size if tolerance is None else float(tolerance)
    return replace(draft, budget=budget, multiplier=multiplier, gamma=float(gamma), clip=clip, tolerance=tolerance)


def _multiplier(budget: Budget, draft: FederatedPlan) -> float:
    """The least noise, over the sensitivity of a message, that keeps the budget in the model of the plan."""
    relation, others = draft.relation, draft.counts_others
    if draft.model == "local" or others == 1 or budget.is_infinite:
        count = draft.participations
        return accounting.calibrate(lambda z: accounting.gaussian_event(z, count), budget, relation)
    budget, root = less_delta(budget, draft.cut_off), math.sqrt(others)
    return accounting.calibrate(lambda z: accounting.gaussian_event(z * root, draft.cohort_rounds), budget, relation)


def _default_clip(draft: FederatedPlan, private: bool) -> float:
    """In units of the slope of the loss, and for single rows of the length of a row; no clip without privacy."""
    loss = draft.problem.loss
    slope = min(loss.lipschitz, 1.0 if loss.classification else 2.0 * draft.scaling.target_scale)
    if draft.unit == "client":
        return (CLIENT_CLIP if private else math.sqrt(draft.dimension)) * slope
    return RECORD_CLIP * slope * math.sqrt(1.0 + draft.public.columns / 3.0)


def _default_gamma(draft: FederatedPlan, noise: float, clip: float) -> float:
    """How far a round should go, for this length of the noise of one message."""
    loss = draft.problem.loss
    distance = (LABEL_MARGIN if loss.classification else draft.scaling.target_scale) / math.sqrt(SPREAD)
    if draft.unit == "client" and noise > 0.0:
        return _clipped_step(draft, noise / clip, distance) / clip
    best = _smooth_step(draft, noise / math.sqrt(draft.per_round), distance)
    return min(best, 0.99 * LARGEST_CONDITION / (loss.smoothness * draft.dimension))


def _clipped_step(draft: FederatedPlan, noise: float, distance: float) -> float:
    """How far all clients together move the model in one answer each, where most gradients are clipped.

    Steps of length B in directions that agree by `ALIGNMENT` leave of a distance D, after K of them, D - ALIGNMENT K B,
    and bring noise of the squared length K (B noise)^2 / N, in units of the clip. The B with the least sum of squares.
    """
    passes = min(draft.participations, draft.rounds * draft.per_round / draft.clients)
    spread = noise**2 / draft.clients
    return ALIGNMENT * distance / (ALIGNMENT**2 * passes + spread)


def _smooth_step(draft: FederatedPlan, noise: float, distance: float) -> float:
    """The length of the proximal steps where gradients are rarely clipped, for this length of the noise of their mean.

    With curvature h and P = gamma h, a first distance D is D exp(-P K) after K rounds, and the noise in the model is
    noise / h * sqrt(P (1 - exp(-2 P K)) / 2). The P with the least sum of squares is taken.
    """
    curvature = SPREAD * draft.problem.loss.smoothness

    def error(progress: float) -> float:
        kept = math.exp(-2.0 * progress * draft.rounds)
        return distance**2 * kept + (noise / curvature) ** 2 * 0.5 * progress * (1.0 - kept)

    return min((0.003 * 1.3**k for k in range(30)), key=error) / curvature


FORMAT = Format("discreet federated plan", 2, derived=("guarantees",))
LOSSES = {kind.name: kind for kind in (losses.Squared, losses.Logistic, losses.Huber, losses.SmoothedHinge)}
PENALTIES = {kind.name: kind for kind in (penalties.Zero, penalties.L1, penalties.L2, penalties.ElasticNet)}
PARTS: dict[str, dict[str, Any]] = {"loss": LOSSES, "penalty": PENALTIES, "constraint": CONSTRAINTS}
SETTINGS = (
    *("clients", "per_round", "rounds", "participations", "dropouts"),
    *("gamma", "relaxation", "clip", "tolerance", "multiplier"),
    *("unit", "model", "sampling", "run"),
)


def plan_to_dict(plan: FederatedPlan) -> dict[str, Any]:
    """A plan as JSON values; a loss, penalty or constraint of another package is a ValueError."""
    problem, public = plan.problem, plan.public
    parts = {name: getattr(problem, name) for name in PARTS}
    return {
        **FORMAT.head,
        "problem": {
            **{name: None if part is None else by_name(part, PARTS[name], name) for name, part in parts.items()},
            "fit_intercept": problem.fit_intercept,
        },
        "public": {
            "rows": public.rows,
            "columns": public.columns,
            "relation": str(public.relation),
            "bounds": plain([public.low, public.high]),
            "y_bounds": None if public.target_low is None else [public.target_low, public.target_high],
        },
        "budget": plan.budget.to_dict(),
        **{name: getattr(plan, name) for name in SETTINGS},
        "digest": plan.digest.hex(),
        "guarantees": {
            f"{model} {unit}": {"epsilon": plain(promise.epsilon), "delta": promise.delta}
            for (model, unit), promise in plan.guarantees.items()
        },
    }


def plan_from_dict(content: Any) -> FederatedPlan:
    """The plan that `plan_to_dict` wrote; anything else is a ValueError."""
    return described(lambda: _read(content), "this is not a federated plan")


def _read(content: Any) -> FederatedPlan:
    fields = FORMAT.body(content)
    digest, public = fields.pop("digest"), fields["public"]
    hints = dict.fromkeys(PARTS, Any) | {"fit_intercept": bool}
    parts = checked(hints, tuple(hints), fields["problem"], "the problem")
    for name, known in PARTS.items():
        parts[name] = None if parts[name] is None else from_name(parts[name], known, name)
    problem = Problem(parts["loss"], parts["penalty"], parts["constraint"], parts["fit_intercept"])
    facts = Public.of(public.pop("rows"), public.pop("columns"), **public)
    plan = built(FederatedPlan, fields | {"problem": problem, "public": facts}, "the plan")
    if plan.digest.hex() != digest:
        raise ValueError("its digest is that of another plan: it was changed, or written by another version.")
    return plan


def read_plan(path: Path) -> FederatedPlan:
    """Return the plan in a file; a ValueError if it is damaged, or its noise does not keep its budget."""
    return read_json_file(path, FederatedPlan.from_dict, f"{path} is not the plan of a federated run")
