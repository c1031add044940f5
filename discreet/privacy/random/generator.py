"""Random numbers for noise and sampling: cryptographic by default, seeded only on request.

Both kinds of generator are the same machine: the words of a keystream, AES-256 in counter mode, turned into draws by
vectorised kernels. They differ only in the key. `docs/guarantees/randomness.md` says what is and is not claimed.

A Poisson sample of rows is known by a key: who has it finds the members among any rows, without drawing for the others.
All steps of a sample are one long sequence of trials, n for each step. It is cut into stretches, each with a key
stream of its own: what is drawn of a stretch does not depend on where a table is cut into blocks, nor on which of them
are asked for.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import operator
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._common.callers import warn
from discreet._common.exceptions import InsecureRandomnessWarning
from discreet._common.types import IndexArray
from discreet.privacy.random import exact

BLOCK = 16_384  # the most words asked for at once: words, zeros and draws of a block fit in a second-level cache
BYTES_PER_KEY = 1 << 26
_ZEROS = memoryview(bytes(8 * BLOCK))
MOST_TRIALS = 1 << 62
MEMBERS = 15 << 10  # expected of a stretch: as many draws cost much more than a new key, and take one block of words
Shape: TypeAlias = int | tuple[int, ...]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# Requests of at most _SMALL words are served from a buffer; larger ones are made to measure.
_BUFFER = 4_096
_SMALL = 512
_MAX_INTEGER = 1 << 62
FEW_DRAWS = 10_000  # which NumPy makes in milliseconds, while the first compiled ones take half a second
# What settles the draws that double precision leaves open.
SETTLE = {"normal": exact.settle_normals, "laplace": exact.settle_laplaces}
LARGEST_SCALE = 2.0**48  # of integer noise: draws and sums of it are exact doubles


class Keystream:
    """The output of AES-256 in counter mode over zeros; every 64 MiB it supplies its own next key.

    Changing the key bounds how far the words can be told from random ones, and means that a key found
    in memory does not give away the noise drawn before it.
    """

    def __init__(self, key: bytes) -> None:
        self._set_key(key)

    def _set_key(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        self._encrypt = Cipher(AES(key), CTR(bytes(16))).encryptor()
        self._bytes_left = BYTES_PER_KEY

    def fill(self, words: NDArray[np.uint64], count: int) -> None:
        """Overwrite the first `count` words, at most BLOCK; the array must be 2 words longer than that."""
        size = 8 * count
        if size > self._bytes_left:
            self._set_key(self._encrypt.update(bytes(32)))
        self._bytes_left -= size
        # Older versions of cryptography want room for 15 bytes more than they write.
        self._encrypt.update_into(_ZEROS[:size], words[: count + 2].view(np.uint8).data)


class DrawLock:
    """A context manager around each draw: threads take turns, and a draw inside a draw is refused.

    Every process has a lock of its own. After a fork that Python's hooks do not see (one made by C code), the child
    therefore does not wait for a thread that exists in its parent alone, and `process` differs from before, which
    tells the generator that its words are the parent's.

    Attributes
    ----------
    process : int
        The process of the latest draw.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._turns: dict[int, _Turn] = {}

    def __enter__(self) -> None:
        process = os.getpid()
        # `setdefault` is atomic: of two threads that come first in a new process, both get the same lock.
        turn = self._turns.get(process) or self._turns.setdefault(process, _Turn())
        # A thread may acquire it twice, so that a signal handler is refused below and does not wait for itself.
        turn.lock.acquire()
        if turn.taken:
            turn.lock.release()
            raise RuntimeError(
                "a RandomGenerator was asked for a draw in the middle of another draw, by a signal handler or a "
                "finaliser: give that code a generator of its own, secure_generator()"
            )
        turn.taken = True
        self.process, self._turn = process, turn

    def __exit__(self, *_: object) -> None:
        turn = self._turn
        turn.taken = False
        turn.lock.release()


class _Turn:
    """The lock of one process, and whether a draw is going on."""

    __slots__ = ("lock", "taken")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.taken = False


