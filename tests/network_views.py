"""What a node of a network sees, written down message by message: the reference for the accounting of gossip."""

from __future__ import annotations

import mpmath
import numpy as np

from discreet.federated.decentralised.network import Network


def network(edges, size):
    neighbours = [sorted({b for a, b in edges if a == i} | {a for a, b in edges if b == i}) for i in range(size)]
    return Network(tuple(f"n{i}" for i in range(size)), tuple(map(tuple, neighbours)))


PATH = network([(0, 1), (1, 2)], 3)
RING = network([(i, (i + 1) % 5) for i in range(5)], 5)
STAR = network([(0, i) for i in range(1, 6)], 6)
COMPLETE = network([(i, j) for i in range(4) for j in range(i)], 4)
KITE = network([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5)], 6)
SMALL = {"path": PATH, "ring": RING, "star": STAR, "complete": COMPLETE, "kite": KITE}


def gossip_view(gossip, observers):
    """Rows: what the observers see. Columns: noise of the values, then of the messages, in standard deviations.

    Each node keeps a dictionary of coefficients and does what the protocol says; nothing is diagonalised.
    """
    net, tau = gossip.network, mpmath.mpf(gossip.message_noise)
    weight = [[mpmath.mpf(float(x)) for x in row] for row in net.weights]
    now = [{(0, u): mpmath.mpf(1)} for u in range(net.size)]
    before = [{} for _ in range(net.size)]
    watched = {w for v in observers for w in net.neighbours[v]} - set(observers)
    seen = []
    for t, a in enumerate(gossip.mixing, start=1):
        seen += [now[w] for w in sorted(watched)]
        after = []
        for u in range(net.size):
            message = {(t, u): tau}
            for w in (u, *net.neighbours[u]):
                for key, value in now[w].items():
                    message[key] = message.get(key, 0) + mpmath.mpf(a) * weight[u][w] * value
            for key, value in before[u].items():
                message[key] = message.get(key, 0) + (1 - mpmath.mpf(a)) * value
            after.append(message)
        before, now = now, after
    if gossip.speaker not in observers:
        seen.append(now[gossip.speaker])
    keys = [(t, u) for t in range(gossip.steps + 1) for u in range(net.size) if u not in observers]
    return mpmath.matrix([[row.get(key, mpmath.mpf(0)) for key in keys] for row in seen]), keys


def exact_fraction(view, keys, node):
    """The distance in standard deviations that a shift of one node's value by its deviation makes, to 50 digits."""
    shift = view[:, keys.index((0, node))]
    return float(mpmath.sqrt((shift.T * mpmath.lu_solve(view * view.T, shift))[0]))


def projection(rows, node):
    """The length of the projection of a unit vector on the space that rows of small whole numbers span."""
    rows = np.atleast_2d(np.asarray(rows, float))
    target = np.zeros(rows.shape[1])
    target[node] = 1.0
    return float(np.linalg.norm(rows.T @ np.linalg.lstsq(rows.T, target, rcond=1e-10)[0]))
