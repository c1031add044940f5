"""From random 64-bit words to draws: the loops behind `discreet.privacy.random.generator`.

Every kernel is told which words to use, so it is a pure function. The transforms use a fixed number of
words per draw; the kernels that reject say how far they came, and the caller supplies more words. `elementary` has the
most common ones without Numba.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from discreet.kernels.elementary import FIRST_WORD, GUARD, LAST_WORD
from discreet.kernels.vectormath import (
    exponential_from_bits,
    log_fast,
    multiply_high,
    normal_pair_from_bits,
    uniform_from_bits,
)

_kernel = njit(cache=True, nogil=True, error_model="numpy")

_TWO_64 = 18446744073709551616.0


@_kernel
def fill_uniform(words, out):
    """Uniform draws on the open interval (0, 1); one word each."""
    for i in range(out.size):
        out[i] = uniform_from_bits(words[i])


@_kernel
def fill_normal(words, out):
    """Standard normal draws; one word each, one more when the number of draws is odd."""
    half = out.size // 2
    pairs = (out.size + 1) // 2
    for i in range(half):
        out[i], out[half + i] = normal_pair_from_bits(words[i], words[pairs + i])
    if pairs > half:
        out[out.size - 1], _ = normal_pair_from_bits(words[half], words[pairs + half])


@_kernel
def fill_laplace(words, out):
    """Laplace draws of scale 1; the top bit of a word is the sign, the other 63 the size."""
    for i in range(out.size):
        size = exponential_from_bits(words[i] << uint64(1))
        out[i] = -size if words[i] >> uint64(63) else size


@_kernel
def _is_open(draw, scale):
    """Whether the exact draw may lie on the other side of the nearest half-integer."""
    return abs(draw - np.rint(draw)) + GUARD * (abs(draw) + scale) > 0.5


@_kernel
def round_normal(words, scale, out, undecided):
    """Round the draws that `fill_normal` made of these words, times the scale, to integers.

    Writes into `undecided` the places where double precision does not tell which integer that is, and returns how
    many there are.
    """
    half = out.size // 2
    count = 0
    for i in range(out.size):
        draw = scale * out[i]
        radius_word = words[i if i < half else i - half]
        if _is_open(draw, scale) or radius_word < FIRST_WORD or radius_word > LAST_WORD:
            undecided[count] = i
            count += 1
        out[i] = np.rint(draw)
    return count


@_kernel
def round_laplace(words, scale, out, undecided):
    """The same for Laplace draws of this scale, of those that `fill_laplace` made of the words."""
    count = 0
    for i in range(out.size):
        draw = scale * out[i]
        if _is_open(draw, scale) or (words[i] << uint64(1)) < FIRST_WORD:
            undecided[count] = i
            count += 1
        out[i] = np.rint(draw)
    return count


@_kernel
def fill_gumbel(words, out):
    """Standard Gumbel draws -ln(-ln U); one word each."""
    for i in range(out.size):
        out[i] = -log_fast(exponential_from_bits(words[i]))


@_kernel
def bounded_integers(words, high, out):
    """Write unbiased draws from 0..high-1 into `out` and return how many there are.

    The product of a word and `high` has the draw in its upper half. A value owns either the floor or the
    ceiling of 2^64 / high words; refusing lower halves under 2^64 mod high leaves every value the floor.
    """
    bound = uint64(high)
    refused_below = (uint64(0) - bound) % bound
    filled = 0
    for i in range(words.size):
        out[filled] = int64(multiply_high(words[i], bound))
        filled += words[i] * bound >= refused_below
        if filled == out.size:
            break
    return filled


@_kernel
def shuffle(words, order, unplaced):
    """Fisher-Yates from the end; `unplaced` entries are still to be placed, returns how many remain."""
    for word in words:
        if unplaced < 2:
            break
        bound = uint64(unplaced)
        low = word * bound
        # The division is slow, and needed only in the rare case that the cheap test cannot clear.
        if low < bound and low < (uint64(0) - bound) % bound:
            continue
        unplaced -= 1
        chosen = int64(multiply_high(word, bound))
        order[unplaced], order[chosen] = order[chosen], order[unplaced]
    return unplaced


@_kernel
def alias_table(probabilities):
    """Columns of equal mass, each shared by at most two outcomes (Walker's alias method).

    Column i is i with probability threshold[i] / 2^64 and partner[i] otherwise. A column that rounding
    leaves without a partner lacks almost nothing, so an outcome of probability 0 always finds one.
    """
    n = probabilities.size
    mass = probabilities * (n / probabilities.sum())
    threshold = np.zeros(n, np.uint64)
    partner = np.arange(n)
    light, heavy = np.empty(n, np.int64), np.empty(n, np.int64)
    n_light, n_heavy = 0, 0
    for i in range(n):
        if mass[i] < 1.0:
            light[n_light] = i
            n_light += 1
        else:
            heavy[n_heavy] = i
            n_heavy += 1
    while n_light > 0 and n_heavy > 0:
        n_light -= 1
        giver, taker = heavy[n_heavy - 1], light[n_light]
        threshold[taker] = uint64(mass[taker] * _TWO_64)
        partner[taker] = giver
        mass[giver] -= 1.0 - mass[taker]
        if mass[giver] < 1.0:
            n_heavy -= 1
            light[n_light] = giver
            n_light += 1
    return threshold, partner


@_kernel
def fill_choice(words, threshold, partner, out):
    """Draw from an alias table; the product of word and size has the column above, the coin below."""
    bound = uint64(threshold.size)
    for i in range(out.size):
        column = int64(multiply_high(words[i], bound))
        out[i] = column if words[i] * bound < threshold[column] else partner[column]


@_kernel
def successes(words, decay, first, end, n, base, indptr, found, position, step, count):
    """Continue a sequence of independent trials, n a step, at `position`, up to `end`; successes go into `found`.

    Step 0 begins at trial `base`; in `found` they are numbered from the beginning of their step on. Successes before
    `first` are not kept. The gap to the next success is geometric: the floor of an exponential draw over
    decay = -ln(1 - rate). Returns (position, step, count), to be passed to the next call until the position is the end:
    the geometric law has no memory. `found` has room for one success a word.
    """
    limit = 4611686018427387904.0  # 2^62, beyond any end; float(end) may lie below it, and would then be a success
    begins = base + step * n
    gaps = np.empty(words.size)
    for i in range(words.size):
        gaps[i] = min(exponential_from_bits(words[i]) / decay, limit)
    for gap in gaps:
        position += int64(gap)
        if position >= end:
            return end, step, count
        if position >= first:
            while position - begins >= n:
                begins += n
                step += 1
                indptr[step] = count
            found[count] = position - begins
            count += 1
        position += 1
    return position, step, count
