"""Randomised response: each person answers a question at random, mostly truthfully, before anybody collects it.

Theorem and proof: docs/guarantees/mechanisms.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._common.checks import number_in, whole
from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import generator_from
from discreet.privacy.relation import Relation
from discreet.privacy.statement import belief_after, percent_at_most

_DRAWS = 1 << 62  # equally likely integers, of which a probability is a share
_LARGEST_EPSILON = 20.0  # above it the accountant calls so little noise none


class RandomisedResponse:
    """Answers to one question with k possible answers, randomised by whoever gives them: local differential privacy.

    With probability `noise` the response is drawn uniformly from all categories, else it is the truth. Nobody has to
    trust whoever collects the responses.

    Guarantee: epsilon-DP for each person's answer (delta = 0), exactly: for some response and two answers the ratio
    of the probabilities is e^epsilon. Who answers twice has spent it twice. It says nothing about who took part.

    Parameters
    ----------
    epsilon : float
        The privacy loss of one answer, above 0 and at most 20.
    categories : sequence, default=(False, True)
        The possible answers, at least two; public.
    random_state : int, RandomGenerator or None, default=None
        None draws from a secure generator; a seed is for tests, and whoever knows it can undo the responses.

    Attributes
    ----------
    noise : float
        The probability of a uniformly drawn response, k / (e^epsilon + k - 1).
    truth : float
        The probability that a response is the truth, e^epsilon / (e^epsilon + k - 1).
    event : DpEvent
        What one answer costs, for the accountant and the ledger.
    guarantee : Guarantee
        The promise, as a statement.

    Examples
    --------
    >>> from discreet.privacy import RandomisedResponse
    >>> from discreet.privacy.random.generator import seeded_generator
    >>> asked = RandomisedResponse(epsilon=1.0, categories=["no", "yes"], random_state=seeded_generator(0))
    >>> round(asked.truth, 3)
    0.731
    >>> responses = asked.randomise(["yes"] * 300 + ["no"] * 700)
    >>> asked.estimate(responses).round(2)
    array([0.75, 0.25])
    >>> asked.standard_error([0.7, 0.3], 1000).round(3)
    array([0.03, 0.03])
    """

    def __init__(
        self, epsilon: float = 1.0, categories: Sequence[Hashable] = (False, True), random_state: Any = None
    ) -> None:
        self.epsilon = number_in("epsilon", epsilon, 0.0, _LARGEST_EPSILON, above=True)
        self.categories = tuple(categories)
        if len(self.categories) < 2 or len(set(self.categories)) < len(self.categories):
            raise ValueError("categories must be at least two different answers.")
        if np.array(self.categories, dtype=object).ndim != 1:
            raise ValueError("categories must be single values, such as texts or numbers, and not lists.")
        self._threshold = _threshold(self.epsilon, len(self.categories))
        if self._threshold == _DRAWS:
            raise ValueError(f"epsilon = {self.epsilon:g} is too small: a response would always be drawn at random.")
        self._rng = generator_from(random_state)
        # Two questions under one seed must not share their draws: their difference would be free of noise.
        self._rng.rekey(f"randomised response {self.epsilon!r} {self.categories!r}".encode())

    @property
    def noise(self) -> float:
        return self._threshold / _DRAWS

    @property
    def truth(self) -> float:
        return 1.0 - self.noise + self.noise / len(self.categories)

    @property
    def event(self) -> Any:
        return accounting.randomised_response_event(self.noise, len(self.categories))

    @property
    def guarantee(self) -> Guarantee:
        promise = Guarantee(self.epsilon, 0.0, Relation.REPLACE, self.event)
        return promise if self._rng.secure else promise.with_seed()

    def statement(self) -> str:
        """Return what the promise means for a person who is asked, in plain words."""
        half, guess = belief_after(0.5, self.epsilon), 0.5 + 0.5 * (1.0 - self.noise)
        seeded = " ATTENTION: the draws come from a seed, and whoever knows it knows the answer."
        return (
            f"With probability {self.noise:.3g} your response is drawn at random and says nothing about you; else it "
            "is your answer. Nobody but you knows which. If someone thought it 50 % likely that your answer is a "
            "certain one, and not a certain other one, your response can make it at most "
            f"{percent_at_most(half)} likely in their eyes. If they then had to guess, they would be right at most "
            f"{percent_at_most(guess)} of the time. Each further response to the same question reveals as much again."
            f"{'' if self._rng.secure else seeded}"
        )

    def randomise(self, answers: ArrayLike) -> NDArray[Any]:
        """Return one response for each answer.

        Guarantee: epsilon-DP for each answer by itself, so for the list under `replace`; each call costs `event` again.

        Parameters
        ----------
        answers : array-like
            The true answers, one for each person; each must be one of the categories.

        Returns
        -------
        ndarray of the same length
        """
        true = self._places(answers, "answers")
        # All draws are made for every person, so that the time taken does not depend on the answers.
        drawn = self._rng.integers(len(self.categories), true.size)
        ignored = self._rng.integers(_DRAWS, true.size) < self._threshold
        return _array(self.categories)[np.where(ignored, drawn, true)]

    def estimate(self, responses: ArrayLike) -> FloatArray:
        """Return unbiased estimates of the shares of the true answers, in the order of the categories.

        They add up to 1; those of rare answers may be negative.

        Parameters
        ----------
        responses : array-like
            What `randomise` returned, for at least one person.

        Returns
        -------
        ndarray
        """
        places = self._places(responses, "responses")
        whole("the number of responses", places.size, least=1)
        rates = np.bincount(places, minlength=len(self.categories)) / places.size
        return np.asarray((rates - self.noise / len(self.categories)) / (1.0 - self.noise))

    def standard_error(self, shares: ArrayLike, people: int, population: bool = False) -> FloatArray:
        """Return the standard deviation of each estimated share, exact for the given true shares.

        Parameters
        ----------
        shares : array-like
            True shares of the categories, or estimates, which are cut to between 0 and 1.
        people : int
            How many answered.
        population : bool, default=False
            Whether the estimate is of the population from which the people were drawn independently, which adds the
            error of the sample; else it is of the people who answered.

        Returns
        -------
        ndarray
        """
        share = np.clip(np.asarray(shares, dtype=np.float64), 0.0, 1.0)
        if share.shape != (len(self.categories),):
            raise ValueError(f"shares must be {len(self.categories)} numbers, one for each category.")
        people = whole("people", people, least=1)
        lie = self.noise / len(self.categories)
        each = share * self.truth * (1.0 - self.truth) + (1.0 - share) * lie * (1.0 - lie)
        if population:
            seen = lie + (1.0 - self.noise) * share
            each = seen * (1.0 - seen)
        return np.asarray(np.sqrt(each / people) / (1.0 - self.noise))

    def _places(self, answers: ArrayLike, name: str) -> NDArray[np.int64]:
        """The places of answers among the categories; an answer is private, so no message shows one."""
        place = {category: number for number, category in enumerate(self.categories)}
        values = np.asarray(answers, dtype=object)
        if values.ndim != 1:
            raise ValueError(f"{name} must be a list with one entry for each person.")
        places = np.fromiter((_lookup(place, value) for value in values), np.int64, values.size)
        if (places < 0).any():
            raise ValueError(f"{name} must all be among the {len(place)} categories.")
        return places

    def __repr__(self) -> str:
        return f"RandomisedResponse(epsilon={self.epsilon:g}, categories={self.categories!r})"


def _threshold(epsilon: float, categories: int) -> int:
    """How many of 2^62 equally likely draws make the response uniform: enough that epsilon is not exceeded.

    It is rounded up to 53 binary digits, so that the share of the draws is a double without rounding.
    """
    growth = Fraction(math.expm1(epsilon)) * (1 - Fraction(1, 2**48))  # below e^epsilon - 1, whatever was rounded
    draws = math.ceil(_DRAWS * categories / (growth + categories))
    unit = 1 << max(0, draws.bit_length() - 53)
    return min(_DRAWS, -(-draws // unit) * unit)


def _lookup(place: dict[Hashable, int], value: Any) -> int:
    """The place of an answer, -1 if it has none; the error of a dictionary would hold the answer."""
    try:
        return place.get(value, -1)
    except TypeError:  # cannot be a key
        return -1


def _array(categories: Sequence[Hashable]) -> NDArray[Any]:
    """The categories as an array: of texts, numbers or truth values if all are of that type, else of objects."""
    kinds = {type(category) for category in categories}
    plain = np.array(categories) if len(kinds) == 1 and kinds <= {bool, int, float, str} else None
    # Large integers would become floats, and zero bytes at the end of a text would be lost.
    kept = plain is not None and repr(plain.tolist()) == repr(list(categories))
    return plain if plain is not None and kept else np.array(categories, dtype=object)
