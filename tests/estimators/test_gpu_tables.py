"""Fits of tables in tensors: the model of the same rows in memory, and clear refusals.

Tensors in the memory of the host stand for those on a GPU, which `on_gpu` is told to believe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from discreet import HuberRegressor, IncompatibleSolverError, LogisticRegression, PoissonRegressor, Ridge
from discreet.data.rows import Data, block_slices, takes_tensors
from discreet.estimators.fitting import declarations, keep_fit, load_for, plan_fit, run_settings
from discreet.solvers.run import run_plan

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install discreet[gpu]")

from discreet.data.gpu_rows import GpuRows, check_tensor  # noqa: E402 - needs PyTorch

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")


@dataclass(frozen=True, eq=False)
class PlannedAsStored(Data):
    """Rows in memory with the plan, hence with a seed the noise, of rows that lie elsewhere."""

    @property
    def in_memory(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def _small_blocks_of_any_tensor(monkeypatch):
    monkeypatch.setattr("discreet.data.loading.on_gpu", lambda X: isinstance(X, torch.Tensor))
    monkeypatch.setattr("discreet.data.gpu_rows.BLOCK_ENTRIES", 1 << 13)
    monkeypatch.setattr("discreet.kernels.tensors.PIECE_ENTRIES", 1 << 12)


def a_table(rows=4000, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=rows)


def in_memory(estimator, X, y, **metadata):
    """The fit of the same rows in memory, with the same plan."""
    table = load_for(estimator, X, y, metadata)
    table = replace(table, rows=PlannedAsStored(table.rows.X, table.rows.y, table.rows.weight))
    plan = plan_fit(estimator, table.public(**declarations(estimator)), table.class_count)
    keep_fit(estimator, run_plan(plan, table.rows, **run_settings(estimator)), table)


CASES = {
    "logistic": (LogisticRegression(classes=[False, True]), lambda s: s > 0),
    "gd": (LogisticRegression(classes=[0, 1], solver="gd", bounds=(-4, 4)), lambda s: (s > 0).astype(int)),
    "several classes": (LogisticRegression(classes=[0, 1, 2], solver="newton"), lambda s: np.digitize(s, [-1.0, 1.0])),
    "ridge": (Ridge(), lambda s: s),
    "no intercept": (HuberRegressor(fit_intercept=False), lambda s: s),
    "counts": (PoissonRegressor(), lambda s: np.floor(np.exp(s))),
    "moments": (Ridge(solver="sufficient-statistics"), lambda s: s),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_gives_the_model_of_the_rows_in_memory(name, weighted):
    """Up to last bits of slopes, which the noise hides; here they decide nothing."""
    estimator, target = CASES[name]
    (X, score), kind = a_table(), type(estimator)
    y, metadata = target(score), {"sample_weight": np.linspace(0.2, 1.0, 4000)} if weighted else {}
    found, wanted = (kind(**(estimator.get_params() | {"random_state": 1})) for _ in range(2))
    found.fit(torch.as_tensor(X), torch.as_tensor(y), **metadata)
    in_memory(wanted, X, y, **metadata)
    assert np.allclose(found.coef_, wanted.coef_, rtol=1e-9, atol=1e-12)
    assert np.allclose(found.intercept_, wanted.intercept_, rtol=1e-9, atol=1e-12)
    assert found.guarantee_.epsilon == wanted.guarantee_.epsilon
    assert found.n_features_in_ == 3
    assert found.weighted_ == weighted
    assert np.array_equal(found.predict(torch.as_tensor(X[:9])), found.predict(X[:9]))


def test_solvers_that_need_all_rows_name_those_that_do_not():
    X, score = a_table()
    with pytest.raises(IncompatibleSolverError, match=r"'cd' cannot be used: .*'newton'"):
        LogisticRegression(classes=[0, 1], solver="cd").fit(torch.as_tensor(X), score > 0)


def test_persons_and_wrong_targets_are_refused():
    X, score = a_table()
    with pytest.raises(ValueError, match="groups is for tables in the memory of the host"):
        Ridge().fit(torch.as_tensor(X), score, groups=np.arange(4000))
    with pytest.raises(ValueError, match="NaN"):
        Ridge().fit(torch.as_tensor(X), np.where(score > 0, np.nan, score))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Ridge().fit(torch.as_tensor(X), score[1:])
    with pytest.raises(ValueError, match="not in classes"):
        LogisticRegression(classes=[0, 1]).fit(torch.as_tensor(X), torch.full((4000,), 2))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (torch.zeros(3), r"shape \(3,\)"),
        (torch.zeros(0, 2), r"shape \(0, 2\)"),
        (torch.zeros(3, 2, dtype=torch.int64), r"pass X\.float\(\)"),
        (torch.zeros(3, 2, dtype=torch.complex64), "float32 or float64"),
        (torch.zeros(3, 2, dtype=torch.float16), "float32 or float64"),
        (torch.zeros(3, 2, requires_grad=True), r"X\.detach\(\)"),
        (torch.tensor([[1.0, np.nan]]), "NaN or infinity"),
        (torch.tensor([[1.0, -np.inf]]), "NaN or infinity"),
        (torch.eye(2).to_sparse(), "SciPy sparse"),
        (torch.zeros(3, 2, device="meta"), "device 'meta'"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_in_one_line(X, words):
    with pytest.raises(ValueError, match=words) as refused:
        check_tensor(X)
    assert "\n" not in str(refused.value)


def test_huge_entries_are_taken():
    assert check_tensor(torch.full((2, 2), 1.7e308, dtype=torch.float64)).shape == (2, 2)


def test_only_marked_parts_are_told_tensors():
    X, y = a_table()
    rows, seen = GpuRows(torch.as_tensor(X), y), []

    def part(block):
        seen.append(type(block.X))
        return np.asarray(block.X.sum(0), dtype=np.float64)

    total = rows.sum(part)
    assert len(seen) == len(block_slices(4000, 3))
    assert set(seen) == {np.ndarray}
    seen.clear()
    assert np.allclose(rows.sum(takes_tensors(part)), total, rtol=1e-4)
    assert len(seen) == 2
    assert set(seen) == {torch.Tensor}
