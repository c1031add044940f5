"""Synthetic categories by the package `mbi` (private marginals, one graphical model): what with_mbi.py answers with.

Imported in an environment that has mbi and not discreet. The mechanism is MST of McKenna, Miklau and Sheldon (2021) in
rho-zCDP with rho = mu^2 / 2: one-way counts, a tree of pairs chosen by exponential mechanisms, counts of these pairs, a
third of rho each. "label": the pairs of all features with the label are measured without choosing, and the tree is one
of features. Under `replace` a table of counts moves by sqrt(2), its L1 distance from anything by 2.
"""

from __future__ import annotations

import itertools

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)

import mbi  # noqa: E402
import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402

ITERATIONS = 1_000


def counts(codes, levels, features):
    shape = [levels[j] for j in features]
    flat = np.ravel_multi_index([codes[:, j] for j in features], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).astype(np.float64)


def synthetic(codes, levels, rho, label, rng):
    """As many rows of codes as were given; the label is the last column."""
    rows, count = codes.shape
    names = [str(j) for j in range(count)]
    measured = []

    def measure(features, cost):
        exact = counts(codes, levels, features)
        noise = np.sqrt(2.0) / np.sqrt(2.0 * cost)
        noisy = exact + noise * rng.normal(size=exact.size)
        measured.append(mbi.LinearMeasurement(noisy, tuple(names[j] for j in features), stddev=noise))
        return noisy

    one_way = [np.maximum(measure((j,), rho / 3.0 / count), 0.0) for j in range(count)]
    pairs = tree(codes, levels, [one / one.sum() for one in one_way], count - label, rho / 3.0, rng)
    if label:
        pairs += [(j, count - 1) for j in range(count - 1)]
    for pair in pairs:
        measure(pair, rho / 3.0 / len(pairs))
    domain = mbi.Domain(names, levels)
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=float(rows), iters=ITERATIONS)
    made = model.synthetic_data(rows=rows).to_dict()
    return np.column_stack([np.asarray(made[name]) for name in names]).astype(np.int64)


def tree(codes, levels, one_way, features, rho, rng):
    """A spanning tree of the first features: pairs far from independent, chosen by exponential mechanisms."""
    distance = {
        (a, b): np.abs(counts(codes, levels, (a, b)) - len(codes) * np.outer(one_way[a], one_way[b]).ravel()).sum()
        for a, b in itertools.combinations(range(features), 2)
    }
    joined, chosen, epsilon = nx.utils.UnionFind(range(features)), [], np.sqrt(8.0 * rho / (features - 1))
    for _ in range(features - 1):
        left = [pair for pair in distance if joined[pair[0]] != joined[pair[1]]]
        scores = epsilon / (2.0 * 2.0) * np.array([distance[pair] for pair in left]) + rng.gumbel(size=len(left))
        chosen.append(left[int(np.argmax(scores))])
        joined.union(*chosen[-1])
    return chosen
