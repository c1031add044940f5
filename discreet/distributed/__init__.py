"""Rows that lie on the workers of a cluster: sums of blocks are computed there, and the driver adds the noise."""

from discreet.distributed.dask_tables import is_dask, table_of_dask
from discreet.distributed.elsewhere import is_elsewhere, table_elsewhere
from discreet.distributed.rows import DistributedRows, DistributedTable

__all__ = ["DistributedRows", "DistributedTable", "is_dask", "is_elsewhere", "table_elsewhere", "table_of_dask"]
