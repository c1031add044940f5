"""What a model file brings back: leaks, weights, solvers and constraints, or a refusal when it is written."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from discreet import Ledger, LogisticRegression, PrivacyLeakWarning, Ridge, load_model, save_model
from discreet.estimators.model_file import read_parameters, write_parameters
from discreet.preprocessing import pipeline_guarantee, private_means
from discreet.problem import constraints
from discreet.problem.constraints import CONSTRAINTS, Box, L1Ball, L2Ball, Simplex
from discreet.solvers import SOLVERS, CoordinateDescent, FrankWolfe, GradientDescent, SketchedDescent
from tests.stream_tools import classifier, rows_of

ROWS = 400


def saved_and_loaded(model, tmp_path):
    save_model(model, tmp_path / "model.json")
    return load_model(tmp_path / "model.json")


def rows():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (ROWS, 2))
    return X, (X[:, 0] > 0.0).astype(int)


def test_leaks_come_back(tmp_path):
    with pytest.warns(PrivacyLeakWarning):
        model = LogisticRegression(bounds="data").fit(*rows())
    assert set(model.guarantee_.leaks) == {"the classes", "the bounds of the columns"}
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.guarantee_.leaks == model.guarantee_.leaks
    assert "the bounds of the columns were read from the rows" in loaded.guarantee_.statement()


@pytest.mark.parametrize(
    "parameters",
    [
        {"constraint": L1Ball(3.0), "solver": "gd"},
        {"constraint": L2Ball(3.0), "solver": GradientDescent(steps=5)},
        {"constraint": Box(0.0, np.inf), "solver": CoordinateDescent(passes=3)},
        {"constraint": Box([-1.0, 0.0], [0.0, 2.0])},
    ],
)
def test_a_fitted_model_comes_back_with_its_solver_and_its_constraint(tmp_path, parameters):
    X, y = rows()
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], **parameters).fit(X, y)
    loaded = saved_and_loaded(model, tmp_path)
    for name, value in parameters.items():
        assert getattr(loaded, name) == value
    loaded.fit(X, y)  # and can be fitted again as it was
    assert (loaded.plan_.problem, loaded.plan_.solver) == (model.plan_.problem, model.plan_.solver)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_comes_back(name):
    solver = SOLVERS[name](scale_share=0.25)
    content = json.loads(json.dumps(write_parameters(Ridge(solver=solver))))
    assert read_parameters(content, Ridge)["solver"] == solver


@pytest.mark.parametrize(
    "solver",
    [SketchedDescent(sketch="blocks", blocks=((0, 2), (1,))), FrankWolfe(vertices=((1.0, 0.0), (0.0, 1.0)))],
)
def test_settings_that_are_lists_come_back(solver):
    content = json.loads(json.dumps(write_parameters(Ridge(solver=solver))))
    assert read_parameters(content, Ridge)["solver"] == solver


def test_every_constraint_has_a_name_in_files():
    """A new set must be added there, or its models are refused when they are saved."""
    concrete = {kind for kind in map(constraints.__dict__.get, constraints.__all__) if not kind.__abstractmethods__}
    assert set(CONSTRAINTS.values()) == concrete
    content = json.loads(json.dumps(write_parameters(Ridge(constraint=Simplex(2.0)))))
    assert read_parameters(content, Ridge)["constraint"] == Simplex(2.0)


@dataclass(frozen=True)
class StrangeBall(L2Ball):
    """A set of another package."""


@dataclass(frozen=True)
class StrangeSolver(GradientDescent):
    """A solver of another package that took a name of ours."""


@pytest.mark.parametrize(
    ("name", "value"), [("constraint", StrangeBall(3.0)), ("solver", StrangeSolver()), ("classes", [0, 1j])]
)
def test_what_a_file_cannot_hold_is_refused_when_it_is_written(tmp_path, name, value):
    model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], solver="gd").fit(*rows()).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{name} = ") as caught:
        save_model(model, tmp_path / "model.json")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model.json").exists()


def weighted_model(weight, by_stream):
    X, y = rows_of()
    model = classifier(relation="zero_out")
    return model.partial_fit(X, y, sample_weight=weight) if by_stream else model.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("by_stream", [False, True])
@pytest.mark.parametrize("from_file", [False, True])
def test_weights_that_reached_one_of_two_releases_are_noticed(tmp_path, by_stream, from_file):
    """Under zero_out; a stream and a loaded model must remember whether they had weights."""
    X, _ = rows_of()
    weight = np.linspace(0.0, 1.0, len(X))
    model = weighted_model(weight, by_stream)
    model = saved_and_loaded(model, tmp_path) if from_file else model
    means = [private_means(X, (-1.0, 1.0), relation="zero_out", sample_weight=w) for w in (weight, None)]
    assert pipeline_guarantee(model, also=means[:1]).epsilon > 1.0
    with pytest.raises(ValueError, match="reached some private steps and not others"):
        pipeline_guarantee(model, also=means[1:])


def test_under_zero_out_all_chunks_of_a_stream_have_weights_or_none_has():
    X, y = rows_of()
    weight = np.full(100, 0.5)
    model = classifier(relation="zero_out").partial_fit(X[:100], y[:100], sample_weight=weight)
    with pytest.raises(ValueError, match="all chunks of a stream or with none"):
        model.partial_fit(X[100:200], y[100:200])
    model.partial_fit(X[100:200], y[100:200], sample_weight=weight)  # the refused chunk left no trace
    mixed = classifier(relation="replace").partial_fit(X[:100], y[:100])
    assert not mixed.weighted_
    assert mixed.partial_fit(X[100:200], y[100:200], sample_weight=weight).weighted_


def test_a_file_whose_event_does_not_prove_its_epsilon_is_refused(tmp_path):
    save_model(LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1]).fit(*rows()), tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    content["guarantee"]["epsilon"] = 0.9
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="does not prove"):
        load_model(tmp_path / "model.json")


def test_the_circumstances_come_back(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    model = Ridge(bounds=(-1.0, 1.0), y_bounds=(0.0, 1.0), ledger=ledger, dataset="clinic").fit(*rows())
    loaded = saved_and_loaded(model, tmp_path)
    assert loaded.guarantee_.release == model.guarantee_.release
    assert loaded.guarantee_.to_dict() == model.guarantee_.to_dict()
    assert loaded.guarantee_.release.ledger.spent == ledger.spent("clinic")
