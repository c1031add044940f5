"""Norms and outer products of scaled rows times a matrix, in one pass over dense rows.

Groups of rows lie transposed in the cache, so that the innermost loops run along the rows. Groups are always computed
in full, the last one filled up with zeros: the bits of a row do not depend on where blocks begin. Parts of arrays are
copied in loops: Numba compiles an assignment of one slice to another for seconds, to word its error message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.lanes import add_products, lanes_of, no_lanes, sum_of_lanes
from discreet.kernels.small_rows import GAIN, GROUP, HIGH, LANES, LOW, SHIFT


@njit(cache=True, error_model="numpy", nogil=True)
def _transpose_scaled(X, start, columns, Z):
    """Scaled rows from `start` on, column by column: Z[j, i]; zeros beyond the last row."""
    n, p = X.shape
    count = min(GROUP, n - start)
    for i in range(count):  # row by row: reading down the columns takes three times as long
        for j in range(p):
            Z[j, i] = X[start + i, j]
    for j in range(p):
        z = Z[j]
        low, high, shift, gain = columns[LOW, j], columns[HIGH, j], columns[SHIFT, j], columns[GAIN, j]
        for i in range(GROUP):
            value = z[i]
            value = value if value > low else low
            value = value if value < high else high
            z[i] = (value - shift) * gain
    if count < GROUP:
        Z[:, count:] = 0.0


@njit(cache=True, error_model="numpy", nogil=True)
def _map(Z, maps, mapped):
    """Row k of `mapped` is the sum over j of maps[k, j] Z[j]; two rows at once, so that Z is read half as often."""
    count = maps.shape[0]
    for k in range(0, count - 1, 2):
        _map_two(Z, maps[k], maps[k + 1], mapped[k], mapped[k + 1])
    if count % 2:
        _map_one(Z, maps[count - 1], mapped[count - 1])


@njit(cache=True, error_model="numpy", nogil=True)
def _map_two(Z, first, second, one, two):
    one[:] = 0.0
    two[:] = 0.0
    fours = Z.shape[0] // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = Z[j], Z[j + 1], Z[j + 2], Z[j + 3]
        e, f, g, h = first[j], first[j + 1], first[j + 2], first[j + 3]
        s, t, u, v = second[j], second[j + 1], second[j + 2], second[j + 3]
        for i in range(GROUP):
            one[i] += (e * a[i] + f * b[i]) + (g * c[i] + h * d[i])
            two[i] += (s * a[i] + t * b[i]) + (u * c[i] + v * d[i])
    for j in range(fours, Z.shape[0]):
        a, e, s = Z[j], first[j], second[j]
        for i in range(GROUP):
            one[i] += e * a[i]
            two[i] += s * a[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _map_one(Z, weights, mapped):
    mapped[:] = 0.0
    fours = Z.shape[0] // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = Z[j], Z[j + 1], Z[j + 2], Z[j + 3]
        e, f, g, h = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for i in range(GROUP):
            mapped[i] += (e * a[i] + f * b[i]) + (g * c[i] + h * d[i])
    for j in range(fours, Z.shape[0]):
        a, e = Z[j], weights[j]
        for i in range(GROUP):
            mapped[i] += e * a[i]


@njit(cache=True, error_model="numpy", nogil=True)
def fill_mapped_squares(X, columns, last, maps, squares):
    """The squared norms of z M, z being the scaled row with `last` as its last entry; maps[k] is column k of M."""
    n, p = X.shape
    Z, total = np.zeros((p + 1, GROUP)), np.empty(GROUP)
    mapped = np.empty((maps.shape[0], GROUP))
    for start in range(0, n, GROUP):
        _transpose_scaled(X, start, columns, Z[:p])
        Z[p] = last
        _map(Z, maps, mapped)
        total[:] = 0.0
        for k in range(maps.shape[0]):
            a = mapped[k]
            for i in range(GROUP):
                total[i] += a[i] * a[i]
        for i in range(min(GROUP, n - start)):
            squares[start + i] = total[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _cut(mapped, factors, unit):
    """Entries times the factors of their rows, cut towards 0 to multiples of the unit; a unit of 0 cuts nothing."""
    if unit > 0.0:
        inverse = 1.0 / unit
        for i in range(GROUP):
            mapped[i] = np.trunc((factors[i] * mapped[i]) * inverse) * unit
    else:
        for i in range(GROUP):
            mapped[i] *= factors[i]


@njit(cache=True, error_model="numpy", nogil=True)
def add_outer_products(X, columns, last, maps, factors, unit, total):
    """Add a a' of the rows a = (factor z) M, cut to multiples of the unit, to the upper triangle of the total.

    z is the scaled row with `last` as its last entry; no maps: M leaves it as it is. Where the unit makes all products
    exact, so is their sum.
    """
    n, p = X.shape
    Z, factor = np.zeros((p + 1, GROUP)), np.zeros(GROUP)
    A = np.empty((total.shape[0], GROUP))
    for start in range(0, n, GROUP):
        count = min(GROUP, n - start)
        _transpose_scaled(X, start, columns, Z[:p])
        Z[p] = last
        for i in range(GROUP):
            factor[i] = factors[start + i] if i < count else 0.0
        if maps.shape[0]:
            _map(Z, maps, A)
        else:
            for k in range(A.shape[0]):
                for i in range(GROUP):
                    A[k, i] = Z[k, i]
        for k in range(A.shape[0]):
            _cut(A[k], factor, unit)
        _add_upper(A, total)


@njit(cache=True, error_model="numpy", nogil=True)
def _add_upper(A, total):
    """Add A A' to the upper triangle, two rows by two columns at once; each product is added up by lanes."""
    size = A.shape[0]
    for k in range(0, size - 1, 2):
        a, b = A[k], A[k + 1]
        for m in range(k, size - 1, 2):
            c, d = A[m], A[m + 1]
            ac = ad = bc = bd = no_lanes()
            for i in range(0, GROUP, LANES):
                e, f, g, h = lanes_of(a, i), lanes_of(b, i), lanes_of(c, i), lanes_of(d, i)
                ac, ad = add_products(ac, e, g), add_products(ad, e, h)
                bc, bd = add_products(bc, f, g), add_products(bd, f, h)
            total[k, m] += sum_of_lanes(ac)
            total[k, m + 1] += sum_of_lanes(ad)
            total[k + 1, m] += sum_of_lanes(bc)
            total[k + 1, m + 1] += sum_of_lanes(bd)
    if size % 2:
        d = A[size - 1]
        for k in range(size):
            ad = no_lanes()
            for i in range(0, GROUP, LANES):
                ad = add_products(ad, lanes_of(A[k], i), lanes_of(d, i))
            total[k, size - 1] += sum_of_lanes(ad)
