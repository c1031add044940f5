"""The code of `make bench-fairness` on a tiny table: every bound holds, and is the one that the library computes."""

import functools
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet.fairness import gradient_distance

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning", "ignore::discreet.UtilityWarning")


@pytest.fixture(scope="module")
def load():
    """A module of the benchmark; they import each other by their bare names."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def case(load):
    rng = np.random.default_rng(0)
    cases = load("fairness.cases")
    X = cases.shortened(1.5 * rng.standard_normal((1_000, 3)), cases.ROW_NORM)
    group = np.where(rng.uniform(size=1_000) < 0.4, "women", "men")
    y = (X[:, 0] + 0.4 * (group == "men") + 0.5 * rng.standard_normal(1_000) > 0.0).astype(np.float64)
    return cases.split_case("tiny", X, y, group)


def test_rows_are_as_long_as_declared(load, case):
    cases = load("fairness.cases")
    assert (np.linalg.norm(case.X, axis=1) <= cases.ROW_NORM).all()
    assert (len(case.y), len(case.y_test)) == (900, 100)
    assert np.linalg.norm(cases.with_ones(case).X[:, -1]) ** 2 == pytest.approx(900)


@pytest.mark.parametrize("solver", ["output-perturbation", "cd", "newton", "sgd"])
def test_a_setting_has_bounds_that_hold(load, case, solver):
    cases, fits, bounds = (load(f"fairness.{part}") for part in ("cases", "fits", "bounds"))
    regime, one = cases.thesis(3), fits.Setting("tiny", "thesis", solver, 900, 1.0, models=4)
    found = bounds.Measured(case, regime, one, fits.fits_of(case, regime, one))
    # The gradient at a model bounds its distance, and is what the library computes from the training rows.
    assert (found.distances <= found.gradient_distances * (1.0 + 1e-9)).all()
    model = fits.private_model(case, regime, one, seed=2)
    law = gradient_distance(model, case.X, case.y)
    np.testing.assert_allclose(law.radius(0.01), found.gradient_distances[2] * np.sqrt(regime.alpha), rtol=1e-9)
    for notion, point in found.points("rows").items():
        low, high = point.bounds["distance known"]
        assert low - 1e-12 <= point.band[0] <= point.band[1] <= high + 1e-12, notion
        assert found.bounds["both known"][notion] <= found.bounds["distance known"][notion] + 1e-12


@pytest.mark.slow
def test_few_models_make_tables_and_pictures(load, case, tmp_path):
    pytest.importorskip("matplotlib")
    figures, tables, cases, fits = (load(f"fairness.{part}") for part in ("figures", "tables", "cases", "fits"))
    opened = {"thesis": (case, cases.thesis(3)), "weak": (cases.with_ones(case), cases.weak(4))}
    made = functools.cache(lambda one: fits.fits_of(*opened[one.regime], one))
    panels = {"rows": figures.curves(*opened["thesis"], "rows", 2, 2, made)}
    figures.draw(panels, "tiny", "tiny", 2, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fairness-tiny-others.png", "fairness-tiny-rows.png"]
    tables = tables.tables_of("tiny", case, 2, made)
    assert {place.removeprefix("tiny ") for place in tables} == {"bounds", "code", "solvers", "weak", "models"}
    ours, printed = _two_lines(tables["tiny bounds"])
    assert all(mine < theirs for mine, theirs in zip(ours, printed, strict=True))


def _two_lines(table):
    """Our best bounds, and those by the thesis's formulas."""
    cells = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    lines = {name.strip(): [float(field) for field in fields] for name, *fields in cells}
    printed = next(values for name, values in lines.items() if name.startswith("formulas of the thesis"))
    return lines["**ours, best form**"], printed


def test_the_printed_bounds_are_those_of_the_corollary(load):
    """By hand: two groups, two labels; one row of group b, label 1 is within the distance."""
    bounds = load("fairness.bounds")
    rows = bounds.row_cells([0, 0, 1, 1], ["a", "b", "a", "b"])
    found = bounds.thesis_bounds(np.array([9.0, 9.0, 9.0, 1.0]), 1.0, rows, speed=2.0, tail=True)
    assert found["accuracy"] == 0.25
    assert found["accuracy parity"] == found["demographic parity"] == np.mean([0.0 + 0.25, 0.5 + 0.25])
    assert found["equality of opportunity"] == np.mean([0.0 + 0.5, 1.0 + 0.5])
    assert found["equalised odds"] == np.mean([0.0, 0.0, 0.0 + 0.5, 1.0 + 0.5])
    chernoff = bounds.thesis_bounds(np.array([9.0, 9.0, 9.0, 1.0]), 1.0, rows, speed=2.0, tail=False)
    assert all(chernoff[name] >= found[name] for name in found)
    np.testing.assert_allclose(bounds.printed_distance(9, 28_175, 1.0), 0.01890, rtol=2e-3)


def test_the_cells_of_the_experiment_are_those_of_the_tables_that_are_stored(load):
    """The numbers of rows and columns that the cells are made of; stand-ins have the shapes of the tables."""
    registry = load("framework.registry")
    for dataset in registry.datasets_of("fairness"):
        case = dataset.load()
        assert (len(case.y), case.columns) == (dataset.facts["rows"], dataset.facts["columns"])
    assert len(list(registry.experiments()["fairness"].cells(False))) == 2 * (4 * (8 + 7) + 5 + 4)
