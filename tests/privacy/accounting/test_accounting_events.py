"""Budgets, the Gaussian closed forms, and events: how they are built, read, written and priced one by one."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from dp_accounting import dp_event as dp
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.accounting import (
    BoundedRangeDpEvent,
    compose,
    epsilon_of,
    event_from_dict,
    event_to_dict,
    fixed_size_event,
    flatten,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_event,
    gaussian_mu,
    laplace_event,
    mixture_event,
    mu_of,
    no_event,
    poisson_event,
    pure_epsilon_of,
    randomised_response_event,
    rho_of,
    selection_event,
)
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

REPLACE, ZERO_OUT, ADD_REMOVE = Relation.REPLACE, Relation.ZERO_OUT, Relation.ADD_REMOVE

multipliers = st.floats(0.5, 50.0)
leaves = st.one_of(
    multipliers.map(gaussian_event),
    multipliers.map(laplace_event),
    st.floats(0.01, 2.0).map(selection_event),
    st.builds(poisson_event, st.floats(0.001, 0.9), multipliers, st.integers(1, 1000)),
    st.builds(fixed_size_event, st.just(500), st.integers(1, 499), multipliers, st.integers(1, 1000)),
    st.builds(randomised_response_event, st.floats(0.1, 0.9), st.integers(2, 6)),
    st.builds(mixture_event, multipliers, st.just([0.0, 1.0]), st.just([0.75, 0.25])),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(compose),
        st.builds(dp.SelfComposedDpEvent, inner, st.integers(1, 5)),
    ),
    max_leaves=6,
)


class TestBudget:
    def test_kinds(self):
        assert Budget(epsilon=1.0, delta=1e-6).kind == "approximate"
        assert Budget(1.0, 0.0) == Budget.pure(1.0)
        assert [Budget.pure(1).kind, Budget.zcdp(0.1).kind, Budget.gdp(1).kind] == ["pure", "zcdp", "gdp"]

    def test_says_itself(self):
        assert str(Budget(1.0, 1e-6)) == "(epsilon = 1, delta = 1e-06)"

    @pytest.mark.parametrize("budget", [Budget(0.3, 1e-9), Budget.pure(math.inf), Budget.zcdp(1 / 3), Budget.gdp(0.1)])
    def test_survives_json(self, budget):
        assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget

    @pytest.mark.parametrize(
        ("arguments", "word"),
        [
            ({"epsilon": 0.0, "delta": 1e-6}, "epsilon"),
            ({"epsilon": math.nan, "delta": 1e-6}, "epsilon"),
            ({"epsilon": True, "delta": 1e-6}, "epsilon"),
            ({"epsilon": "1", "delta": 1e-6}, "epsilon"),
            ({"epsilon": 1.0}, "delta"),
            ({"epsilon": 1.0, "delta": 1.0}, "delta"),
            ({"epsilon": 1.0, "delta": -1e-9}, "delta"),
            ({"epsilon": 1.0, "delta": math.nan}, "delta"),
            ({"rho": -1.0}, "rho"),
            ({"rho": 1.0, "mu": 1.0}, "exactly one"),
            ({"rho": 1.0, "delta": 1e-6}, "delta"),
            ({}, "exactly one"),
        ],
    )
    def test_refuses_nonsense_in_one_line(self, arguments, word):
        with pytest.raises(ValueError, match=word) as caught:
            Budget(**arguments)
        assert "\n" not in str(caught.value)

    def test_gaussian_mu_of_each_kind(self):
        assert Budget.zcdp(0.125).gaussian_mu() == 0.5
        assert Budget.gdp(0.7).gaussian_mu() == 0.7
        assert Budget(math.inf, 1e-6).gaussian_mu() == math.inf
        assert Budget(1, 1e-5).gaussian_mu() == gaussian_mu(1, 1e-5)
        with pytest.raises(ValueError, match="pure"):
            Budget.pure(1).gaussian_mu()


class TestGaussianClosedForms:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "inverse"),
        [(1, 1e-5, 3.731), (1, 1e-8, 5.100), (1, 1e-10, 5.868), (0.5, 1e-5, 7.032), (0.1, 1e-5, 30.750)],
    )
    def test_known_values(self, epsilon, delta, inverse):
        assert 1 / gaussian_mu(epsilon, delta) == pytest.approx(inverse, rel=2e-4)

    def test_known_epsilon(self):
        assert gaussian_epsilon(1e-5, 1 / 2.4224) == pytest.approx(1.6103, rel=1e-4)

    @given(st.floats(1e-6, 1e4), st.floats(-300, -0.01))
    def test_mu_is_safe_and_wastes_nothing(self, epsilon, exponent):
        delta = 10.0**exponent
        mu = gaussian_mu(epsilon, delta)
        assert _exact_delta(epsilon, mu) <= delta
        assert _exact_delta(epsilon, mu * (1 + 1e-9)) > delta
        assert gaussian_epsilon(delta, mu) <= epsilon * (1 + 1e-12)

    @given(st.floats(-8, 3), st.floats(-6, 37))
    def test_delta_is_an_upper_bound_to_nine_digits(self, log_mu, s):
        mu = 10.0**log_mu
        epsilon = max(0.0, mu * (s + mu / 2))
        exact = _exact_delta(epsilon, mu)
        if exact > 1e-290:
            assert exact <= gaussian_delta(epsilon, mu) <= exact * (1 + 1e-9)

    def test_ends(self):
        assert gaussian_delta(1.0, 0.0) == 0.0
        assert gaussian_delta(1.0, math.inf) == 1.0
        assert gaussian_delta(1e4, 0.1) > 0.0
        assert gaussian_epsilon(0.0, 1.0) == math.inf
        assert gaussian_epsilon(0.5, 0.1) == 0.0
        assert gaussian_mu(1.0, 0.0) == 0.0
        assert gaussian_mu(math.inf, 1e-6) == math.inf

    @pytest.mark.parametrize(("n", "saving"), [(45_312, 0.12), (1_000, 0.20)])
    def test_less_noise_than_the_published_renyi_formula(self, n, saving):
        """The DP-CD paper solves epsilon = 1 / (2 z^2) + sqrt(2 log(1/delta)) / z for the multiplier z."""
        root = math.sqrt(2 * math.log(n**2))
        published = 1 / (math.sqrt(root**2 + 2) - root)
        assert 1 / gaussian_mu(1.0, n**-2) <= (1 - saving) * published


def _exact_delta(epsilon: float, mu: float) -> float:
    import mpmath

    with mpmath.workdps(120):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return float(tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2))


class TestEvents:
    @given(trees)
    def test_survive_json(self, event):
        assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event

    @pytest.mark.parametrize(
        "data",
        [
            {"type": "subprocess.Popen", "args": ["true"]},
            {"type": "UnsupportedDpEvent"},
            {"type": "GaussianDpEvent"},
            {"type": "GaussianDpEvent", "noise_multiplier": "1.0"},
            {"type": "GaussianDpEvent", "noise_multiplier": 1.0, "extra": 2},
            {"type": "SelfComposedDpEvent", "event": {"type": "NoOpDpEvent"}, "count": 1.5},
            {"type": "ComposedDpEvent", "events": "x"},
            [],
        ],
    )
    def test_dictionaries_that_are_not_events_are_refused(self, data):
        with pytest.raises(ValueError, match=r"event|number|list|fields"):
            event_from_dict(data)

    def test_infinite_noise_is_json_safe(self):
        text = json.dumps(event_to_dict(gaussian_event(math.inf)), allow_nan=False)
        assert event_from_dict(json.loads(text)) == gaussian_event(math.inf)

    def test_flatten_keeps_the_order_and_merges_neighbours(self):
        a, b = gaussian_event(1.0), selection_event(0.1)
        inner = compose([a, dp.SelfComposedDpEvent(a, 2), b])
        assert flatten(dp.SelfComposedDpEvent(inner, 2)) == [(a, 3), (b, 1), (a, 3), (b, 1)]
        assert flatten(compose([no_event(), b, no_event()])) == [(b, 1)]

    @pytest.mark.parametrize(
        "event",
        [
            dp.UnsupportedDpEvent(),
            dp.ZCDpEvent(1.0),
            dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)),
            dp.SampledWithReplacementDpEvent(10, 2, dp.GaussianDpEvent(1.0)),
        ],
    )
    def test_unknown_events_are_refused_by_name(self, event):
        for question in (flatten, lambda e: epsilon_of(e, 1e-6, REPLACE)):
            with pytest.raises(ValueError, match="cannot account"):
                question(compose([gaussian_event(1.0), event]))

    def test_a_subclass_is_not_taken_for_its_parent(self):
        class Impostor(dp.GaussianDpEvent):
            pass

        with pytest.raises(ValueError, match="Impostor"):
            epsilon_of(Impostor(1.0), 1e-6, REPLACE)

    @pytest.mark.parametrize(
        ("build", "word"),
        [
            (lambda: gaussian_event(-1.0), "multiplier"),
            (lambda: laplace_event(math.nan), "multiplier"),
            (lambda: poisson_event(1.5, 1.0, 1), "rate"),
            (lambda: fixed_size_event(10, 11, 1.0, 1), "batch"),
            (lambda: gaussian_event(1.0, count=1.5), "count"),
            (lambda: selection_event("1"), "epsilon"),
            (lambda: mixture_event(1.0, [0.0, 1.0], [0.5, 0.6]), "sum to 1"),
        ],
    )
    def test_constructors_refuse_nonsense(self, build, word):
        with pytest.raises(ValueError, match=word):
            build()

    def test_relations_without_a_proof_are_refused(self):
        for event, relation in [
            (fixed_size_event(10, 1, 1.0), ADD_REMOVE),
            (randomised_response_event(0.5), ADD_REMOVE),
            (mixture_event(1.0, [0.0, 1.0], [0.5, 0.5]), REPLACE),
        ]:
            for question in (rho_of, pure_epsilon_of, lambda e, r: epsilon_of(e, 1e-6, r)):
                with pytest.raises(ValueError, match="use"):
                    question(event, relation)

    def test_importing_the_package_stays_cheap(self):
        code = "import sys, discreet.privacy.accounting as a; a.Budget(1.0, 1e-6).gaussian_mu(); " + (
            "print([m for m in ('dp_accounting', 'scipy.stats', 'scipy.optimize', 'numba') if m in sys.modules])"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "[]"


class TestMeasures:
    def test_gaussian(self):
        event = gaussian_event(2.0, count=8)
        assert mu_of(event, REPLACE) == pytest.approx(math.sqrt(2), rel=1e-15)
        assert rho_of(event, REPLACE) == pytest.approx(1.0, rel=1e-15)
        assert pure_epsilon_of(event, REPLACE) == math.inf

    def test_laplace_selection_and_response(self):
        assert rho_of(laplace_event(2.0), REPLACE) == pytest.approx(0.125)
        assert rho_of(selection_event(2.0, 3), REPLACE) == pytest.approx(1.5)
        assert pure_epsilon_of(compose([laplace_event(2.0, 2), selection_event(0.5)]), REPLACE) == 1.5
        truthful = randomised_response_event(2 / (1 + math.e))
        assert pure_epsilon_of(truthful, REPLACE) == pytest.approx(1.0, rel=1e-14)

    @pytest.mark.parametrize("event", [selection_event(0.1), laplace_event(3.0), randomised_response_event(0.5)])
    def test_a_selection_is_never_booked_in_mu(self, event):
        with pytest.raises(ValueError, match="no cost in mu"):
            mu_of(compose([gaussian_event(1.0), event]), REPLACE)

    def test_sampled_gaussians_are_charged_without_amplification(self):
        assert mu_of(poisson_event(0.1, 2.0, 4), REPLACE) == mu_of(poisson_event(0.5, 2.0, 4), REPLACE) == 1.0
        assert mu_of(poisson_event(0.51, 2.0, 4), REPLACE) == 2.0
        assert mu_of(poisson_event(0.1, 2.0, 4), ZERO_OUT) == 1.0
        assert mu_of(fixed_size_event(100, 1, 2.0, 4), ZERO_OUT) == 1.0

    @pytest.mark.parametrize("relation", list(Relation))
    def test_sampling_everything_is_the_gaussian(self, relation):
        whole = epsilon_of(gaussian_event(3.0 / relation.factor), 1e-6, relation)
        assert epsilon_of(poisson_event(1.0, 3.0, 1), 1e-6, relation) == whole
        if relation is not ADD_REMOVE:
            fixed = epsilon_of(fixed_size_event(7, 7, 3.0), 1e-6, relation)
            assert fixed == epsilon_of(gaussian_event(3.0), 1e-6, relation)


def test_the_event_class_is_a_frozen_dp_event():
    event = BoundedRangeDpEvent(0.5)
    assert isinstance(event, dp.DpEvent)
    assert event == selection_event(0.5)
    assert hash(event) == hash(BoundedRangeDpEvent(0.5))
    with pytest.raises(AttributeError):
        event.epsilon = 1.0
