"""A token that walks on the graph: whoever holds it improves the model with its own rows, adds noise, and passes it on.

A node that sees the token later sees a step of another node through the noise of all steps in between: amplification
by iteration. docs/guarantees/decentralised.md, Theorem 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.federated.decentralised.network import Network
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Gaussian, clipped_sum
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation, relation_from
from discreet.problem.problem import Problem

BLOCK = 1024  # rows whose gradients are added in double precision; sums over blocks are exact


@dataclass(frozen=True, eq=False)
class Walk:
    """The way of a token, drawn before the rows are read and known to everybody.

    Parameters
    ----------
    network : Network
    path : tuple of int
        The nodes that hold the token, one after the other.
    passing : tuple of int, default=()
        Places in the path at which the node only passes the token on, and makes no step.
    """

    network: Network
    path: tuple[int, ...]
    passing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(0 <= node < self.network.size for node in self.path):
            raise ValueError(f"the path must go through nodes, 0 to {self.network.size - 1}.")
        if not len(self.stops):
            raise ValueError("the token must visit at least one node.")
        for here, there in pairwise(self.path):
            if here != there and there not in self.network.neighbours[here]:
                raise ValueError(f"the token cannot go from node {here} to node {there}: there is no edge.")

    @cached_property
    def stops(self) -> tuple[int, ...]:
        """The nodes that make a step, one after the other."""
        passing = set(self.passing)
        return tuple(node for place, node in enumerate(self.path) if place not in passing)

    @cached_property
    def visits(self) -> IntArray:
        """How often each node makes a step."""
        return np.bincount(self.stops, minlength=self.network.size).astype(np.int64)

    @property
    def local(self) -> FloatArray:
        """What someone sees of each node who follows the token: each visit, with no noise but its own."""
        return np.sqrt(self.visits.astype(float))

    @property
    def messages(self) -> int:
        """How many messages the whole walk takes, with one for each node to tell the result."""
        moves = sum(a != b for a, b in pairwise(self.path))
        return moves + self.network.size

    def seen_by(self, observers: Sequence[int]) -> FloatArray:
        """How well each node's steps can be seen by observers who pool what they know.

        They see the token when one of them receives it, if only to pass it on, their own noise, and the final model.

        Returns
        -------
        array of shape (nodes,)
            The loss of each node in units of one step seen alone: at most the root of its number of visits.

        Guarantee: Theorem 4, if every step is a non-expansive map plus noise.
        """
        inside, passing = set(observers), set(self.passing)
        squares = np.zeros(self.network.size)
        visited: dict[int, list[int]] = {}
        length = 0  # steps by others since the token was last seen
        for place, node in enumerate([*self.path, -1]):  # -1: at the end everybody hears the model
            if node >= 0 and node not in inside:
                if place not in passing:
                    visited.setdefault(node, []).append(length)
                    length += 1
                continue
            for other, places in visited.items():
                squares[other] += spread(places, length)
            visited, length = {}, 0
        return np.sqrt(squares)

    def rounding(self, columns: int, rounds: int) -> float:
        """How much rounding of the token can add to a loss, over the walk.

        Guarantee: Theorem 4; 2^-29 bounds a grid's step over its noise.
        """
        steps = len(self.stops)
        farthest = steps * (64.0 + math.sqrt(columns) + 12.0)  # length of the token, in deviations of a step's noise
        precision = 2.0**-53 * ((2 * columns + 8) * farthest + 64.0 * (BLOCK + 30))
        return 2.0 * math.sqrt(steps) * (math.sqrt(columns) * 2.0**-29 + precision)


def spread(places: Sequence[int], length: int) -> float:
    """The least sum of squares of a_0, ..., a_{length-1} >= 0 that pay for one unit at each place, not before it.

    The partial sums of the a may never exceed the number of places passed, and must reach it at the end. The best ones
    are the slopes of the greatest convex curve that stays below.

    Examples
    --------
    >>> from discreet.federated.decentralised.random_walk import spread
    >>> spread([0], 4), spread([3], 4), spread([0, 3], 4)
    (0.25, 1.0, 1.3333333333333333)
    """
    corners: list[tuple[int, int]] = []
    for point in [*((place, count) for count, place in enumerate(places)), (length, len(places))]:
        while len(corners) > 1 and not _turns_up(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return sum((d - b) ** 2 / (c - a) for (a, b), (c, d) in pairwise(corners))


def _turns_up(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    (a, b), (c, d), (e, f) = first, middle, last
    return (f - d) * (c - a) > (d - b) * (e - c)


def plan_walk(network: Network, passes: int, seed: int = 0) -> Walk:
    """Draw a random walk of passes * nodes steps.

    Parameters
    ----------
    network : Network
    passes : int
        How often each node is visited, on average; on graphs with distant parts some are visited much less.
    seed : int
        The way is public, so that this is no secret. It moves with the Metropolis weights, under which all nodes are
        visited equally often in the long run.
    """
    rng = seeded_generator(seed)
    limits = np.cumsum(network.weights, axis=1)
    path = [int(rng.integers(network.size, 1)[0])]
    for uniform in rng.uniform(passes * network.size - 1):
        row = limits[path[-1]]
        path.append(int(np.searchsorted(row, uniform * row[-1], side="right")))
    return Walk(network, tuple(path))


def plan_tour(network: Network, passes: int, seed: int = 0) -> Walk:
    """Draw tours on which each node makes one step in every pass: depth first, in a random order.

    Where the token must go back through nodes that had their turn, these only pass it on.

    Parameters
    ----------
    network : Network
    passes : int
        How often each node makes a step.
    seed : int
        The way is public, so that this is no secret.
    """
    rng = seeded_generator(seed)
    path: list[int] = []
    passing: list[int] = []
    here = int(rng.integers(network.size, 1)[0])
    for _ in range(passes):
        rank, behind, done = rng.permutation(network.size), [here], {here}
        path.append(here)
        while len(done) < network.size:
            fresh = [other for other in network.neighbours[here] if other not in done]
            if fresh:
                here = min(fresh, key=lambda node: int(rank[node]))
                behind.append(here)
                done.add(here)
            else:
                behind.pop()
                here = behind[-1]
                passing.append(len(path))
            path.append(here)
    return Walk(network, tuple(path), tuple(passing))


ROW_CLIP = 0.6  # in units of the slope times the norm of a row whose entries are uniform in [-1, 1]
SPREAD = 0.15  # guessed mean square of a scaled column
DISTANCE = 3.0  # guessed length of the best weights, for margins of the usual size


def token_settings(
    problem: Problem, columns: int, settings: dict[str, Any], budget: Budget, walk: Walk
) -> dict[str, Any]:
    """The settings with a step (gamma) and a clip, checked if given.

    Guarantee: the step is at most 2 / beta, beta being a bound on the curvature of every node's loss for rows with
    entries in [-1, 1]: then gradient steps are non-expansive. Single rows are clipped, so that losses stay convex.
    """
    dimension = columns + problem.fit_intercept
    clip = settings.get("clip")
    if clip is None:
        clip = ROW_CLIP * min(problem.loss.lipschitz, 1.0) * math.sqrt(1.0 + columns / 3.0)
    step = settings.get("gamma")
    if step is None:
        step = _step(problem, dimension, budget, walk, clip, settings.get("relation", Relation.REPLACE))
    check_step(step, problem, dimension)
    return settings | {"gamma": step, "clip": clip}


def longest_step(problem: Problem, dimension: int) -> float:
    """2 / beta: entries of rows lie in [-1, 1], so that the square of a row's norm is at most their number."""
    return 2.0 / (problem.loss.smoothness * dimension)


def check_step(step: float, problem: Problem, dimension: int) -> None:
    """Refuse a step of which it is not known that it is non-expansive."""
    longest = longest_step(problem, dimension)
    if not 0.0 < step <= longest:
        raise ValueError(
            f"gamma must be above 0 and at most {longest:.3g}: a step of the token must be non-expansive; got {step}."
        )


def _step(problem: Problem, dimension: int, budget: Budget, walk: Walk, clip: float, relation: Any) -> float:
    """The length for which what is left of the way and the noise add up to the least; no guarantee rests on it."""
    longest = longest_step(problem, dimension)
    if budget.is_infinite:
        return 0.5 * longest
    multiplier = float(walk.local.max()) / budget.gaussian_mu()
    deviation = Gaussian(multiplier).deviation(clipped_sum(relation_from(relation)) * clip)
    curvature, noise = SPREAD * problem.loss.smoothness, deviation * math.sqrt(dimension)

    def error(step: float) -> float:
        left = math.exp(-step * curvature * len(walk.stops))  # of the first distance; the noise fades alike
        return (DISTANCE * left) ** 2 + noise**2 * 0.5 * step / curvature * (1.0 - left**2)

    return min((0.5 * longest * 0.7**k for k in range(40)), key=error)
