"""The benchmark on public tables: its halves share no table, rivals add the noise they claim, ratios are right."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from generality import adassp, cells, settings, summary, tables
from generality.rivals import exchange

sys.path.pop(0)


class Recorder:
    """A generator without noise that remembers the scales it was asked for."""

    def __init__(self):
        self.scales = []

    def normal(self, scale=1.0, size=None):
        self.scales.append(scale)
        return np.zeros(size) if size is not None else 0.0


def table(name, rows=1000, seed=0):
    rng = np.random.default_rng(seed)
    return tables.Table(name, rng.normal(size=(rows, 3)), rng.normal(size=rows), 0, tables.is_kept_back(name))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-4), (1.0, 1e-6), (10.0, 1e-10)])
def test_the_noise_of_adassp_meets_its_budget_and_wastes_none(epsilon, delta):
    mu = adassp.gaussian_mu(epsilon, delta)
    assert adassp.gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-6)
    assert adassp.gaussian_delta(epsilon, 1.02 * mu) > delta


def test_the_delta_of_gaussian_noise_is_that_of_dp_accounting():
    from dp_accounting.pld import privacy_loss_mechanism

    loss = privacy_loss_mechanism.GaussianPrivacyLoss(1.0 / 0.7)
    assert adassp.gaussian_delta(1.3, 0.7) == pytest.approx(loss.get_delta_for_epsilon(1.3), rel=1e-9)


@pytest.mark.parametrize("rounds", [1, 10])
def test_adassp_spends_its_budget_on_what_a_replaced_row_changes(rounds):
    """Neighbours that reach the largest change of each released statistic; the squares of the costs add up to mu^2."""
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    eigenvalue = abs(np.linalg.eigvalsh(np.outer(first, first))[-1])
    matrix = np.linalg.norm(np.triu(np.outer(first, first) - np.outer(second, second)))
    products = np.linalg.norm(first - (-first))  # the labels 1 and -1 of the same row
    noise, mu = Recorder(), 0.8
    adassp.weights(np.eye(2), np.ones(2), mu, 1e-6, rounds, noise)
    matrix_scale, eigenvalue_scale, *product_scales = noise.scales
    cost = (matrix / matrix_scale) ** 2 + (eigenvalue / eigenvalue_scale) ** 2
    cost += sum((products / scale) ** 2 for scale in product_scales)
    assert len(product_scales) == rounds
    assert cost == pytest.approx(mu**2)


def test_adassp_without_noise_is_least_squares():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(400, 3))
    y = X @ [0.3, -0.2, 0.1] + 0.1 * rng.normal(size=400)
    found = adassp.weights(X, y, 1e9, 1e-6, 1, rng)
    assert found == pytest.approx(np.linalg.lstsq(X, y)[0], abs=1e-5)


def test_a_copy_of_a_table_to_develop_on_is_not_kept_back(monkeypatch):
    names = {True: [], False: []}
    for number in range(20):
        names[tables.is_kept_back(f"package/{number}")].append(f"package/{number}")
    shared, own = names[True][:2]
    halves = {False: [table(names[False][0], seed=1)], True: [table(shared, seed=1), table(own, seed=2)]}
    monkeypatch.setattr(tables, "accepted", lambda kept_back: iter(halves[kept_back]))
    assert [found.name for found in tables.tables(kept_back=True)] == [own]
    assert [found.name for found in tables.tables(kept_back=False)] == [names[False][0]]


def test_each_number_of_rows_takes_the_first_tables_that_have_enough():
    found = cells.sizes_of([table("small", 200), table("large", 2_000), table("larger", 3_000)], most=2)
    assert found == {"small": [100], "large": [100, 300, 1_000], "larger": [300, 1_000]}


def test_arrays_pass_through_a_pipe():
    pipe = io.BytesIO()
    exchange.send(pipe, X=np.eye(2), epsilon=0.5)
    exchange.send(pipe, error="ValueError: no")
    pipe.seek(0)
    first, second = exchange.receive(pipe), exchange.receive(pipe)
    assert first is not None
    assert second is not None
    assert (first["X"] == np.eye(2)).all()
    assert str(second["error"]) == "ValueError: no"
    assert exchange.receive(pipe) is None


def results(losses):
    about = {"table": "a", "rows": 100, "epsilon": 1.0, "classes": 2}
    return pd.DataFrame([about | {"model": model, "loss": loss} for model, loss in losses.items()])


def test_ratios_compare_models_that_know_the_same():
    losses = {"private constant": 2.0, "private constant, told": 1.0, "constant without privacy": 0.9}
    frame = summary.with_ratios(
        results(losses | {"auto": 1.0, "auto, told": 2.0, "AdaSSP": 6.0, "diffprivlib": math.inf})
    )
    found = frame.set_index("model")
    assert found["ratio"].to_dict()["auto"] == 0.5
    assert found["ratio"].to_dict()["auto, told"] == 2.0
    assert found["to_best"].to_dict()["AdaSSP"] == 6.0
    assert found["lost"].to_dict()["AdaSSP"]
    assert found["lost"].to_dict()["diffprivlib"]
    assert not found["lost"].to_dict()["auto, told"]


def test_gaps_below_two_percent_of_the_constant_count_as_those():
    row = {
        "table": "a",
        "rows": 100,
        "epsilon": 1.0,
        "setting": "newton steps=4",
        "without privacy": 0.5,
        "constant": 1.0,
    }
    frame = pd.DataFrame([row | {"auto": 0.51, "best": 0.501}, row | {"auto": 0.60, "best": 0.55}])
    found = summary.tuned_figures(frame)
    assert found["gap_near"] == 0.5
    assert found["near"] == 1.0
    assert found["solvers"] == {"newton": 1.0}


def test_every_tuned_setting_is_one_that_its_solver_takes():
    found = [name for name, _, _ in settings.settings()]
    assert len(found) == len(set(found)) > 40
