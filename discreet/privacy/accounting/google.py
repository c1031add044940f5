"""Hand an event to Google's accountants, as an outside check of ours.

The two accountants of dp-accounting 0.6 disagree about what a multiplier means under REPLACE_ONE, and have no
event for selections; the recipes here translate so that they count what happened. See
docs/guarantees/accounting.md, "Asking Google".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dp_accounting import DpEvent

from discreet.privacy.accounting import releases
from discreet.privacy.accounting.events import read_composition
from discreet.privacy.accounting.pld.discretisation import connect_dots, loss_range
from discreet.privacy.relation import Relation


def google_epsilon(event: DpEvent, delta: float, relation: Relation | str, interval: float = 1e-4) -> float:
    """Return the epsilon that Google's accountants find for an event at delta.

    Parameters
    ----------
    event, delta, relation
        As for `epsilon_of`.
    interval : float
        The step of Google's grid of losses; many small releases need a finer one.

    Notes
    -----
    Selections go in as zCDP, so a plan with selections compares with our zCDP route, not with the least one.
    """
    composition = read_composition(event, relation)
    if not composition.is_private:
        return math.inf
    kinds = {type(release) for release, _ in composition.totals}
    if releases.Selection in kinds:
        return _by_rdp(composition, kinds, delta)
    if (
        Relation(relation) is Relation.REPLACE
        and kinds <= {releases.GaussianNoise, releases.PoissonGaussianNoise}
        and releases.PoissonGaussianNoise in kinds
    ):
        return _by_pld_accountant(composition, delta, interval, "REPLACE_ONE", gaussian_factor=2.0)
    replaced = {releases.PoissonGaussianNoise} if Relation(relation) is Relation.REPLACE else set()
    if kinds <= {releases.GaussianNoise, releases.PoissonGaussianNoise, releases.LaplaceNoise} - replaced:
        return _by_pld_accountant(composition, delta, interval, "ADD_OR_REMOVE_ONE", gaussian_factor=1.0)
    return _by_composed_plds(composition, delta, interval)


def _by_rdp(composition: releases.Composition, kinds: set[Any], delta: float) -> float:
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    if not kinds <= {releases.Selection, releases.GaussianNoise, releases.LaplaceNoise}:
        raise ValueError("Google's accountants cannot compose selections with sampled releases")
    orders = list(1.0 + np.geomspace(1e-2, 1e6, 2_000))  # its own grid stops at 1024 and is coarse above 64
    accountant = RdpAccountant(orders, dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for release, count in composition.totals:
        if isinstance(release, releases.GaussianNoise):
            accountant.compose(dp.GaussianDpEvent(release.multiplier), count)
        else:
            accountant.compose(dp.ZCDpEvent(count * release.rho()))
    return float(accountant.get_epsilon(delta))


def _by_pld_accountant(
    composition: releases.Composition, delta: float, interval: float, neighbours: str, gaussian_factor: float
) -> float:
    """Use the PLD accountant, which doubles the shift of a plain Gaussian under REPLACE_ONE."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(getattr(dp.NeighboringRelation, neighbours), interval)
    for release, count in composition.totals:
        if isinstance(release, releases.GaussianNoise):
            accountant.compose(dp.GaussianDpEvent(gaussian_factor * release.multiplier), count)
        elif isinstance(release, releases.LaplaceNoise):
            accountant.compose(dp.LaplaceDpEvent(release.multiplier), count)
        elif isinstance(release, releases.PoissonGaussianNoise):
            inner = dp.GaussianDpEvent(release.multiplier)
            accountant.compose(dp.PoissonSampledDpEvent(release.rate, inner), count)
    return float(accountant.get_epsilon(delta))


def _by_composed_plds(composition: releases.Composition, delta: float, interval: float) -> float:
    """Compose with Google's convolution the pairs for which its accountants have no event."""
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    worst = 0.0
    for way in (0, 1):
        total = None
        for release, count in composition.totals:
            pairs = release.pairs()
            assert pairs is not None
            last = math.ceil(max(loss_range(pairs[way], 1e-6 * delta / count)) / interval) + 1
            law = connect_dots(pairs[way], interval * np.arange(-last, last + 1, dtype=np.float64))
            positions = np.rint(law.losses / interval).astype(np.int64)
            masses = np.bincount(positions - positions[0], weights=law.masses)
            part = DensePLDPmf(interval, int(positions[0]), masses, law.infinity, True)
            part = part.self_compose(count) if count > 1 else part
            total = part if total is None else total.compose(part)
        worst = max(worst, float(total.get_epsilon_for_delta(delta)) if total is not None else 0.0)
    return worst
