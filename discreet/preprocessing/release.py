"""What a release is made from: checked rows, the public facts about them, a budget; and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet._common.types import FloatArray
from discreet.data.loading import CheckedTable, load_array
from discreet.data.public import Public, public_facts
from discreet.data.rows import Rows
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.guarantee import Guarantee


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


def rows_and_facts(
    X: Any, bounds: Any, sample_weight: Any, door: Callable[..., CheckedTable] = load_array, **promised: Any
) -> tuple[Any, Public, Budget]:
    """A raw table with declared bounds, validated, and its facts; `promised` are the last arguments of `facts_of`.

    What needs only sums over the rows passes the door `load`: X may then be a Dask table or a `pyarrow.dataset`.
    """
    if bounds is None:
        raise ValueError("bounds is missing; pass (low, high), for example from PrivateBounds.")
    table = door(X, metadata={"sample_weight": sample_weight})
    public, budget = facts_of(table.rows, bounds, table.names, table.booleans, **promised)
    public.complete_bounds(table.names)
    return table.rows, public, budget
