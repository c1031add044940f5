"""The exponential mechanism over many vertices, kept up to date while few of their scores change.

A level l_j is the inner product of vertex j with the gradient sum. An entry is either one vertex, with utility
-l_j, or a pair of opposite ones, with utilities -l_j and l_j. `rate` is the inverse of the noise scale; the weight
of a vertex is the exponential of rate * utility - `reference`.

The weights are the leaves of a tree of sums, stored floor by floor in one array, leaves first: node k of floor f is
tree[floors[f] + k], and it is the sum of the nodes FAN * k, ..., FAN * k + FAN - 1 of the floor below. The last
number is the total. A change costs its ancestors, a draw one path from the top. Sums are always taken afresh from
the floor below and never corrected by differences, which would keep the rounding of weights long gone.
"""

from __future__ import annotations

from numba import njit

from discreet.kernels.greedy import rounded_change
from discreet.kernels.slopes import slope_of
from discreet.kernels.vectormath import exp_fast

FAN = 16
_MARK = -1.0  # a sum that waits to be taken afresh; no sum of weights is negative


@njit(cache=True, error_model="numpy", inline="always")
def _weight(level, rate, paired, reference):
    if not paired:
        return exp_fast(-rate * level - reference)
    size = abs(rate * level)
    return exp_fast(size - reference) + exp_fast(-size - reference)


@njit(cache=True, error_model="numpy")
def _sum_below(tree, floors, floor, k):
    """The sum of the children of node k."""
    first = floors[floor - 1] + FAN * k
    total = 0.0
    for child in range(first, min(first + FAN, floors[floor])):
        total += tree[child]
    return total


@njit(cache=True, error_model="numpy")
def weigh_all(levels, rate, paired, tree, floors):
    """Set the reference to the largest exponent and compute every weight and sum afresh."""
    reference = rate * (max(-levels.min(), levels.max()) if paired else -levels.min())
    for j in range(levels.size):
        tree[j] = _weight(levels[j], rate, paired, reference)
    for floor in range(1, floors.size - 1):
        for k in range(floors[floor + 1] - floors[floor]):
            tree[floors[floor] + k] = _sum_below(tree, floors, floor, k)
    return reference


@njit(cache=True, error_model="numpy")
def weigh_some(changed, levels, rate, paired, reference, tree, floors):
    """Bring the weights of the changed levels and the sums above them up to date; `changed` is used up."""
    for j in changed:
        tree[j] = _weight(levels[j], rate, paired, reference)
    count = changed.size
    for floor in range(1, floors.size - 1):
        parents = 0
        for q in range(count):
            k = changed[q] // FAN
            if tree[floors[floor] + k] != _MARK:
                tree[floors[floor] + k] = _MARK
                changed[parents] = k
                parents += 1
        count = parents
        for q in range(count):
            tree[floors[floor] + changed[q]] = _sum_below(tree, floors, floor, changed[q])


@njit(cache=True, error_model="numpy")
def draw(levels, rate, paired, tree, floors, uniforms):
    """A vertex with the probabilities of its weight: a path down the tree, then one of a pair; (index, sign)."""
    k = 0
    for floor in range(floors.size - 2, 0, -1):
        point = uniforms[floor] * tree[floors[floor] + k]
        first = floors[floor - 1] + FAN * k
        chosen = first
        for child in range(first, min(first + FAN, floors[floor])):
            if tree[child] > 0.0:
                chosen = child
                if point < tree[child]:
                    break
                point -= tree[child]
        k = chosen - floors[floor - 1]
    if paired and uniforms[0] * (1.0 + exp_fast(2.0 * rate * levels[k])) >= 1.0:
        return k, -1.0
    return k, 1.0


@njit(cache=True, error_model="numpy")
def push_column(start, stop, indices, values, push, margins, seen, touched, count):
    """Add a multiple of a sparse column to the margins; rows met for the first time join the touched ones."""
    for e in range(start, stop):
        i = indices[e]
        margins[i] += push * values[e]
        if not seen[i]:
            seen[i] = True
            touched[count] = i
            count += 1
    return count


@njit(cache=True, error_model="numpy")
def refresh_rows(
    row_start, row_columns, row_values, touched, scale, y, weight, code, parameter, clip, unit,
    margins, slopes, sums, dirty, changed,
):  # fmt: skip
    """Slopes of the touched rows at scale * margins, and the clipped sums, in units; lists the sums that changed."""
    count = 0
    for i in touched:
        old, new = slopes[i], slope_of(code, parameter, scale * margins[i], y[i])
        if new == old:
            continue
        slopes[i] = new
        share = 1.0 if weight.size == 0 else weight[i]
        for q in range(row_start[i], row_start[i + 1]):
            k, x = row_columns[q], row_values[q]
            sums[k] += rounded_change(x, old, new, share, clip, unit)
            if not dirty[k]:
                dirty[k] = True
                changed[count] = k
                count += 1
    for k in changed[:count]:
        dirty[k] = False
    return count
