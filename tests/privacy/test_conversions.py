"""Conversions between definitions: never below what a release with the promise does, and where stated, equal to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from discreet import Budget
from discreet.privacy.accounting.closed_forms import renyi_delta
from discreet.privacy.conversions import (
    DEFINITIONS,
    Renyi,
    bounded_range_to_zcdp,
    change_relation,
    convert,
    group,
    kind_of,
    pure_to_gdp,
    pure_to_renyi,
    pure_to_zcdp,
)
from tests.pairs_of_laws import hockey_stick, random_pair, randomised_response, renyi

EPSILONS = [1e-3, 0.1, 1.0, 3.0, 10.0]
ORDERS = [1.0001, 1.5, 2.0, 4.0, 32.0, 300.0]


def gaussian_renyi(mu, order):
    """The Renyi divergence of N(mu, 1) from N(0, 1), by numerical integration."""
    middle = order * mu  # where the integrand is largest
    value, _ = quad(
        lambda x: math.exp(order * norm.logpdf(x, mu) + (1.0 - order) * norm.logpdf(x)), middle - 12, middle + 12
    )
    return math.log(value) / (order - 1.0)


def gaussian_hockey_stick(mu, epsilon):
    """The least delta at epsilon, by numerical integration where the density of N(mu, 1) is larger."""
    start = epsilon / mu + 0.5 * mu
    return quad(lambda x: norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x), start, start + 12.0, epsabs=0.0)[0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_to_zcdp_and_renyi_are_those_of_randomised_response(epsilon):
    p, q = randomised_response(epsilon)
    p, q = p[1:3], q[1:3]
    divergences = np.array([renyi(p, q, order) for order in ORDERS])
    rho = pure_to_zcdp(epsilon)
    assert (divergences <= rho * np.array(ORDERS) + 1e-12).all()
    assert divergences[0] > 0.999 * rho * ORDERS[0]  # no smaller rho would do
    assert rho <= epsilon**2 / 2
    assert [pure_to_renyi(epsilon, order) for order in ORDERS] == pytest.approx(divergences, rel=1e-6)
    assert all(pure_to_renyi(epsilon, order) >= d - 1e-12 for order, d in zip(ORDERS, divergences, strict=True))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_to_gdp_is_the_least_mu(epsilon):
    """The curve of mu-GDP goes through the corner of randomised response; the curve of a smaller mu is above it."""
    mu, corner = pure_to_gdp(epsilon), 1.0 / (1.0 + math.exp(epsilon))
    assert norm.cdf(norm.isf(corner) - mu) <= corner * (1.0 + 1e-9)
    assert norm.cdf(norm.isf(corner) - 0.999 * mu) > corner


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bounded_range_to_zcdp_covers_the_worst_selections(epsilon):
    """Two outcomes whose log-ratios are t and t - epsilon; half of epsilon^2 / 8 would not do."""
    rho, worst = bounded_range_to_zcdp(epsilon), 0.0
    for t in np.linspace(0.01, 0.99, 99) * epsilon:
        share = math.expm1(t - epsilon) / math.expm1(-epsilon)  # of the outcome that got likelier, in the first law
        p = np.array([share, 1.0 - share])
        q = p * np.exp([-t, epsilon - t])
        worst = max(worst, *(renyi(p, q, order) / order for order in ORDERS))
    assert 0.9 * rho < worst <= rho


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_gdp_to_zcdp_and_renyi_are_exact(mu, order):
    exact = gaussian_renyi(mu, order)
    assert convert(Budget.gdp(mu), "renyi", order=order).epsilon == pytest.approx(exact, rel=1e-6)
    assert convert(Budget.gdp(mu), "zcdp").rho * order == pytest.approx(exact, rel=1e-6)
    assert convert(Budget.zcdp(0.5 * mu**2), "renyi", order=order).epsilon == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("mu", [0.1, 1.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_gdp_and_zcdp_to_approximate_are_never_below_gaussian_noise(mu, delta):
    exact = convert(Budget.gdp(mu), "approximate", delta=delta)
    assert gaussian_hockey_stick(mu, exact.epsilon) == pytest.approx(delta, rel=1e-6)
    assert convert(Budget.gdp(mu), "approximate", epsilon=exact.epsilon).delta == pytest.approx(delta, rel=1e-6)
    looser = convert(Budget.zcdp(0.5 * mu**2), "approximate", delta=delta)
    assert exact.epsilon < looser.epsilon < 1.4 * exact.epsilon + 0.01


@pytest.mark.parametrize("rho", [0.001, 0.1, 2.0])
def test_zcdp_to_approximate_agrees_with_google(rho):
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(list(1.0 + np.geomspace(1e-2, 1e4, 500)))
    accountant.compose(dp_accounting.ZCDpEvent(rho))
    ours = convert(Budget.zcdp(rho), "approximate", delta=1e-6).epsilon
    assert ours <= accountant.get_epsilon(1e-6) <= 1.001 * ours


@pytest.mark.parametrize("seed", range(40))
def test_renyi_to_approximate_is_never_below_a_random_release(seed):
    p, q = random_pair(seed, outcomes=2 + seed % 4, spread=0.2 + seed % 7)
    for order in (1.2, 2.0, 6.0, 30.0):
        promise = Renyi(order, renyi(p, q, order))
        for epsilon in (0.0, 0.1, 1.0, 4.0):
            delta = hockey_stick(p, q, epsilon)
            assert convert_delta(promise, epsilon) >= delta - 1e-12
            if delta > 1e-12:
                assert hockey_stick(p, q, convert(promise, "approximate", delta=delta).epsilon) <= delta + 1e-12


def convert_delta(promise, epsilon):
    try:
        return convert(promise, "approximate", epsilon=epsilon).delta
    except ValueError:  # nothing below 1 follows
        return 1.0


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_renyi_to_approximate_cannot_be_a_third_smaller(order):
    """Two coins of which one almost never falls on its head use nearly all of the delta that the theorem allows."""
    best = 0.0
    for log_p, ratio in ((-x, r) for x in np.linspace(0.5, 12.0, 12) for r in np.linspace(0.5, 8.0, 16)):
        p = np.exp(log_p) * np.array([1.0, math.expm1(-log_p)])
        q = np.array([p[0] * math.exp(-ratio), 1.0 - p[0] * math.exp(-ratio)])
        epsilon = ratio + math.log1p(-1.0 / order)  # the best use of this ratio
        if epsilon > 0.0:
            best = max(best, hockey_stick(p, q, epsilon) / renyi_delta(order, renyi(p, q, order), epsilon))
    assert 2.0 / 3.0 < best <= 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_promise_at_another_epsilon_is_exact(epsilon, delta):
    """The worst pair of an (epsilon, delta) promise is known, and so is all that it implies."""
    p, q = randomised_response(epsilon, delta)
    promise = Budget(epsilon, delta)
    for smaller in (0.3 * epsilon, 0.9 * epsilon, epsilon, 2.0 * epsilon):
        exact = hockey_stick(p, q, smaller)
        assert convert(promise, "approximate", epsilon=smaller).delta == pytest.approx(exact, rel=1e-9, abs=1e-15)
        if delta < exact < 1.0 and smaller < epsilon:
            assert convert(promise, "approximate", delta=exact).epsilon == pytest.approx(smaller, rel=1e-6)


GIVEN = {
    "pure": Budget.pure(1.0),
    "approximate": Budget(1.0, 1e-6),
    "zcdp": Budget.zcdp(0.1),
    "renyi": Renyi(8.0, 0.5),
    "gdp": Budget.gdp(0.5),
}
IMPOSSIBLE = {
    **{("approximate", to): "publish a row" for to in ("pure", "zcdp", "renyi", "gdp")},
    **{(kind, "pure"): "likelihood ratios" for kind in ("zcdp", "renyi", "gdp")},
    ("renyi", "zcdp"): "larger orders",
    ("renyi", "gdp"): "larger orders",
    ("zcdp", "gdp"): "none is proved",
}


@pytest.mark.parametrize("to", DEFINITIONS)
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_pair_is_converted_or_refused_with_a_reason(kind, to):
    wanted = {"approximate": {"delta": 1e-5}, "renyi": {"order": 4.0}}.get(to, {})
    if (kind, to) in IMPOSSIBLE:
        with pytest.raises(ValueError, match=IMPOSSIBLE[kind, to]):
            convert(GIVEN[kind], to, **wanted)
    else:
        assert kind_of(convert(GIVEN[kind], to, **wanted)) == to


def test_what_is_called_impossible_is():
    """Releases that keep a promise, and for which no finite number in the other definition would do."""
    p, q = np.array([1e-6, 1.0 - 1e-6]), np.array([0.0, 1.0])  # publishes a row with probability 1e-6
    assert hockey_stick(p, q, 0.0) == pytest.approx(1e-6)
    assert renyi(p, q, 2.0) == math.inf
    x = np.arange(1.0, 10_000.0)  # a heavy tail: the divergence grows without limit above the order 2.5
    p, q = x**-4.0 / np.sum(x**-4.0), x**-6.0 / np.sum(x**-6.0)
    assert renyi(p, q, 2.0) < 1.0
    assert renyi(p, q, 4.0) > 5.0
    assert ndtr(-30.0) * math.exp(200.0) < ndtr(-10.0)  # N(20, 1) against N(0, 1): odds of more than e^200


@pytest.mark.parametrize(
    ("promise", "to", "wanted", "words"),
    [
        (Budget(1.0, 1e-6), "approximate", {"delta": 1e-9}, "larger probability"),
        (Budget.gdp(1.0), "approximate", {"delta": 0.0}, "pure DP"),
        (Budget.gdp(1.0), "approximate", {}, "one of delta and epsilon"),
        (Budget.gdp(1.0), "approximate", {"delta": 0.1, "epsilon": 1.0}, "one of delta and epsilon"),
        (Budget.gdp(1.0), "zcdp", {"delta": 0.1}, "one of delta and epsilon"),
        (Budget.gdp(1.0), "renyi", {}, "order"),
        (Renyi(2.0, 1.0), "renyi", {"order": 3.0}, "larger order"),
        (Renyi(2.0, 1.0), "rdp", {}, "must be one of"),
    ],
)
def test_mistakes_are_named(promise, to, wanted, words):
    with pytest.raises(ValueError, match=words):
        convert(promise, to, **wanted)


def test_only_promises_are_converted():
    with pytest.raises(TypeError, match="Budget"):
        convert(1.0, "zcdp")
    with pytest.raises(ValueError, match="order"):
        Renyi(1.0, 0.5)


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_groups_of_gaussian_releases_are_exact(rows):
    """N(0, 1) and N(k mu, 1) are what k rows can make of mu-GDP."""
    mu = 0.3
    assert group(Budget.gdp(mu), rows).mu == pytest.approx(rows * mu)
    assert group(Budget.zcdp(0.5 * mu**2), rows).rho == pytest.approx(0.5 * (rows * mu) ** 2)
    found = group(Renyi(32.0, 16.0 * mu**2), rows)
    assert found.epsilon >= 0.5 * found.order * (rows * mu) ** 2


@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_groups_are_never_below_a_chain_of_releases(rows, delta):
    """Each law passes the one before it by the factor and the delta that are allowed; 98 % of delta would not do."""
    epsilon = 0.4
    last = np.array([0.001, 0.999])
    first = last.copy()
    for _ in range(rows):  # as much more on the first outcome as (epsilon, delta) allows
        head = math.exp(epsilon) * first[0] + delta
        first = np.array([head, 1.0 - head])
    found = group(Budget(epsilon, delta), rows)
    exact = hockey_stick(first, last, found.epsilon)
    assert exact <= found.delta + 1e-15
    assert exact >= 0.99 * found.delta


def test_a_group_of_one_and_too_large_groups():
    assert group(Budget(1.0, 1e-6), 1) == Budget(1.0, 1e-6)
    with pytest.raises(ValueError, match="says nothing about 20 rows"):
        group(Budget(1.0, 1e-6), 20)
    with pytest.raises(ValueError, match="order must be at least 8"):
        group(Renyi(7.0, 0.1), 4)


def test_relations():
    assert change_relation(Budget(1.0, 1e-6), "zero_out", "replace").delta == pytest.approx((1.0 + math.e) * 1e-6)
    assert change_relation(Budget.zcdp(0.1), "add_remove", "replace").rho == pytest.approx(0.4)
    assert change_relation(Budget.zcdp(0.1), "replace", "replace") == Budget.zcdp(0.1)
    with pytest.raises(ValueError, match="nothing follows from replace for add_remove"):
        change_relation(Budget.pure(1.0), "replace", "add_remove")
