"""Gossip: what a node sees of another one is computed exactly, never too small, and attained by an attacker."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from discreet.federated.decentralised.averaging import LEAST_MESSAGE_NOISE, Gossip, chebyshev, plan_gossip
from discreet.federated.decentralised.plan import certified, relative_losses
from discreet.privacy.mechanisms import Gaussian, Sensitivity
from discreet.privacy.random.generator import seeded_generator
from tests.network_views import PATH, RING, SMALL, STAR, exact_fraction, gossip_view


def schedules(net):
    yield Gossip(net, (1.0, 1.0, 1.0), 0.25, 0)
    yield Gossip(net, chebyshev(net.second_eigenvalue, 4), 0.03, net.size - 1)
    yield Gossip(net, (1.0,), 1.0, 1)


@pytest.mark.parametrize("name", SMALL)
def test_the_loss_is_the_exact_one_and_never_below(name):
    net = SMALL[name]
    with mpmath.workdps(50):
        for gossip in schedules(net):
            for observers in ([0], [net.size - 1], [0, 2]):
                view, keys = gossip_view(gossip, observers)
                found = gossip.seen_by(observers)
                for u in set(range(net.size)) - set(observers):
                    exact = exact_fraction(view, keys, u)
                    assert found[u] >= exact * (1.0 - 1e-15)
                    assert found[u] == pytest.approx(exact, rel=1e-6, abs=1e-9)


def test_little_message_noise_errs_on_the_safe_side():
    """Nearly parallel messages: the covariance is ill-conditioned, and its error is added to the loss."""
    gossip = Gossip(RING, (1.0,) * 12, LEAST_MESSAGE_NOISE, 0)
    with mpmath.workdps(60):
        view, keys = gossip_view(gossip, [0])
        for u in (1, 2, 3, 4):
            exact = exact_fraction(view, keys, u)
            assert exact * (1.0 - 1e-15) <= gossip.seen_by([0])[u] <= exact + 1e-3


def test_a_star_has_a_closed_form():
    """A leaf sees the hub's value, and the mean of the other leaves through their noise and that of the message."""
    n, tau = STAR.size, 0.3
    seen = Gossip(STAR, (1.0,), tau, speaker=0).seen_by([1])
    assert seen[0] == pytest.approx(1.0)
    assert seen[2:] == pytest.approx((1 / n) / math.sqrt((n - 2) / n**2 + tau**2), rel=1e-9)
    assert Gossip(STAR, (1.0,), tau, speaker=0).seen_by([0])[1:] == pytest.approx(1.0)  # the hub sees every value


def test_someone_outside_sees_the_average_only():
    gossip = plan_gossip(RING)
    expected = np.abs(gossip.row) / math.sqrt(gossip.variance)
    assert gossip.seen_by([]) == pytest.approx(expected, rel=1e-6)


def test_more_is_seen_by_more_observers_in_more_steps_and_with_less_noise():
    net = SMALL["kite"]
    for u in range(1, net.size):
        by_steps = [Gossip(net, (1.0,) * t, 0.1, speaker=1).seen_by([0])[u] for t in (1, 2, 4, 8)]
        by_noise = [Gossip(net, (1.0,) * 4, tau, speaker=1).seen_by([0])[u] for tau in (1.0, 0.3, 0.1, 0.01)]
        assert (np.diff(by_steps) >= -1e-9).all()
        assert (np.diff(by_noise) >= -1e-9).all()
    gossip = Gossip(net, (1.0,) * 4, 0.1, speaker=1)
    alone, together = gossip.seen_by([0]), gossip.seen_by([0, 4])
    assert (together[[1, 2, 3, 5]] >= alone[[1, 2, 3, 5]] - 1e-9).all()


def test_all_others_together_see_what_the_local_bound_says():
    for net in SMALL.values():
        assert plan_gossip(net).seen_by(range(1, net.size))[0] == pytest.approx(1.0)


def test_no_pair_is_above_the_local_bound_and_rounding_is_added():
    relative = relative_losses(plan_gossip(SMALL["kite"]), rounds=9)
    losses = certified(relative, multiplier=2.0, rounding=0.01)
    assert losses.local == pytest.approx(1.5)
    assert (losses.mu <= losses.local[:, None]).all()
    below = relative.mu / 2.0 < 1.4
    np.fill_diagonal(below, False)
    assert losses.mu[below] == pytest.approx(relative.mu[below] / 2.0 + 0.01)
    assert np.isinf(certified(relative, 0.0, 0.0).pairs).all()


