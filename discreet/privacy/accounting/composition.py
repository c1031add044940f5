"""A plan's releases under a relation, sorted by what the accounting can do with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.privacy.accounting.event_tree import length, releases_in_order, total_releases
from discreet.privacy.accounting.releases import GaussianNoise, NonPrivate, Release, Selection
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# Above this many changes between selections and Gaussians their order is not kept.
LONGEST_ORDER = 20_000

Counted = tuple[tuple[Release, int], ...]


@dataclass(frozen=True)
class Composition:
    """Everything a plan releases, with how often.

    Attributes
    ----------
    totals : tuple of (Release, int)
        Each distinct release once.
    order : tuple of (Release, int), optional
        The Gaussian and selection releases in the order executed; None if there is no selection or the
        order is too long to keep.
    """

    totals: Counted
    order: Counted | None = None

    @property
    def is_private(self) -> bool:
        """Whether every release has noise."""
        return not any(isinstance(release, NonPrivate) for release, _ in self.totals)

    @property
    def only_gaussian(self) -> bool:
        """Whether all releases are plain Gaussians, for which Gaussian DP is exact."""
        return all(isinstance(release, GaussianNoise) for release, _ in self.totals)

    @property
    def gaussian_mu(self) -> float:
        """The mu of the plain Gaussian releases alone."""
        return math.sqrt(math.fsum(n * r.mu() ** 2 for r, n in self.totals if isinstance(r, GaussianNoise)))

    @property
    def selections(self) -> Counted:
        """The selections alone."""
        return tuple((release, n) for release, n in self.totals if isinstance(release, Selection))

    @property
    def others(self) -> Counted:
        """What is neither a plain Gaussian nor a selection."""
        return tuple((r, n) for r, n in self.totals if not isinstance(r, GaussianNoise | Selection))

    @property
    def order_rho(self) -> float:
        """The zCDP cost of the Gaussian and selection releases in `order`."""
        return math.fsum(n * release.rho() for release, n in self.order or ())

    def rho(self) -> float:
        """Return the zCDP cost."""
        return math.fsum(n * release.rho() for release, n in self.totals)

    def mu(self) -> float:
        """Return the Gaussian DP cost, infinite if a release has none."""
        return math.sqrt(math.fsum(n * release.mu() ** 2 for release, n in self.totals))

    def pure_epsilon(self) -> float:
        """Return the pure DP cost."""
        return math.fsum(n * release.pure_epsilon() for release, n in self.totals)


def read_composition(event: DpEvent, relation: Relation | str, in_order: bool = True) -> Composition:
    """Return the releases of an event under a relation; refuse events and relations that are not known.

    `in_order` says whether the event lists its releases in the order executed.
    """
    relation = Relation(relation)
    totals = tuple(total_releases(event, relation).items())
    has_selection = any(isinstance(release, Selection) for release, _ in totals)
    if not (has_selection and in_order) or length(event) > LONGEST_ORDER:
        return Composition(totals)
    order = tuple((r, n) for r, n in releases_in_order(event, relation) if isinstance(r, GaussianNoise | Selection))
    return Composition(totals, order)
