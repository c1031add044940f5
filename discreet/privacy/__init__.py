"""Everything that makes a release private: relations, budgets, mechanisms, accounting, randomness, the ledger.

The names listed here tell what a promise means and how promises compare (docs/meaning.md); what estimators need is
imported from the modules of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "TradeOff": "tradeoffs",
    "trade_off": "tradeoffs",
    "advantage": "tradeoffs",
    "posterior": "tradeoffs",
    "conversions": "conversions",
    "RandomisedResponse": "randomised_response",
    "plot_meaning": "meaning_plot",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.privacy import conversions as conversions
    from discreet.privacy.meaning_plot import plot_meaning as plot_meaning
    from discreet.privacy.randomised_response import RandomisedResponse as RandomisedResponse
    from discreet.privacy.tradeoffs import TradeOff as TradeOff
    from discreet.privacy.tradeoffs import advantage as advantage
    from discreet.privacy.tradeoffs import posterior as posterior
    from discreet.privacy.tradeoffs import trade_off as trade_off