class KnownNoise:
    """The grid of the messages without the noise of the observer, which knows it and can take it off."""

    def __init__(self, grid, observer):
        self.grid, self.observer = grid, observer

    def release(self, rng, value):
        noisy = self.grid.release(rng, value)
        noisy[self.observer] = self.grid.nearest(value[self.observer])
        return noisy


def attained(gossip, observer, node, message_noise, columns=60_000):
    """Two states of a node as an attacker with the best linear test sees them: distance in standard deviations.

    The columns of one run of the real code serve as independent runs with one column.
    """
    rng = seeded_generator(1)
    unit = Gaussian(1.0).grid(Sensitivity(1.0, 1.0), 1)
    grid = Gaussian(1.0).grid(Sensitivity(message_noise, message_noise), 1)
    with mpmath.workdps(30):
        view, keys = gossip_view(gossip, [observer])
        test = np.array([float(x) for x in mpmath.lu_solve(view * view.T, view[:, keys.index((0, node))])])
    found = []
    for shift in (0.0, 1.0):
        values = unit.noise(rng, (gossip.network.size, columns))
        values[observer] = 0.0  # known to the observer as well
        values[node] += shift
        steps = list(gossip.exchange(values, KnownNoise(grid, observer), rng))
        watched = gossip.network.neighbours[observer]
        seen = [steps[t][w] for t in range(gossip.steps) for w in watched] + [steps[-1][gossip.speaker]]
        found.append(test @ np.array(seen))
    return (found[1].mean() - found[0].mean()) / math.sqrt(0.5 * (found[0].var() + found[1].var()))


def test_an_attacker_attains_the_loss_and_no_more():
    """A false alarm once in 10^5 runs at most: 4.5 standard errors; the seed is fixed."""
    gossip = Gossip(RING, chebyshev(RING.second_eigenvalue, 3), 0.2, speaker=3)
    error = 4.5 * math.sqrt(2.0 / 60_000)
    for node in (2, 3):
        claimed = gossip.seen_by([0])[node]
        assert abs(attained(gossip, 0, node, 0.2) - claimed) < error
        assert attained(gossip, 0, node, 0.1) > claimed + error  # with half the noise on messages it is found


def test_the_usual_formula_for_gossip_is_not_a_bound_for_a_node_that_keeps_its_messages():
    """As usually stated (Cyffers et al., 2022) it adds up losses of messages, as if each had noise of its own.

    On a path the middle node sends its value and then a mean with the last one's: their difference has no other noise.
    """
    weights, w, u = PATH.weights, 1, 2
    powers = [np.eye(3), weights]
    usual = sum((m[w, u] / np.linalg.norm(m[w])) ** 2 for m in powers)
    assert usual == pytest.approx(1.0 / 3.0)
    nearly_without = Gossip(PATH, (1.0, 1.0), LEAST_MESSAGE_NOISE, speaker=1)
    assert nearly_without.seen_by([0])[u] ** 2 > 0.999


def test_steps_follow_from_the_spectral_gap():
    for accelerated in (True, False):
        gossip = plan_gossip(RING, error=0.01, accelerated=accelerated)
        assert np.linalg.norm(gossip.row - 0.2) <= 0.01 / math.sqrt(5)
        short = Gossip(RING, gossip.mixing[:-1], 0.1, 0)
        assert accelerated or np.linalg.norm(short.row - 0.2) > 0.005 / math.sqrt(5)
    assert plan_gossip(RING, error=0.01).steps < plan_gossip(RING, error=0.01, accelerated=False).steps
    assert plan_gossip(RING).variance == pytest.approx(1.25 * plan_gossip(RING)._variance(0.0))


@pytest.mark.parametrize("wrong", [{"message_noise": 0.0}, {"steps": 0}, {"error": 0.0}, {"steps": 10**6}])
def test_wrong_schedules_are_refused(wrong):
    with pytest.raises(ValueError, match=r"message_noise|steps|error"):
        plan_gossip(RING, **wrong)
