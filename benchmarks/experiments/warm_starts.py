"""What public coefficients and public tables gain, and what misleading ones cost: held-out losses of `auto`.

2,000 private and 500 public rows of each table; the loss is the log-loss of a classification, and one minus R^2 of a
regression, on 10,000 other rows. Three kinds of public rows:

- same: drawn like the private ones;
- shifted: other people (Nebraska for Colorado, under 30 years for all ages, the first months for all months, the north
  for the whole state);
- wrong: drawn like the private ones, with labels or targets turned round.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets, datasets_of
from stored_tables import load_benchmark

from discreet import LogisticRegression, PublicTable, Ridge
from discreet.problem.column_scaling import identity_scaling
from discreet.scaling.public_scales import with_public_scales

NAME = "warm_starts"
PRIVATE, PUBLIC, TEST = 2_000, 500, 10_000
EPSILONS, DRAWS = (0.1, 0.3, 1.0, 3.0), 5
KINDS = ("same", "shifted", "wrong")
CONSTANT, ALONE, NOTHING = "constant", "public rows alone", "nothing public"
COEFFICIENTS, TARGETS, COLUMNS = "coefficients", "table with target", "table without target"
WITHOUT_EPSILON = (CONSTANT, *(f"{ALONE}, {kind}" for kind in KINDS))
PRIVATELY = (NOTHING, *(f"{what}, {kind}" for kind in KINDS for what in (COEFFICIENTS, TARGETS, COLUMNS)))
GIVEN = (*WITHOUT_EPSILON, *(what for what in PRIVATELY if what != f"{COLUMNS}, wrong"))
QUICK = ("california, with public rows",)


def cells(quick):
    for dataset in datasets_of(NAME):
        if quick and dataset.name not in QUICK:
            continue
        for draw in range(1 if quick else DRAWS):
            for given in GIVEN:
                for epsilon in (None,) if given in WITHOUT_EPSILON else EPSILONS[2:3] if quick else EPSILONS:
                    yield Cell(NAME, dataset.name, given, {} if epsilon is None else {"epsilon": epsilon}, draw)


@lru_cache(maxsize=1)
def drawn(name, seed):
    """Private and test rows, and public rows by their kind, each with their targets."""
    rng, facts, (X, y) = np.random.default_rng(seed), datasets()[name].facts, loaded(name)
    order = rng.permutation(len(y))
    same = slice(PRIVATE, PRIVATE + PUBLIC)
    test = slice(same.stop, same.stop + TEST)
    if "elsewhere" in facts:
        other, labels = load_benchmark(facts["elsewhere"])
        some = rng.permutation(len(labels))[:PUBLIC]
        shifted = other[some], labels[some]
    else:
        left = order[test.stop :]
        some = left[facts["others"](X)[left]][:PUBLIC]
        shifted = X[some], y[some]
    private, alike, held_out = ((X[order[part]], y[order[part]]) for part in (slice(PRIVATE), same, test))
    wrong = alike[0], alike[1].min() + alike[1].max() - alike[1]
    return private, held_out, {"same": alike, "shifted": shifted, "wrong": wrong}


def estimator(labels, **settings):
    return LogisticRegression(classes=[0, 1], **settings) if labels else Ridge(**settings)


def loss(labels, margins, y):
    if labels:
        return float(np.logaddexp(0.0, -(2.0 * y - 1.0) * margins).mean())
    return float(np.mean((margins - y) ** 2) / np.var(y))


def plan_of(labels, public):
    """The plan of a fit with this public table: it has the public coefficients that the table gives by itself."""
    return estimator(labels, public_table=public).plan(PRIVATE, public.columns)


def alone(labels, public, X):
    """Margins of the public coefficients without any private row."""
    plan = plan_of(labels, public)
    scaling = with_public_scales(identity_scaling(public.columns), plan.public, True, False)
    return np.clip(X, scaling.low, scaling.high) @ plan.start.coef + plan.start.intercept


def inputs(labels, what, rows):
    """What is given to a fit."""
    if what == COEFFICIENTS:
        return {"start": plan_of(labels, PublicTable(*rows)).start}
    return {"public_table": PublicTable(*rows) if what == TARGETS else PublicTable(rows[0])}


def measure(cell):
    (X, y), (X_test, y_test), tables = drawn(cell.dataset, cell.seed)
    labels, (what, _, kind) = datasets()[cell.dataset].classification, cell.method.partition(", ")
    if cell.method == CONSTANT:
        share = float(y_test.mean())
        return {"loss": -share * np.log(share) - (1.0 - share) * np.log(1.0 - share) if labels else 1.0}
    if what == ALONE:
        return {"loss": loss(labels, alone(labels, PublicTable(*tables[kind]), X_test), y_test)}
    given = inputs(labels, what, tables[kind]) if kind else {}
    model = estimator(labels, random_state=cell.seed, **cell.setting, **given).fit(X, y)
    return {"loss": loss(labels, model.decision_function(X_test) if labels else model.predict(X_test), y_test)}


def page(results, folder):
    """A table for each table: mean losses, with the largest of all draws."""
    parts = []
    for dataset in datasets_of(NAME):
        rows = [[given, *fields(results, dataset.name, given)] for given in GIVEN]
        if any(any(row[1:]) for row in rows):
            parts += [f"**{dataset.label}**", table(["given", *(f"epsilon {e:g}" for e in EPSILONS)], rows)]
    return "\n\n".join(parts)


def fields(results, dataset, given):
    if given in WITHOUT_EPSILON:
        found = [numbers["loss"] for _, numbers in results.select(dataset=dataset, method=given)]
        return [f"{np.mean(found):.3f}" if found else ""] * len(EPSILONS)
    losses = [
        [numbers["loss"] for _, numbers in results.select(dataset=dataset, method=given, epsilon=epsilon)]
        for epsilon in EPSILONS
    ]
    return [f"{np.mean(found):.3f} ({max(found):.3f})" if found else "" for found in losses]


warm_starts = Experiment(
    NAME,
    "warm_starts",
    "what public coefficients and tables gain, and what misleading ones cost: held-out losses",
    cells,
    measure,
    page,
    file="../warm_starts.md",
    stored=("adult", "acsincome_co", "acsincome_ne", "electricity", "california"),
)
