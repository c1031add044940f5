"""Concordance of columns with a target: over all pairs of rows, how many agree in order, less how many disagree.

Sums are of products of two row weights; the caller rounds the weights so that these sums are exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def add(tree, rank, weight):
    """Add a weight at a rank of a Fenwick tree, which holds running sums."""
    place = rank + 1
    while place < tree.size:
        tree[place] += weight
        place += place & -place


@njit(cache=True)
def below(tree, rank):
    """The weight at lower ranks."""
    total = 0.0
    while rank > 0:
        total += tree[rank]
        rank -= rank & -rank
    return total


@njit(cache=True)
def of_entries(rows, values, rank, weight, balance, tree):
    """The concordance of one column, from its non-zero entries in ascending order; the tree is empty before and after.

    `rank` is that of each row's target, `balance` the weight of all rows with a lower target less that of those with
    a higher one. Rows that are not listed have the entry 0: their pairs among each other are ties.
    """
    total, listed = 0.0, 0.0
    for k in range(rows.size):
        add(tree, rank[rows[k]], weight[rows[k]])
        listed += weight[rows[k]]
    for k in range(rows.size):  # pairs of an entry and a zero
        i = rows[k]
        among_listed = below(tree, rank[i]) - (listed - below(tree, rank[i] + 1))
        total += np.sign(values[k]) * weight[i] * (balance[i] - among_listed)
    for k in range(rows.size):
        add(tree, rank[rows[k]], -weight[rows[k]])
    seen, start = 0.0, 0
    while start < rows.size:  # pairs of two entries, the larger one second; equal ones are ties
        end = start
        while end < rows.size and values[end] == values[start]:
            i = rows[end]
            total += weight[i] * (below(tree, rank[i]) - (seen - below(tree, rank[i] + 1)))
            end += 1
        for k in range(start, end):
            add(tree, rank[rows[k]], weight[rows[k]])
            seen += weight[rows[k]]
        start = end
    for k in range(rows.size):
        add(tree, rank[rows[k]], -weight[rows[k]])
    return total


@njit(cache=True)
def of_column(rows, values, mirrored, table_rows, rank, weight, balance, tree):
    """The concordance of a column; `mirrored` adds the row -x for each row x."""
    if mirrored:
        rows, values = np.concatenate((rows, rows + table_rows)), np.concatenate((values, -values))
    order = np.argsort(values)
    return of_entries(rows[order], values[order], rank, weight, balance, tree)


@njit(cache=True)
def of_dense(X, mirrored, rank, ranks, weight, balance, out):
    """The concordance of each column of a dense table."""
    tree = np.zeros(ranks + 1)
    for j in range(X.shape[1]):
        column = X[:, j].astype(np.float64)
        rows = np.flatnonzero(column)
        out[j] = of_column(rows, column[rows], mirrored, X.shape[0], rank, weight, balance, tree)


@njit(cache=True)
def of_sparse(indptr, indices, data, mirrored, table_rows, rank, ranks, weight, balance, out):
    """The same of compressed columns."""
    tree = np.zeros(ranks + 1)
    for j in range(indptr.size - 1):
        stored = slice(indptr[j], indptr[j + 1])
        values = data[stored].astype(np.float64)
        kept = np.flatnonzero(values)
        rows = indices[stored].astype(np.int64)[kept]
        out[j] = of_column(rows, values[kept], mirrored, table_rows, rank, weight, balance, tree)
