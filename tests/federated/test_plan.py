"""Federated plans: made without rows, within the budget, written and read, and told in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget
from discreet.federated import FederatedPlan, plan_federated
from discreet.privacy import accounting
from discreet.problem import L1, L2, ElasticNet, Huber, L2Ball, Logistic, Multinomial, Problem, SmoothedHinge, Squared
from tests.federated_tools import make_plan

LOGISTIC = Problem(Logistic(), L2(0.01))
CASES = {
    "local, clients": {},
    "local, rows": {"unit": "record", "rows_per_client": 50},
    "central, clients": {"model": "central", "dropouts": 7},
    "central, cohorts": {"model": "central", "per_round": 10},
    "central, uneven cohorts": {"model": "central", "per_round": 30, "dropouts": 2},
    "central, uniform": {"model": "central", "per_round": 10, "sampling": "uniform"},
    "central, uniform, all asked": {"model": "central", "sampling": "uniform"},
    "local, cohorts": {"per_round": 10},
    "central, rows": {"model": "central", "unit": "record", "rows_per_client": 50},
    "zero_out": {"relation": "zero_out"},
    "zero_out, rows": {"relation": "zero_out", "unit": "record", "rows_per_client": 50},
}


def plan_of(**changes):
    return plan_federated(LOGISTIC, 5, (-1.0, 1.0), **{"clients": 100, "epsilon": 2.0, "delta": 1e-6} | changes)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_plan_spends_its_budget_and_no_more(case):
    plan = plan_of(**case)
    found = accounting.epsilon_of(plan.event(plan.model, plan.unit), 1e-6, plan.relation)
    assert 1.99 < found <= 2.0
    assert (plan.guarantee.epsilon, plan.guarantee.delta) == (2.0, 1e-6)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_four_guarantees_are_the_formulas_of_the_theorems(case):
    plan = plan_of(**case)
    s, factor = plan.grid.scale, plan.relation.factor
    rows = plan.public.rows
    moved = {
        "client": {"client": factor * plan.clip, "record": 2.0 * plan.clip},
        "record": {"client": factor * plan.clip, "record": factor * plan.clip / rows + 2.0 * plan.tolerance},
    }[plan.unit]
    cohorts, others, most = plan.clients // plan.per_round, 1, plan.participations
    if plan.unit == "client" and (plan.sampling == "cohorts" or cohorts == 1):
        others, most = plan.clients // cohorts - plan.dropouts, math.ceil(plan.rounds / cohorts)
    for (model, unit), promise in plan.guarantees.items():
        count, noise = plan.participations, s
        if model == "central" and others > 1:
            count, noise = most, s * math.sqrt(others)
        mu = moved[unit] * math.sqrt(count) / noise
        assert accounting.mu_of(promise.event, plan.relation) == pytest.approx(mu, rel=1e-5)
        assert promise.epsilon == pytest.approx(accounting.gaussian_epsilon(promise.delta, mu), rel=1e-4)
    assert plan.guarantees["central", "client"].epsilon <= plan.guarantees["local", "client"].epsilon * (1.0 + 1e-9)


def test_less_noise_than_the_budget_needs_is_refused():
    for case in CASES.values():
        plan = plan_of(**case)
        with pytest.raises(ValueError, match="too little for its budget"):
            replace(plan, multiplier=0.99 * plan.multiplier)
    with pytest.raises(ValueError, match="too little for its budget"):
        replace(plan_of(), participations=21)
    with pytest.raises(ValueError, match="too little for its budget"):
        replace(plan_of(model="central", dropouts=7), dropouts=8)


def test_the_slides_claim_is_below_what_one_round_of_all_clients_truly_costs():
    """All clients, one round: the released sum has noise N s^2, and a client moves it by 2 C. That is exact."""
    for clients in (3, 10, 100):
        plan = plan_of(clients=clients, rounds=1, model="central", dropouts=0)
        exact = 0.5 * (2.0 * plan.clip / plan.grid.scale) ** 2 / clients
        assert plan.claimed_rho < exact
        assert exact / plan.claimed_rho == pytest.approx(clients / 2, rel=1e-12)
        assert accounting.rho_of(plan.event("central", "client"), plan.relation) >= exact * (1.0 - 1e-5)


PROBLEMS = [
    LOGISTIC,
    Problem(SmoothedHinge(0.3), L1(0.02), fit_intercept=False),
    Problem(Huber(0.5), ElasticNet(0.1, 0.3)),
    Problem(Squared(), constraint=L2Ball(3.0)),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.loss.name)
@pytest.mark.parametrize("unit", ["client", "record"])
def test_a_plan_comes_back_from_json_as_it_was(problem, unit):
    plan = plan_federated(
        problem, 3, ([-1.0, 0.0, 5.0], [1.0, 2.5, 7.0]), 20, y_bounds=(-2.0, 4.0), unit=unit, rows_per_client=9
    )
    again = FederatedPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again.digest == plan.digest
    assert again.grid == plan.grid
    assert str(again) == str(plan)
    assert again.to_dict() == plan.to_dict()


def test_an_infinite_budget_comes_back_too():
    plan = plan_of(epsilon=math.inf)
    again = FederatedPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again.multiplier == 0.0
    assert not again.guarantee.is_private


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("multiplier",), 0.1),
        (("clip",), 1e9),
        (("participations",), 1),
        (("clients",), "100"),
        (("unit",), "household"),
        (("budget",), {"epsilon": 1.0}),
        (("problem", "loss"), {"name": "zero-one"}),
        (("public", "columns"), 6),
        (("public", "relation"), "add_remove"),
        (("gamma",), -1.0),
        (("version",), 1),
        (("sampling",), "shuffled"),
        (("sampling",), "uniform"),
        (("format",), "else"),
        (("run",), 3),
        (("digest",), "00"),
    ],
    ids=str,
)
def test_a_plan_that_was_tampered_with_is_refused(path, value):
    content = json.loads(json.dumps(plan_of().to_dict()))
    place = content
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(ValueError, match="not a federated plan"):
        FederatedPlan.from_dict(content)


@pytest.mark.parametrize("content", [None, [], {}, "plan", {"format": "discreet federated plan", "version": 2}])
def test_what_is_no_plan_is_refused(content):
    with pytest.raises(ValueError, match="not a federated plan"):
        FederatedPlan.from_dict(content)


def test_stated_guarantees_are_computed_anew():
    content = plan_of().to_dict()
    content["guarantees"]["local client"]["epsilon"] = 0.001
    assert FederatedPlan.from_dict(content).guarantee.epsilon == 2.0


REFUSED = {
    "several outputs": ({"problem": Problem(Multinomial(3))}, "one margin"),
    "no bounds": ({"bounds": None}, "bounds"),
    "no bounds of the target": ({"problem": Problem(Squared())}, "y_bounds"),
    "add_remove": ({"relation": "add_remove"}, "public"),
    "more asked than there are": ({"per_round": 101}, "per_round"),
    "all may drop out": ({"dropouts": 100}, "dropouts"),
    "a cohort may drop out": ({"per_round": 20, "dropouts": 20}, "dropouts"),
    "a sampling that is none": ({"sampling": "shuffled"}, "sampling"),
    "no rounds": ({"rounds": 0}, "rounds"),
    "a long relaxation": ({"relaxation": 0.6}, "relaxation"),
    "pure": ({"epsilon": Budget.pure(1.0)}, "delta"),
    "central zCDP": ({"epsilon": Budget.zcdp(0.1), "model": "central"}, "epsilon and delta"),
    "a long step for rows": ({"unit": "record", "gamma": 1e6}, "gamma"),
    "a unit that is none": ({"unit": "household"}, "unit"),
    "a model that is none": ({"model": "shuffled"}, "model"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_promised_is_refused(changes, message):
    problem, bounds = changes.get("problem", LOGISTIC), changes.get("bounds", (-1.0, 1.0))
    rest = {name: value for name, value in changes.items() if name not in ("problem", "bounds")}
    with pytest.raises(ValueError, match=message):
        plan_federated(problem, 5, bounds, **{"clients": 100, "epsilon": 2.0, "delta": 1e-6} | rest)


@pytest.mark.parametrize("budget", [Budget.zcdp(0.1), Budget.gdp(0.5)], ids=str)
def test_other_budgets_are_kept_in_the_local_model(budget):
    plan = plan_of(epsilon=budget, delta=None)
    assert accounting.mu_of(plan.event("local", "client"), plan.relation) <= budget.gaussian_mu() * (1 + 1e-9)
    assert plan.guarantee.delta == 1e-4


def test_the_plan_says_in_words_what_it_promises():
    text = str(plan_of(model="central"))
    for words in (
        "100, of which 100 are asked in each of 20 rounds",
        "all rows of a client, replaced by any others",
        "epsilon = 2, delta = 1e-06   <- the budget",
        "at most 10 clients in a round; a round that more have missed is not used",
        "not certified",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 120
    assert "no noise and no privacy" in str(plan_of(epsilon=math.inf))
    some = " ".join(str(plan_of(model="central", per_round=5, sampling="uniform")).split())
    assert "is proved only where the same clients are always asked together" in some
    cohorts = " ".join(str(plan_of(model="central", per_round=30)).split())
    assert "100 in 3 cohorts of 33 or more, drawn once at random; one cohort is asked in each of 20 rounds" in cohorts
    assert "at most 3 clients of a cohort in a round; a round that more have missed is not used" in cohorts


def test_a_local_plan_says_on_what_its_central_figure_rests():
    text = " ".join(str(plan_of()).split())
    assert "as long as at most 10 clients miss a round" in text
    assert "as long as at most 2 clients of a cohort miss a round" in " ".join(str(plan_of(per_round=20)).split())
    assert "as long as" not in str(plan_of(unit="record"))


def test_clients_are_asked_equally_often_by_default():
    assert plan_of(per_round=10, rounds=25).participations == 3
    assert plan_of(rounds=25).participations == 25
    assert plan_of(per_round=30, rounds=20).participations == 7  # three cohorts
    assert plan_of(per_round=30, rounds=20, sampling="uniform").participations == 6


def test_cohorts_need_the_noise_of_full_participation_while_few_are_asked():
    """No dropouts: ten times as many rounds of a tenth of the clients cost what all clients cost in each round."""
    full = plan_of(model="central", dropouts=0)
    tenth = plan_of(model="central", dropouts=0, per_round=10, rounds=200)
    assert tenth.cohort_rounds == full.cohort_rounds == 20
    assert tenth.multiplier == pytest.approx(math.sqrt(10.0) * full.multiplier, rel=1e-4)
    uniform = plan_of(model="central", dropouts=0, per_round=10, rounds=200, sampling="uniform")
    assert uniform.multiplier == pytest.approx(10.0 * full.multiplier, rel=1e-4)


def test_columns_are_mapped_into_the_unit_interval_by_their_bounds():
    plan = plan_federated(LOGISTIC, 2, ([0.0, 10.0], [4.0, 20.0]), 5)
    scaled = (np.array([[0.0, 10.0], [4.0, 20.0]]) - plan.scaling.shift) / plan.scaling.scale
    assert np.abs(scaled).max() == 1.0


def test_a_message_is_shortened_once():
    plan = make_plan()
    long = np.full(plan.dimension, 1e200)
    once = plan.within_bound(long)
    assert np.linalg.norm(once) <= plan.bound
    assert plan.within_bound(once) is once


@pytest.mark.parametrize(("loss", "columns"), [(Squared(), 1_200), (SmoothedHinge(1e-4), 3)])
def test_rows_can_be_protected_where_proximal_steps_must_be_short(loss, columns):
    y_bounds = None if loss.classification else (-1.0, 1.0)
    plan = plan_federated(Problem(loss, L2(0.01)), columns, (-1.0, 1.0), 3, unit="record", y_bounds=y_bounds)
    assert 0.0 < plan.gamma * loss.smoothness * plan.dimension <= 1_000.0
