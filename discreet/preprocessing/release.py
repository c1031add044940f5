"""What a release is made from: checked rows, the public facts about them, a budget; and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.bounds import boolean_columns, names_of
from discreet.data.public import public_facts
from discreet.data.rows import Data, Rows
from discreet.data.validation import load_features
from discreet.distributed import is_elsewhere, table_elsewhere
from discreet.privacy.budget import budget_from
from discreet.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget


@dataclass(frozen=True, eq=False)
class Released:
    """Numbers that were released, one per column, with their guarantee.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        The released numbers.
    guarantee : Guarantee
        What is promised about them.
    weighted_ : bool
        Whether sample weights were given.
    """

    values: FloatArray
    guarantee: Guarantee
    weighted_: bool = False

    @property
    def event(self) -> Any:
        return self.guarantee.event


def facts_of(
    data: Rows,
    bounds: Any,
    feature_names: Any = None,
    booleans: Any = None,
    *,
    epsilon: Any,
    delta: Any,
    relation: Any,
    public_n: Any,
) -> tuple[Public, Budget]:
    """What is public about validated rows, and the budget that goes with their number."""
    facts = {"relation": relation, "public_n": public_n, "booleans": booleans}
    public = public_facts(data, bounds=bounds, feature_names=feature_names, **facts)
    return public, budget_from(epsilon, delta, public.rows)


def rows_and_facts(X: Any, bounds: Any, sample_weight: Any, **promised: Any) -> tuple[Data, Public, Budget]:
    """A raw table with declared bounds, validated, and its facts; `promised` are the last arguments of `facts_of`."""
    if bounds is None:
        raise ValueError("bounds is missing; pass (low, high), for example from PrivateBounds.")
    data, names = load_features(X, sample_weight), names_of(X)
    public, budget = facts_of(data, bounds, names, boolean_columns(X), **promised)
    public.complete_bounds(names)
    return data, public, budget


def sums_and_facts(X: Any, bounds: Any, sample_weight: Any, **promised: Any) -> tuple[Rows, Public, Budget]:
    """The same for what needs only sums over the rows: X may be a Dask table or a `pyarrow.dataset`."""
    if bounds is None or not is_elsewhere(X):
        return rows_and_facts(X, bounds, sample_weight, **promised)
    if sample_weight is not None:
        raise ValueError("sample_weight is for tables in memory; a table that is read block by block has none.")
    table = table_elsewhere(X)
    rows, names = table.encoded(np.asarray), table.names if table.named else None
    public, budget = facts_of(rows, bounds, names, table.booleans, **promised)
    public.complete_bounds(names)
    return rows, public, budget
