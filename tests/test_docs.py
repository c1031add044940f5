"""What the documents say is true: names and paths exist, examples run, docstrings tell all."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import metrics, model_selection, preprocessing, privacy, problem, report, theory
from discreet._common.docstrings import names_in, sections_of
from discreet.estimators.names import CLASSIFIERS, REGRESSORS
from discreet.solvers import SOLVERS
from tests.doc_names import PACKAGE, ROOT, unknown_modules, unknown_names, unknown_paths, unknown_targets

PROOFS = sorted((ROOT / "docs" / "guarantees").glob("*.md"))
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*GUIDES, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")), *PROOFS]

ESTIMATORS = [*CLASSIFIERS, *REGRESSORS]
TRANSFORMERS = ["PrivateScaler", "PrivateBounds", "PrivateQuantiles"]
LEARNERS = [getattr(discreet, name) for name in ESTIMATORS] + [getattr(preprocessing, name) for name in TRANSFORMERS]

pytestmark = [
    pytest.mark.filterwarnings("error::discreet.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
]


def page_name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PROOFS, ids=page_name)
def test_names_quoted_on_proof_pages_exist(page):
    assert unknown_names(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_paths_links_modules_and_make_targets_exist(page):
    text = page.read_text()
    lost = [*unknown_paths(text, page.parent), *unknown_modules(text), *unknown_targets(text)]
    assert lost == []


@pytest.mark.parametrize(
    "planted",
    [
        "`clipped_summ`",
        "`Newton._decides`",
        "`scaled.rowz`",
        "`mechanisms.gaussian_noise`",
        "`clipped_sum(relashion=2)`",
        "`Ledger.open().clozed`",
    ],
)
def test_a_wrong_name_is_found(planted):
    assert unknown_names(f"It rests on `clipped_sum` and {planted}.") == [planted.strip("`")]


def test_a_wrong_path_link_module_or_target_is_found():
    text = "`discreet/solvers/gone.py`, `gone.py`, [page](gone.md), `discreet.gone`, `make gone`, `solvers/plan.py`"
    found = [*unknown_paths(text, ROOT), *unknown_modules(text), *unknown_targets(text)]
    assert found == ["discreet/solvers/gone.py", "gone.py", "gone.md", "discreet.gone", "make gone"]


def python_blocks(page: Path) -> list[tuple[str, str | None]]:
    """Blocks of Python code that can be run, each with the output that the page shows below it."""
    found = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page.read_text(), re.DOTALL)
    return [(code, shown or None) for code, shown in found if "(..." not in code]


# tests/testing/test_testing_page.py runs the examples of this page, whose dataclasses need a module.
RUN_ELSEWHERE = ROOT / "docs" / "testing.md"


@pytest.mark.parametrize(
    "page", [page for page in GUIDES if python_blocks(page) and page != RUN_ELSEWHERE], ids=page_name
)
def test_the_examples_of_a_page_run_and_print_what_it_shows(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # ledgers and paused streams are files
    names: dict[str, object] = {}
    for code, shown in python_blocks(page):
        exec(compile(code, page_name(page), "exec"), names)
        printed = capsys.readouterr().out
        assert shown is None or printed == shown


def test_the_blocks_and_outputs_of_a_page_are_found():
    blocks = python_blocks(ROOT / "docs" / "preprocessing.md")
    assert len([shown for _, shown in blocks if shown]) == 3
    assert sum(len(python_blocks(page)) for page in GUIDES) >= 10


def public_objects():
    """Everything that `discreet` and the rooms that users import from offer, once."""
    rooms = [discreet, preprocessing, metrics, report, model_selection, problem, privacy, theory]
    named = {name: getattr(room, name) for room in rooms for name in room.__all__}
    return {name: value for name, value in named.items() if callable(value)}


def run_examples(tests):
    """How many examples were wrong, and how many there are."""
    runner = doctest.DocTestRunner(verbose=False)
    for found in tests:
        runner.run(found, out=lambda text: None)
    return runner.failures, runner.tries


# Base classes, what others return, and exceptions need no example.
WITHOUT_EXAMPLE = {"Loss", "Penalty", "Constraint", "Zero", "Released"}
WITH_EXAMPLE = [
    name
    for name, value in sorted(public_objects().items())
    if name not in WITHOUT_EXAMPLE and not (isinstance(value, type) and issubclass(value, Exception))
]


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_every_public_thing_has_an_example(name):
    examples = sections_of(public_objects()[name].__doc__)[1]["Examples"]
    assert ">>>" in examples or re.search(r"See `\w+`", examples)


MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_are_right(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # models and ledgers are files
    failures, tries = run_examples(doctest.DocTestFinder(exclude_empty=True).find(import_module(module)))
    assert tries > 0
    assert failures == 0


def test_a_wrong_example_is_found():
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert run_examples([wrong]) == (1, 1)


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_every_parameter_of_a_public_thing_is_described(name):
    value = public_objects()[name]
    assert value.__doc__
    if name in WITH_EXAMPLE:
        sections = sections_of(value.__doc__)[1]
        described = names_in(sections.get("Parameters", "")) | names_in(sections.get("Attributes", ""))
        assert set(parameters_of(value)) <= described


def parameters_of(value):
    """The arguments of a function or of a constructor; the values of an enumeration are its members."""
    return [] if value is discreet.Relation else list(inspect.signature(value).parameters)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_the_docstring_of_a_learner_names_every_parameter(learner):
    described = names_in(sections_of(learner.__doc__)[1]["Parameters"])
    assert described == set(learner().get_params())


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_the_docstring_of_a_learner_names_every_fitted_attribute(learner):
    attributes = fitted_attributes(learner)
    described = names_in(sections_of(learner.__doc__)[1]["Attributes"])
    assert attributes <= described
    assert described - attributes <= {"stream_", "inference_"}  # after partial_fit, or with inference=True


def fitted_attributes(learner):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (500, 2)), columns=["a", "b"])
    settings = {"random_state": 0, "epsilon": 5.0}
    known = {"bounds": (-1.0, 1.0), "y_bounds": (0.0, 1.0), "classes": [False, True]}
    wanted = {name: value for name, value in known.items() if name in learner().get_params()}
    y = X["a"] > 0.0 if "classes" in wanted else X["a"]
    model = learner(**settings, **wanted).fit(X, y)
    found = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    return found | {"guarantee_"} | ({"scaling_"} if hasattr(model, "scaling_") else set())


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_fit_names_its_arguments(learner):
    described = names_in(sections_of(learner.fit.__doc__)[1]["Parameters"])
    assert {"X", "y", "sample_weight"} <= described


def test_a_parameter_without_a_description_would_be_found():
    described = names_in(sections_of(discreet.Ridge.__doc__)[1]["Parameters"])
    assert described == set(discreet.Ridge().get_params())
    assert described != set(discreet.ElasticNet().get_params())


def test_one_page_lists_every_solver():
    page = (ROOT / "docs" / "which_solver.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)`.*\[proof\]\(guarantees/", page, re.MULTILINE)
    assert sorted(rows) == sorted(SOLVERS)
