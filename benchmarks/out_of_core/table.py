"""A Parquet file of random rows."""

from __future__ import annotations

from pathlib import Path

COLUMNS, GROUP = 20, 1 << 17


def write_table(path: Path, rows: int) -> None:
    """Random doubles do not compress: the file is as large as the table would be in memory."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(COLUMNS)] + [("y", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, GROUP):
            X = rng.standard_normal((min(GROUP, rows - start), COLUMNS))
            label = X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(X.shape[0]) > 0.0
            columns = [pa.array(np.ascontiguousarray(X[:, j])) for j in range(COLUMNS)]
            writer.write_table(pa.table([*columns, pa.array(label.astype(np.int8))], schema=schema))
