"""Blocks of rows: cut by the number of columns alone, and summed to the same bits wherever the rows are stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.data import rows
from discreet.data.rows import Data, Limits, block_rows, block_slices, moment_sums, sum_over_blocks
from discreet.scaling import histograms
from tests.stored_rows import StoredTable


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of seven rows for three columns."""
    monkeypatch.setattr(rows, "BLOCK_ENTRIES", 21)


def some_data(count=50, columns=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, columns)) * np.geomspace(1e-3, 1e3, columns)
    return Data(X, rng.standard_normal(count), rng.random(count) if weighted else None)


def test_blocks_are_cut_by_the_number_of_columns(small_blocks):
    assert block_rows(3) == 7
    assert block_rows(1_000) == 1
    data = some_data()
    sizes = [block.rows for block in data.blocks()]
    assert sizes == [7] * 7 + [1]
    assert sum(part.stop - part.start for part in block_slices(50, 3)) == 50
    np.testing.assert_array_equal(np.vstack([block.X for block in data.blocks()]), data.X)
    np.testing.assert_array_equal(np.concatenate([block.weight for block in data.blocks()]), data.weight)


def test_a_sparse_table_is_one_block(small_blocks):
    data = Data(sp.csr_array(some_data().X), np.zeros(50))
    assert [block.rows for block in data.blocks()] == [50]


def test_sums_need_rows():
    assert sum_over_blocks([1.0, 2.0], lambda term: np.full(2, term)).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="without rows"):
        sum_over_blocks([], lambda block: np.zeros(1))


def test_the_first_term_is_not_overwritten():
    terms = [np.ones(2), np.ones(2)]
    sum_over_blocks(terms, lambda term: term)
    assert terms[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("weighted", [True, False])
def test_stored_rows_give_the_same_bits(small_blocks, weighted):
    data = some_data(weighted=weighted)
    stored = StoredTable(data)
    groups = [range(j, j + 1) for j in range(4)]
    limits = Limits(-np.full(4, 2.0), np.full(4, 2.0), np.zeros(4), np.full(4, 2.0))
    for sums in (
        lambda table: moment_sums(table, limits, slice(0, 4)),
        lambda table: histograms.exponent_counts(table, groups, np.zeros(4)),
        lambda table: histograms.exponent_counts(table, [range(3)], np.zeros(4)),
        histograms.signed_exponent_counts,
    ):
        np.testing.assert_array_equal(sums(data), sums(stored))
    assert histograms.largest(data, groups, np.zeros(4)) == histograms.largest(stored, groups, np.zeros(4))


def test_blocks_do_not_change_counts_and_hardly_change_moments(monkeypatch):
    """Counts of unweighted rows are whole numbers, so they are exact however the rows are cut."""
    data = some_data(weighted=False)
    groups = [range(j, j + 1) for j in range(3)]
    limits = Limits(-np.full(4, 2.0), np.full(4, 2.0), np.zeros(4), np.full(4, 2.0))
    found = []
    for entries in (21, 1 << 18):
        monkeypatch.setattr(rows, "BLOCK_ENTRIES", entries)
        counts = histograms.exponent_counts(data, groups, np.zeros(3)), histograms.signed_exponent_counts(data)
        found.append((counts, moment_sums(data, limits, slice(0, 4))))
    for a, b in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def test_dense_and_sparse_tables_have_the_same_counts():
    X = np.where(np.random.default_rng(1).random((40, 5)) < 0.7, 0.0, some_data(40, 5).X)
    dense, sparse = Data(X, np.zeros(40)), Data(sp.csc_array(X), np.zeros(40))
    groups = [range(j, j + 1) for j in range(5)]
    np.testing.assert_array_equal(
        histograms.exponent_counts(dense, groups, np.zeros(5)), histograms.exponent_counts(sparse, groups, np.zeros(5))
    )
    np.testing.assert_array_equal(histograms.signed_exponent_counts(dense), histograms.signed_exponent_counts(sparse))
