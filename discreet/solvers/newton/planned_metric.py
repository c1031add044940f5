"""How much of the columns' second moment will be seen through its noise, from public facts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.privacy import mechanisms
from discreet.scaling.second_moment import noise_edge

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget


def hidden_part(share: float, budget: Budget, public: Public, columns: int) -> float:
    """The edge of the noise's eigenvalues over the trace of the second moment, for rows of typical length.

    Scaled columns have mean square 1, so that the trace is the number of columns. An eigenvalue is seen if it exceeds
    the edge, so a direction is if it holds more than this part of the rows' squared length.
    """
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    return noise_edge(columns, deviation) / columns
