"""The draws of `sampling` with NumPy: the same bits, and nothing to compile where there are few of them."""

from __future__ import annotations

import numpy as np

from discreet.kernels import elementary
from discreet.kernels.elementary import exponential_from_bits, log_fast, normal_pair_from_bits

_FIRST_BIT, _SIGN = np.uint64(1), np.uint64(63)
# Of the scale and of the draw: more than what the transforms can be wrong by, see docs/guarantees/randomness.md.
GUARD = 2.0**-46
# Radius words outside these bounds leave the radius open by more than the guard allows.
FIRST_WORD, LAST_WORD = np.uint64(1 << 44), np.uint64((1 << 64) - (1 << 30))


def fill_uniform(words, out):
    """Uniform draws on the open interval (0, 1); one word each."""
    out[:] = elementary.uniform_from_bits(words[: out.size])


def fill_normal(words, out):
    """Standard normal draws; one word each, one more when the number of draws is odd."""
    half, pairs = out.size // 2, (out.size + 1) // 2
    first, second = normal_pair_from_bits(words[:pairs], words[pairs : 2 * pairs])
    out[:half], out[half : 2 * half] = first[:half], second[:half]
    out[2 * half :] = first[half:]


def fill_laplace(words, out):
    """Laplace draws of scale 1; the top bit of a word is the sign, the other 63 the size."""
    size = exponential_from_bits(words[: out.size] << _FIRST_BIT)
    out[:] = np.where(words[: out.size] >> _SIGN, -size, size)


def fill_gumbel(words, out):
    """Standard Gumbel draws -ln(-ln U); one word each."""
    out[:] = -log_fast(exponential_from_bits(words[: out.size]))


def round_normal(words, scale, out, undecided):
    """The integers nearest to normal draws with this standard deviation; see `sampling.round_normal`."""
    half = out.size // 2
    fill_normal(words, out)
    radius_words = np.concatenate([words[:half], words[: out.size - half]])
    return _round(scale, out, undecided, (radius_words < FIRST_WORD) | (radius_words > LAST_WORD))


def round_laplace(words, scale, out, undecided):
    """The same for Laplace draws of this scale, made as by `fill_laplace`."""
    fill_laplace(words, out)
    return _round(scale, out, undecided, (words[: out.size] << _FIRST_BIT) < FIRST_WORD)


def _round(scale, out, undecided, far):
    """Round the draws, and write where double precision does not tell to which integer; returns how many there are."""
    out *= scale
    rounded = np.rint(out)
    places = np.flatnonzero((np.abs(out - rounded) + GUARD * (np.abs(out) + scale) > 0.5) | far)
    undecided[: places.size] = places
    out[:] = rounded
    return places.size
