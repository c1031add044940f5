"""Dask tables for tests: the same rows cut in many ways, and a record of what travels to workers."""

from __future__ import annotations

from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np

from discreet.data.distributed import engine

CUTS = ([1500], [1, 0, 550, 949], [0, 1499, 1, 0], [70] * 21 + [30])


def cut_frame(table, sizes):
    """A Dask frame whose partitions have these sizes, and no divisions."""
    ends = np.cumsum([0, *sizes])
    parts = [dask.delayed(table.iloc[low:high]) for low, high in pairwise(ends)]
    return dd.from_delayed(parts, meta=table.iloc[:0], verify_meta=False)


def cut_array(values, sizes):
    """A Dask array whose chunks have these numbers of rows."""
    shape = (tuple(sizes), *((size,) for size in values.shape[1:]))
    return da.from_array(np.asarray(values), chunks=shape)


def record_parts(monkeypatch):
    """A list that grows by the bytes of every part that is sent."""
    sent, pack = [], engine.pack

    def recorded(part):
        sent.append(pack(part))
        return sent[-1]

    monkeypatch.setattr(engine, "pack", recorded)
    return sent
