"""Averaging on a graph: along a spanning tree, or by gossip.

Along a tree partial sums go up to the root, and the total comes down. By gossip neighbours exchange values again and
again until one node's value is close to the mean, and every message carries a little noise of its own. Without it, the
messages of a neighbour are exact combinations of the nodes' noisy gradients, and a node that writes down enough of them
can solve for each gradient: the noise of the others then hides nothing. docs/guarantees/decentralised.md, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.decentralised.network import Network
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """Exact averaging: each node sends its parent one sum, and every node hears the total.

    Parameters
    ----------
    network : Network
    root : int
    """

    network: Network
    root: int

    def __post_init__(self) -> None:
        if not 0 <= self.root < self.network.size:
            raise ValueError(f"the root must be a node, 0 to {self.network.size - 1}; got {self.root!r}.")

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """For each node the neighbour that it sends to, nearest to the root; the root's is itself."""
        distance = self.network.distances[self.root]
        found = enumerate(self.network.neighbours)
        return tuple(next((w for w in others if distance[w] < distance[node]), node) for node, others in found)

    @property
    def messages(self) -> int:
        """How many messages one average takes: one up and one down each edge of the tree."""
        return 2 * (self.network.size - 1)

    @property
    def local(self) -> FloatArray:
        """What someone sees of each node who reads all messages: at worst its value, with no noise but its own."""
        return np.ones(self.network.size)

    @property
    def variance(self) -> float:
        """Variance of the noise in the average, over that of one node's noise."""
        return 1.0 / self.network.size

    def seen_by(self, observers: Sequence[int]) -> FloatArray:
        """How much of each node's value observers who pool what they know can see: 1 all of it, 0 nothing.

        Guarantee: without the observers the tree falls into parts, and they see the sum of each part and nothing else:
        a node in a part of m nodes is seen with m times the variance of its own noise (Theorem 2).
        """
        part = np.arange(self.network.size)
        inside = set(observers)
        for node in np.argsort(self.network.distances[self.root], kind="stable"):
            parent = self.parents[node]
            if node not in inside and parent not in inside:
                part[node] = part[parent]
        sizes = np.bincount(part, minlength=self.network.size)
        return 1.0 / np.sqrt(sizes[part])

    def average(self, values: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> FloatArray:
        """Add up the nodes' noisy values along the tree, and return their mean; no further noise is drawn.

        The values are multiples of one step, a power of two, so that the sums are exact in every order.
        """
        sums = values.copy()
        for node in np.argsort(-self.network.distances[self.root], kind="stable"):
            if node != self.root:
                sums[self.parents[node]] += sums[node]
        return sums[self.root] / self.network.size

    def rounding(self, columns: int, rounds: int) -> float:
        """How much rounding can add to a loss, in all rounds.

        Guarantee: Theorem 3 of docs/guarantees/decentralised.md; 2^-29 bounds a grid's step over its noise.
        """
        return self.network.size * math.sqrt(columns * rounds) * 2.0**-29


LEAST_MESSAGE_NOISE = 2.0**-10  # below, rounding errors of the accounting come near to the noise
MOST_STEPS = 2_000
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Gossip:
    """Gossip averaging with fixed weights, as a public schedule.

    Step t sends m_t = a_t W m_{t-1} + (1 - a_t) m_{t-2} + noise; m_0 are the values to average. After the last step
    one node, the speaker, sends its value to all.

    Parameters
    ----------
    network : Network
    mixing : tuple of float
        The a_t, one for each step; all 1: plain gossip. The first is 1.
    message_noise : float
        Standard deviation of the noise of a message, over that of the noise in the values.
    speaker : int
        The node whose last value all nodes use.
    """

    network: Network
    mixing: tuple[float, ...]
    message_noise: float
    speaker: int

    def __post_init__(self) -> None:
        if not self.mixing or self.mixing[0] != 1.0 or not all(1.0 <= a <= 2.0 for a in self.mixing):
            raise ValueError(
                "mixing needs a number between 1 and 2 for each step; the first is 1: it has no step to look back to."
            )
        if not 0 <= self.speaker < self.network.size:
            raise ValueError(f"the speaker must be a node, 0 to {self.network.size - 1}; got {self.speaker!r}.")
        if not LEAST_MESSAGE_NOISE <= self.message_noise <= 1.0:
            raise ValueError(
                f"message_noise must be between {LEAST_MESSAGE_NOISE:g} and 1, got {self.message_noise!r}: without it,"
                " a neighbour's messages reveal what single nodes sent."
            )

    @property
    def steps(self) -> int:
        """How often neighbours exchange values for one average."""
        return len(self.mixing)

    @property
    def messages(self) -> int:
        """How many messages one average takes: one a step for each edge and direction; flooding, one for each node."""
        edges = sum(len(found) for found in self.network.neighbours)
        return self.steps * edges + self.network.size

    @property
    def local(self) -> FloatArray:
        """What someone sees of each node who reads all messages: its value, with no noise but its own."""
        return np.ones(self.network.size)

    @cached_property
    def _responses(self) -> FloatArray:
        """How much of noise j is in step t, for each eigenvector of the weights: an array [t, j, eigenvector].

        Noise 0 is that of the values, noise j > 0 that of the messages of step j.
        """
        eigenvalues = self.network.spectrum[0]
        found = np.zeros((self.steps + 1, self.steps + 1, self.network.size))
        found[0, 0] = 1.0
        for t, a in enumerate(self.mixing, start=1):
            before = found[t - 2] if t > 1 else np.zeros_like(found[0])
            found[t] = a * eigenvalues * found[t - 1] + (1.0 - a) * before
            found[t, t] = 1.0
        return found

    @property
    def _scales(self) -> FloatArray:
        """Standard deviations of the noises, over that of the values."""
        return np.array([1.0] + [self.message_noise] * self.steps)

    @cached_property
    def row(self) -> FloatArray:
        """The weights of the nodes in what the speaker sends; near 1 / size each."""
        vectors = self.network.spectrum[1]
        weights: FloatArray = vectors @ (vectors[self.speaker] * self._responses[self.steps, 0])
        return weights

    @property
    def variance(self) -> float:
        """Variance of the noise in what the speaker sends, over that of one node's noise; at best 1 / size."""
        return self._variance(self.message_noise)

    def _variance(self, message_noise: float) -> float:
        squares = (self.network.spectrum[1][self.speaker] ** 2 * self._responses[self.steps] ** 2).sum(axis=1)
        return float(squares[0] + message_noise**2 * squares[1:].sum())

    def seen_by(self, observers: Sequence[int]) -> FloatArray:
        """How much of each node's value observers who pool what they know can see: 1 all of it, 0 nothing.

        Guarantee: if the observers see the messages of their neighbours, the value that the speaker sends and their own
        noise, the shift of a node's value by d is to them a shift of a normal variable by at most result * d standard
        deviations of that node's noise (Theorem 1). Rounding errors are added, never taken off.
        """
        inside = set(observers)
        watched = sorted({w for v in inside for w in self.network.neighbours[v]} - inside)
        seen = [(w, t) for w in watched for t in range(self.steps)]
        seen += [] if self.speaker in inside else [(self.speaker, self.steps)]
        if not seen:  # there is nobody else
            return np.ones(self.network.size)
        return _fractions(self._view(seen, sorted(inside)))

    def _view(self, seen: list[tuple[int, int]], observers: list[int]) -> FloatArray:
        """How the messages seen depend on the noises [message, noise, node], those of the observers left out."""
        vectors = self.network.spectrum[1]
        nodes, times = np.array(seen).T
        view = (vectors[nodes][:, None, :] * self._responses[times]) @ vectors.T
        view *= self._scales[:, None]
        view[:, :, observers] = 0.0
        return view

    def average(self, values: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> FloatArray:
        """Run the schedule and return what the speaker sends.

        Guarantee: with values and a grid that have the noise that the plan says, each node's view costs what `seen_by`
        says.

        Parameters
        ----------
        values : array of shape (nodes, p)
            The nodes' values, each with its own noise already.
        grid : NoisyGrid
            The noise of the messages; without noise, for tests of the optimisation, its step is 0.
        rng : RandomGenerator
        """
        *_, last = self.exchange(values, grid, rng)
        return last[self.speaker]

    def exchange(self, values: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> Iterator[FloatArray]:
        """The messages of all nodes, step after step, the values themselves first; the last one only the speaker's."""
        before, now = np.zeros_like(values), values
        yield now
        for a in self.mixing:
            before, now = now, grid.release(rng, a * (self.network.weights @ now) + (1.0 - a) * before)
            yield now

    @cached_property
    def largest_message(self) -> float:
        """Bound on entries of messages, in deviations of the noise of a value: from values of 64, and 12 deviations."""
        shares = self._responses**2 @ self.network.spectrum[1].T ** 2  # of each noise in each message [t, noise, node]
        deviation = math.sqrt(float(np.einsum("j,tjw->tw", self._scales**2, shares).max()))
        return 64.0 * math.sqrt(self.network.size) * float(np.abs(self._responses[:, 0]).max()) + 12.0 * deviation

    def rounding(self, columns: int, rounds: int) -> float:
        """How much rounding can add to a loss, in all rounds, for grids of normal noise.

        Guarantee: Theorem 3 of docs/guarantees/decentralised.md; 2^-29 bounds a grid's step over its noise.
        """
        degree = max(len(found) for found in self.network.neighbours)
        # Sums of messages with weights of at most 3, in double precision.
        precision = 3.0 * self.largest_message * (degree + 3) * 2.0**-53 / self.message_noise
        entries, per_step = math.sqrt(self.network.size * columns * rounds), 3.0 * 2.0**-29 + precision
        return 2.0 * entries * (3.0 * 2.0**-29 / self.message_noise + per_step * math.sqrt(self.steps))


def _fractions(view: FloatArray) -> FloatArray:
    """For each node the length of what its noise-free shift becomes, in standard deviations of the view."""
    messages, noises, nodes = view.shape
    flat = view.reshape(messages, -1)
    covariance = flat @ flat.T
    # The view is computed to a few units of the last digit for each of the sums that it is made of; the trace bounds
    # the norm. An eigenvalue that is smaller than its error is not told from 0, and counts as "sees everything".
    error = 64.0 * _EPS * (noises**2 + nodes) * float(np.trace(covariance))
    eigenvalues, directions = np.linalg.eigh(covariance)
    safe = eigenvalues - error
    if safe[0] <= 0.0:
        return np.ones(nodes)
    lengths = np.sqrt(((directions.T @ view[:, 0, :]) ** 2 / safe[:, None]).sum(axis=0))
    return np.minimum(1.0, lengths + error / math.sqrt(safe[0]))


def chebyshev(second_eigenvalue: float, steps: int) -> tuple[float, ...]:
    """The mixing of accelerated gossip: the polynomial of W that is smallest between -second and +second eigenvalue."""
    square = second_eigenvalue**2
    mixing = [1.0]
    for t in range(1, steps):
        mixing.append(1.0 / (1.0 - square * mixing[-1] / (2.0 if t == 1 else 4.0)))
    return tuple(mixing)


def plan_gossip(
    network: Network,
    error: float = 0.1,
    steps: int | None = None,
    message_noise: float | None = None,
    accelerated: bool = True,
    speaker: int | None = None,
) -> Gossip:
    """Return a schedule that comes near enough to the mean.

    Parameters
    ----------
    network : Network
    error : float
        How far the weights of the nodes in the average may be from equal ones, over the length of these. It decides the
        number of steps, through the second eigenvalue of the averaging.
    steps : int, optional
        The number of steps itself.
    message_noise : float, optional
        Noise of a message over that of a value; by default so much that the variance of the average grows by a quarter.
    accelerated : bool
        Chebyshev's mixing, which needs about the square root of the steps of plain gossip.
    speaker : int, optional
        By default the node from which all others are nearest.
    """
    if not 0.0 < error < 1.0:
        raise ValueError(f"error must be between 0 and 1, got {error!r}.")
    mixing = _mixing(network, error, steps, accelerated)
    speaker = network.centre if speaker is None else speaker
    if message_noise is None:
        trial = Gossip(network, mixing, 1.0, speaker)
        values, messages = trial._variance(0.0), trial._variance(1.0) - trial._variance(0.0)
        message_noise = min(1.0, max(LEAST_MESSAGE_NOISE, math.sqrt(0.25 * values / messages)))
    return Gossip(network, mixing, message_noise, speaker)


def _mixing(network: Network, error: float, steps: int | None, accelerated: bool) -> tuple[float, ...]:
    second = network.second_eigenvalue
    if steps is None:
        ratio = 1.0 / max(second, 1e-12)
        far = math.sqrt(network.size) / error  # a node's own value has length 1, equal weights 1 / sqrt(size)
        plain, quick = math.log(far), math.acosh(far)
        steps = math.ceil(quick / math.acosh(ratio) if accelerated else plain / math.log(ratio))
    if not 1 <= steps <= MOST_STEPS:
        raise ValueError(f"gossip on this graph takes {steps} steps; at most {MOST_STEPS} are allowed.")
    return chebyshev(second, steps) if accelerated else (1.0,) * steps
