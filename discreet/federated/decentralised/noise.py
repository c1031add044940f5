"""How much noise a node needs, so that the loss that the plan names keeps the budget."""

from __future__ import annotations

import numpy as np

from discreet.federated.decentralised.kinds import AnyProtocol, Method, Target
from discreet.federated.decentralised.pairwise import PairwiseLosses, certified, relative_losses
from discreet.federated.decentralised.random_walk import Walk
from discreet.privacy.budget import Budget

LEAST_MULTIPLIER = 1.0 / 64.0  # below, rounding is not small against the noise, and only the local bound is stated
_TRIES = 20


def relative_to_noise(method: Method, protocol: AnyProtocol, repeats: int) -> PairwiseLosses:
    """The losses for a noise multiplier of 1; a token of ADMM is given the local bound, as nothing more is proved."""
    if method != "admm-walk":
        return relative_losses(protocol, repeats)
    local = protocol.local
    mu = np.repeat(local[:, None], local.size, axis=1)
    np.fill_diagonal(mu, 0.0)
    return PairwiseLosses(mu, local, local)


def mean_epsilon(losses: PairwiseLosses, delta: float) -> float:
    """The mean over the pairs of two nodes."""
    return float(losses.epsilon(delta)[~np.eye(len(losses.mu), dtype=bool)].mean())


def mean_fits(losses: PairwiseLosses, budget: Budget) -> bool:
    """Whether the mean over the pairs keeps a budget."""
    if budget.epsilon is not None and budget.delta:
        return mean_epsilon(losses, budget.delta) <= budget.epsilon * (1.0 + 1e-9)
    return float(losses.pairs.mean()) <= budget.gaussian_mu() * (1.0 + 1e-9)


def own_budget(
    budget: Budget,
    target: Target,
    method: Method,
    protocol: AnyProtocol,
    rounds: int,
    dimension: int,
) -> Budget:
    """What a node's own releases may cost, read by everybody, so that the target keeps the budget."""
    if target == "local" or budget.is_infinite:
        return budget
    repeats = 1 if isinstance(protocol, Walk) else rounds
    relative = relative_to_noise(method, protocol, repeats)
    allowed = budget.gaussian_mu() - protocol.rounding(dimension, repeats)
    if allowed <= 0.0:
        raise ValueError("the budget is too small for the errors of rounding; choose target='local'.")
    seen = float(relative.pairs.mean() if target == "mean" else relative.pairs.max())
    multiplier = seen / allowed * (1.0 + 1e-12)
    if target == "mean" and budget.epsilon is not None and budget.delta:
        # Epsilon is a convex function of mu that is 0 at 0: dividing all mu by a number divides epsilon by more. What
        # rounding adds is not divided: hence a second try, and more where the budget is tiny.
        for _ in range(_TRIES):
            epsilon = mean_epsilon(certified(relative, multiplier, protocol.rounding(dimension, repeats)), budget.delta)
            if epsilon <= budget.epsilon:
                break
            multiplier *= epsilon / budget.epsilon * (1.0 + 1e-9)
    # No pair loses more than the local loss: noise for the budget itself is always enough.
    multiplier = max(multiplier, LEAST_MULTIPLIER * (1.0 + 1e-9))
    return Budget.gdp(max(budget.gaussian_mu(), float(relative.local.max()) / multiplier))
