"""A `pyarrow.dataset` as a source of batches: many files, read one after the other in their order."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from discreet.data.arrow_columns import arrow_kind

READ_AT_ONCE = 1 << 24  # bytes of all columns together that are read from a Parquet file before they are decoded
LEAST_READ, MOST_READ = 1 << 14, 1 << 20  # of one column
FEW = {"batch_readahead": 1, "fragment_readahead": 1}  # Arrow's own defaults let memory grow while a scan goes on


def open_parquet(file: Any) -> Any:
    """A Parquet file of which only what is being decoded lies in memory, however many columns it has."""
    from pyarrow.parquet import ParquetFile, read_metadata

    metadata = read_metadata(file)
    share = min(MOST_READ, max(LEAST_READ, READ_AT_ONCE // max(1, metadata.num_columns)))
    return ParquetFile(file, metadata=metadata, pre_buffer=False, buffer_size=share)


@contextmanager
def without_values(source: object) -> Iterator[None]:
    """Replace Arrow's errors, which quote values and row numbers, by one that names the source alone."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None):  # of the disk; what Arrow finds in a file has no number
            raise
        raise ValueError(
            f"{source} could not be read: a file is damaged or has changed, or a value does not have the type of its "
            "column."
        ) from None


class DatasetSource:
    """The columns of a data set, batch by batch, always in the same order.

    Attributes
    ----------
    kinds : dict
        For every column its name and its kind: "number", "category" or "ignore".
    rows : int
        The number of rows; counted once, from the footers of the files where they have one.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.kinds = {field.name: arrow_kind(field.type) for field in dataset.schema}

    def __str__(self) -> str:
        return "the data set"

    @cached_property
    def rows(self) -> int:
        with without_values(self):
            return int(self._dataset.count_rows())

    def batches(self, wanted: list[str], rows: int) -> Generator[Any, None, None]:
        """The wanted columns as Arrow batches of at most so many rows."""
        with without_values(self):
            yield from self._batches(wanted, rows)

    def _batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        try:
            fragments = list(self._dataset.get_fragments())
        except ValueError:  # a data set with a filter has no fragments of its own
            yield from self._dataset.to_batches(columns=wanted, batch_size=rows, **FEW)
            return
        for fragment in fragments:
            yield from self._fragment(fragment, wanted, rows)

    def _fragment(self, fragment: Any, wanted: list[str], rows: int) -> Iterator[Any]:
        """Parquet files are read directly, since Arrow's scanner holds on to batches that were given out."""
        from pyarrow.dataset import ParquetFileFragment

        if isinstance(fragment, ParquetFileFragment) and set(wanted) <= set(fragment.physical_schema.names):
            groups = [group.id for group in fragment.row_groups]
            with fragment.open() as file:
                yield from open_parquet(file).iter_batches(batch_size=rows, row_groups=groups, columns=wanted)
            return
        options = {"batch_size": rows, "batch_readahead": FEW["batch_readahead"]}
        yield from fragment.to_batches(schema=self._dataset.schema, columns=wanted, **options)