@dataclass(frozen=True)
class PoissonSample:
    """Independent samples of the rows 0..n-1, one a step; each row joins each of them with probability `rate`.

    Copies draw the same samples, wherever they are: a sample may be sent to other machines. The key is as secret as
    the rows, since the cost of a sampled release rests on nobody knowing who took part. A key serves one series of
    steps.

    Parameters
    ----------
    key : bytes
        32 random bytes; `RandomGenerator.poisson_sample` draws them.
    rows : int
        n, the number of rows that there are.
    rate : float
        In (0, 1].
    """

    key: bytes = field(repr=False)
    rows: int
    rate: float

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise ValueError(f"n must be >= 0, got {self.rows}")
        if not 0.0 < self.rate <= 1.0:
            raise ValueError(f"rate must be in (0, 1], got {self.rate}")

    def batches(self, steps: int) -> tuple[IndexArray, IndexArray]:
        """The members of the first samples: those of sample t are indices[indptr[t]:indptr[t + 1]], in order."""
        steps = operator.index(steps)
        if steps < 0 or self.rows * steps > MOST_TRIALS:
            raise ValueError(f"n and steps must be >= 0 and their product at most 2^62, got {self.rows} and {steps}")
        return self._drawn(0, 0, self.rows * steps, steps)

    def members(self, step: int, start: int, stop: int) -> IndexArray:
        """The members of sample number `step` among the rows start..stop-1, in order."""
        if not 0 <= start <= stop <= self.rows or step < 0 or (step + 1) * self.rows > MOST_TRIALS:
            raise ValueError(f"there are {self.rows} rows and none of number {start} to {stop}")
        base = step * self.rows
        return self._drawn(base, base + start, base + stop, 1)[1]

    def _drawn(self, base: int, first: int, last: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """The successes of the trials first..last-1, as rows of so many steps, the first of which begins at `base`."""
        from discreet.kernels import sampling

        length, decay = stretch_length(self.rate), -math.log1p(-self.rate) if self.rate < 1.0 else math.inf
        indptr, words = np.zeros(steps + 1, np.int64), np.empty(BLOCK + 2, np.uint64)
        found, state = np.empty(_room(self.rate * (last - first)), np.int64), (0, 0, 0)
        for number in range(first // length, -(-last // length)):
            stream, end = _stream(self.key, number), min((number + 1) * length, last)
            state = (number * length, *state[1:])
            while state[0] < end:
                wanted = min(_room(self.rate * (end - state[0])), BLOCK)
                if found.size - state[2] < wanted:
                    found = np.concatenate((found, np.empty(max(found.size, wanted), np.int64)))
                stream.fill(words, wanted)
                state = sampling.successes(words[:wanted], decay, first, end, self.rows, base, indptr, found, *state)
        indptr[state[1] + 1 :] = state[2]
        return indptr, found[: state[2]]


def stretch_length(rate: float) -> int:
    """How many trials have a key in common; from the rate alone, so that all who have a sample cut it alike."""
    return MOST_TRIALS if rate * MOST_TRIALS <= MEMBERS else math.ceil(MEMBERS / rate)


def _room(expected: float) -> int:
    """For a number of successes: hardly ever too small."""
    return max(0, int(expected + 5.0 * math.sqrt(expected))) + 16


def _stream(key: bytes, number: int) -> Keystream:
    domain = b"discreet poisson stretch 1:"  # part of every key: another text would change all seeded samples
    return Keystream(hashlib.sha256(domain + key + number.to_bytes(8, "little")).digest())


class RandomGenerator:
    """A source of random draws that cannot be copied.

    Made by `secure_generator`, `seeded_generator` or `generator_from`. One generator may be shared by threads. The
    same seed and the same sequence of calls give the same numbers; one call for 10 draws need not give
    the numbers of two calls for 5.

    Two copies of a generator would draw the same noise, and the difference of two releases would then be
    free of noise. Pickling and copying therefore raise `TypeError`: use `spawn`. After a fork, a secure
    generator in the child takes a new key from the operating system before its next draw, and a seeded one
    refuses to draw. A signal handler that draws from a generator in the middle of one of its draws is refused.

    Guarantee: nothing here reads data. Nobody without the key of a secure generator can in practice tell its
    draws from independent draws of the stated law, rounded to doubles.

    Attributes
    ----------
    secure : bool
        True if the key came from the operating system; False if whoever knows the seed can redo the draws.
    """

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self.secure = secure
        self._keystream: Keystream | None = Keystream(key)
        self._lock = DrawLock()
        self._process = self._lock.process  # where the key was made
        self._buffer = np.empty(_BUFFER + 2, np.uint64)
        self._buffered = 0
        self._block = np.empty(BLOCK + 2, np.uint64)
        _generators.add(self)

    def __repr__(self) -> str:
        return f"<RandomGenerator, {'secure' if self.secure else 'seeded'}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a RandomGenerator cannot be copied or pickled: use spawn() for each thread or task,"
            " and secure_generator() or a drawn seed in another process"
        )

    def _forget_key(self) -> None:
        """Called in the child after a fork; a new lock, as a thread of the parent may have held the old."""
        self._lock = DrawLock()
        self._set_keystream(None)

    def _set_keystream(self, keystream: Keystream | None) -> None:
        """Draw from another keystream, or from none; words of the old one are thrown away."""
        self._process = self._lock.process
        self._keystream = keystream
        self._buffered = 0

    def _words(self, count: int) -> NDArray[np.uint64]:
        """Fresh random words, at most a block; a view that lasts until the next call, so hold the lock."""
        if self._process != self._lock.process:  # a fork made by C code, which does not call `_forget_key`
            self._set_keystream(None)
        if self._keystream is None:
            if not self.secure:
                raise RuntimeError("a seeded RandomGenerator cannot be used after a fork: make one in the child")
            self._keystream = Keystream(os.urandom(32))
        if count > _SMALL:
            self._keystream.fill(self._block, count)
            return self._block[:count]
        if count > self._buffered:
            self._keystream.fill(self._buffer, _BUFFER)
            self._buffered = _BUFFER
        start = _BUFFER - self._buffered
        self._buffered -= count
        return self._buffer[start : start + count]

    def _transform(self, kernel: Callable[..., None], out: NDArray[Any], *tables: NDArray[Any]) -> None:
        """Fill `out` block by block; an even number of words for each, since normals come in pairs."""
        flat = out.reshape(-1)
        with self._lock:
            for start in range(0, flat.size, BLOCK):
                part = flat[start : start + BLOCK]
                kernel(self._words(part.size + part.size % 2), *tables, part)

    def uniform(self, size: Shape) -> Floats:
        """Uniform draws on the open interval (0, 1): odd multiples of 2^-53."""
        out = np.empty(size)
        self._transform(_kernels(out.size).fill_uniform, out)
        return out

    def normal(self, size: Shape, out: Floats | None = None) -> Floats:
        """Standard normal draws, written into `out` (contiguous, float64) if it is given."""
        if out is None:
            out = np.empty(size)
        wanted = (size,) if isinstance(size, numbers.Integral) else tuple(size)  # type: ignore[arg-type]
        if out.dtype != np.float64 or not out.flags.carray or out.shape != wanted:
            raise ValueError(f"out must be a writeable, C-contiguous float64 array of shape {wanted}")
        self._transform(_kernels(out.size).fill_normal, out)
        return out

    def laplace(self, size: Shape) -> Floats:
        """Laplace draws of scale 1 (standard deviation sqrt 2)."""
        out = np.empty(size)
        self._transform(_kernels(out.size).fill_laplace, out)
        return out

    def rounded_draws(self, law: Literal["normal", "laplace"], scale: float, size: Shape) -> Floats:
        """The integers nearest to draws of this law and scale: exact, whatever the precision of doubles.

        The scale is the standard deviation of normal draws, and that of Laplace draws over sqrt 2. An integer k comes
        with probability P(k - 1/2 < scale Z < k + 1/2), Z being a standard draw. Draws are rounded in double precision;
        the few that this leaves open are settled by further digits.
        """
        if not 0.0 < scale <= LARGEST_SCALE:
            raise ValueError(f"the scale of integer noise must be positive and at most 2^48, got {scale}")
        out = np.empty(size)
        flat, kernels, settle = out.reshape(-1), _kernels(out.size), SETTLE[law]
        fill_draws, round_draws = getattr(kernels, f"fill_{law}"), getattr(kernels, f"round_{law}")
        with self._lock:
            for start in range(0, flat.size, BLOCK):
                part = flat[start : start + BLOCK]
                words = self._words(part.size + part.size % 2)
                undecided = np.empty(part.size, np.int64)
                fill_draws(words, part)
                count = round_draws(words, float(scale), part, undecided)
                if count > 0:
                    settle(words.copy(), undecided[:count], float(scale), part, self._digits)
        return out

    def _digits(self, count: int) -> int:
        """So many random binary digits, a multiple of 64, as an integer; the lock is held."""
        return int.from_bytes(self._words(count // 64).tobytes(), "little")

    def gumbel(self, size: Shape) -> Floats:
        """Standard Gumbel draws, -ln(-ln U)."""
        out = np.empty(size)
        self._transform(_kernels(out.size).fill_gumbel, out)
        return out

    def gumbel_argmax(self, scores: ArrayLike) -> int:
        """The place of the largest score after standard Gumbel noise on each: exact, whatever the precision of doubles.

        Place i comes with probability exp(scores[i]) over the sum of all; a score of minus infinity never comes.
        """
        values = np.ascontiguousarray(scores, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values.max(initial=-np.inf)) or np.isnan(values).any():
            raise ValueError("scores must be a list of numbers, at least one of them finite and none NaN or infinite")
        words = np.frombuffer(self.bytes(8 * values.size), np.uint64)
        noisy = np.empty(values.size)
        _kernels(noisy.size).fill_gumbel(words, noisy)
        noisy += values
        places = exact.leaders(noisy, words)
        if places.size == 1:
            return int(places[0])
        with self._lock:
            return int(places[exact.largest(values[places].tolist(), words[places].tolist(), self._digits)])

    def integers(self, high: int, size: Shape) -> Integers:
        """Unbiased draws from 0, 1, ..., high - 1, for high up to 2^62."""
        high = operator.index(high)
        if not 1 <= high <= _MAX_INTEGER:
            raise ValueError(f"high must be between 1 and 2^62, got {high}")
        out = np.empty(size, np.int64)
        flat = out.reshape(-1)
        filled = 0
        with self._lock:
            while filled < flat.size:
                words = self._words(min(flat.size - filled, BLOCK))
                filled += _kernels().bounded_integers(words, high, flat[filled:])
        return out

    def permutation(self, n: int) -> Integers:
        """A uniformly random order of 0, 1, ..., n - 1."""
        unplaced = operator.index(n)
        order = np.arange(unplaced, dtype=np.int64)
        with self._lock:
            while unplaced > 1:
                unplaced = _kernels().shuffle(self._words(min(unplaced, BLOCK)), order, unplaced)
        return order

    def choice(self, probabilities: ArrayLike, size: Shape) -> Integers:
        """Independent indices with the given probabilities, by the alias method; never one of probability 0.

        The time taken depends on the probabilities, which must therefore be public.
        """
        p = np.ascontiguousarray(probabilities, dtype=np.float64)
        if p.ndim != 1 or p.size == 0 or not (np.isfinite(p).all() and (p >= 0).all()):
            raise ValueError("probabilities must be a non-empty list of finite numbers >= 0")
        if not math.isclose(p.sum(), 1.0, abs_tol=1e-8):
            raise ValueError(f"probabilities must sum to 1, not to {p.sum()}")
        out = np.empty(size, np.int64)
        self._transform(_kernels().fill_choice, out, *_kernels().alias_table(p))
        return out

    def bernoulli_indices(self, n: int, rate: float) -> Integers:
        """Rows of a Poisson sample: each of 0..n-1 independently with probability `rate`, in order."""
        return self.poisson_batches(n, rate, 1)[1]

    def poisson_batches(self, n: int, rate: float, steps: int) -> tuple[Integers, Integers]:
        """Independent Poisson samples of the rows 0..n-1, each row with probability `rate` in (0, 1].

        Returns
        -------
        indptr, indices : ndarray of int64
            The rows of sample t, in increasing order, are indices[indptr[t]:indptr[t + 1]].
        """
        return self.poisson_sample(n, rate).batches(steps)

    def poisson_sample(self, n: int, rate: float) -> PoissonSample:
        """The samples of `poisson_batches`, without a number of steps: a fresh key, from which all of them follow."""
        return PoissonSample(self.bytes(32), operator.index(n), float(rate))

    def rekey(self, context: bytes) -> None:
        """Let the draws to come depend on `context`, for example the digest of a plan, if this generator is seeded.

        Runs of two plans under one seed then have independent noise: with equal draws the difference of two
        releases would be free of noise. A secure generator never draws the same twice and is left as it is.
        """
        if self.secure:
            return
        domain = b"discreet keyed stream 1:"  # as for `spawn`
        key = hashlib.sha256(domain + self.bytes(32) + context).digest()
        with self._lock:
            self._set_keystream(Keystream(key))

    def bytes(self, n: int) -> bytes:
        """Uniformly random bytes."""
        words = np.empty(-(-n // 8), np.uint64)
        with self._lock:
            for start in range(0, words.size, BLOCK):
                part = words[start : start + BLOCK]
                part[:] = self._words(part.size)
        return words.tobytes()[:n]

    def spawn(self, k: int) -> list[RandomGenerator]:
        """Make k independent generators, as secure as this one: one for each worker."""
        domain = b"discreet spawned stream 1:"  # part of every key: another text would change all seeded draws
        keys = (hashlib.sha256(domain + self.bytes(32)).digest() for _ in range(k))
        return [RandomGenerator(key, secure=self.secure) for key in keys]


_generators: weakref.WeakSet[RandomGenerator] = weakref.WeakSet()


def _forget_keys_after_fork() -> None:
    for generator in list(_generators):
        generator._forget_key()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_keys_after_fork)


def _kernels(draws: float = math.inf) -> ModuleType:
    """The functions that turn words into draws; few draws need no Numba, and have the same bits."""
    if draws <= FEW_DRAWS:
        from discreet.kernels import elementary

        return elementary
    from discreet.kernels import sampling

    return sampling


def secure_generator() -> RandomGenerator:
    """Return a cryptographic generator, keyed by the operating system; the default for all noise."""
    return RandomGenerator(os.urandom(32), secure=True)


def seeded_generator(seed: int) -> RandomGenerator:
    """Return a reproducible generator: noise that anyone who knows the seed can subtract."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise TypeError(f"a seed must be an integer >= 0, got {seed!r}")
    return RandomGenerator(hashlib.sha256(b"discreet seeded stream 1:%d" % int(seed)).digest(), secure=False)


def generator_from(random_state: object = None) -> RandomGenerator:
    """Turn scikit-learn's `random_state` into a generator.

    None gives a secure generator, and a `RandomGenerator` is returned as it is. An integer, or a seed drawn from a
    NumPy generator, gives a seeded one and raises `InsecureRandomnessWarning`: `sklearn.clone` copies NumPy
    generators together with their state, so that what they give is as repeatable as an integer. Whoever draws noise for
    a plan calls `rekey` with the plan's digest first.
    """
    if random_state is None:
        return secure_generator()
    if isinstance(random_state, RandomGenerator):
        return random_state
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        random_state = int.from_bytes(random_state.bytes(16), "little")
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral) or random_state < 0:
        raise TypeError(
            f"random_state must be None, an integer >= 0, a RandomGenerator or a NumPy generator, got {random_state!r}"
        )
    message = "random_state makes the noise reproducible: whoever knows the seed can remove it"
    warn(message, InsecureRandomnessWarning)
    return seeded_generator(int(random_state))
