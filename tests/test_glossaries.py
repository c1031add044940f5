"""Pages that explain every field: the glossary of plans, and the keys of the model file."""

from __future__ import annotations

from dataclasses import fields
from itertools import product

import numpy as np
import pandas as pd
import pytest

from discreet import Budget, IncompatibleSolverError, LogisticRegression, Problem, PublicModel, Ridge
from discreet._common.text import LABEL
from discreet.data.public import Public
from discreet.data.schema import skeleton
from discreet.estimators.model_file import to_dict
from discreet.problem import L2, L1Ball, Logistic, Multinomial, Squared
from discreet.solvers import SOLVERS
from discreet.solvers.plan import Settings
from discreet.solvers.run import make_plan
from tests.doc_names import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
PLANS = (ROOT / "docs" / "plans.md").read_text()
GLOSSARY = PLANS[PLANS.index("## Glossary") :]
MODEL_FILE = (ROOT / "docs" / "model_file.md").read_text()
TABLES = [
    Public.of(20_000, 5),
    Public.of(20_000, 5, bounds=([0.0] * 5, [1.0] * 4 + [np.nan]), y_bounds=(0.0, 1.0)),
    Public.of(300, 5),
    Public.of(3_000, 300, sparse=True),
    Public.of(2_000, 3, start=PublicModel(coef=(0.0, 0.0, 0.0), intercept=0.0)),
]


def explained(word):
    """Whether a line of the glossary begins with the word, or has it among those with which it begins."""
    heads = [line.split("|")[1] for line in GLOSSARY.splitlines() if line.startswith("| ")]
    return any(word in [part.strip(" `") for part in head.split(",")] for head in heads)


def every_setting():
    kinds = [Settings]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return sorted({field.name.replace("_", " ") for kind in kinds for field in fields(kind)})


def plans():
    """Plans of every solver; combinations that are refused are left out."""
    usual, pure = Budget.zcdp(0.05), Budget.pure(1.0)  # selections take long to calibrate to epsilon and delta
    labels, target, classes = (Problem(loss, L2(1e-3)) for loss in (Logistic(), Squared(), Multinomial(3)))
    cases = [(labels, public, usual) for public in TABLES]
    cases += [(target, TABLES[0], usual), (target, TABLES[1], usual), (classes, TABLES[0], usual)]
    cases += [(Problem(loss, constraint=L1Ball(1.0)), TABLES[1], usual) for loss in (Logistic(), Squared())]
    cases += [(labels, TABLES[0], pure)]
    cases += [(Problem(Logistic(), constraint=L1Ball(1.0)), Public.of(300, 2, bounds=(0.0, 1.0)), pure)]
    batches = [(name, (labels, TABLES[0], Budget(1.0, 1e-6))) for name in ("sgd", "svrg", "dual-cd")]
    for solver, (problem, public, budget) in [*product(["auto", *SOLVERS], cases), *batches]:
        try:
            yield make_plan(solver, problem, public, budget)
        except (IncompatibleSolverError, ValueError):
            continue


def test_the_glossary_has_every_setting():
    assert [word for word in every_setting() if not explained(word)] == []


@pytest.mark.slow
def test_the_glossary_has_every_line_and_release_of_a_plan():
    lines, releases = set(), set()
    for plan in plans():
        releases |= {release.what for release in plan.releases}
        table = [r.what for r in plan.releases]
        for line in str(plan).splitlines():
            name = line[:LABEL].strip()
            if name and len(line) > LABEL and line[LABEL - 1] == " " and not line.startswith((*table, "what is")):
                lines.add(name)
    assert len(lines) > 20
    assert [name for name in sorted(lines) if not explained(name)] == []
    assert [what for what in sorted(releases) if not explained_release(what)] == []


def explained_release(what):
    """A row may name several releases, the later ones by their ends: "choices of a column, of a coordinate"."""
    heads = [line.split("|")[1].strip() for line in GLOSSARY.splitlines() if line.startswith("| ")]
    for head in heads:
        first, *others = [part.strip() for part in head.split(", ")]
        if what in (head, first) or any(what.endswith(other) and shares_beginning(what, first) for other in others):
            return True
    return f"`{what}`" in GLOSSARY


def shares_beginning(what, first):
    return what.split()[0] == first.split()[0]


def test_a_line_that_nobody_explained_would_be_found():
    assert not explained("colour")
    assert not explained_release("mean colours of all rows")


def keys_of(content, open_ended=("parameters", "guarantee", "schema", "values")):
    """Keys of nested objects, without those below keys that other pages explain."""
    found = set()
    for key, value in content.items():
        found.add(key)
        if isinstance(value, dict) and key not in open_ended:
            found |= keys_of(value)
    return found


def test_the_page_of_the_model_file_names_every_key():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (1_000, 2)), columns=["a", "b"]).assign(c=rng.random(1_000) < 0.5)
    labels = np.where(X["a"] > 0.0, "yes", "no")
    models = [
        LogisticRegression(epsilon=3.0, bounds={"a": (-1, 1)}, classes=["no", "yes"], random_state=0).fit(X, labels),
        Ridge(epsilon=3.0, bounds=(-1.0, 1.0), random_state=0).fit(X, X["a"]),
    ]
    schema = skeleton({"a": "number", "b": "number", "c": "number", "y": "number"})
    found = set().union(*(keys_of(to_dict(model, schema)) for model in models))
    assert {"booleans", "target_noise", "dtype", "digest"} <= found
    assert [key for key in sorted(found) if f"`{key}`" not in MODEL_FILE] == []
