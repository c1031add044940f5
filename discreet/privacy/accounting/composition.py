"""What an event is made of: elementary releases under a relation, sorted by how the accounting treats them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet._common.checks import at_least_zero, fraction, whole
from discreet.privacy.accounting import releases
from discreet.privacy.accounting.releases import GaussianNoise, NonPrivate, Release, Selection
from discreet.privacy.accounting.trials_law import TrialsLaw
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent

_LONGEST = 1_000_000
_MOST_RELEASES = 10**18
_MOST_PARTS = 1_000  # of a mixture
# What releases with other than normal noise in a file may cost: each different one is put on a grid, whose size grows
# with the root of how many releases there are, and is at least that of _SMALLEST_GRID. This takes about a second.
_MOST_WORK, _SMALLEST_GRID = 1_000, 600
_MOST_NORMAL = 20_000  # different releases with normal noise in a file
# Beyond these a release counts as one without noise, which is never too little and keeps all sums finite.
_LEAST_NOISE, _LARGEST_EPSILON = 1e-10, 1e10


def flatten(event: DpEvent) -> list[tuple[DpEvent, int]]:
    """Return the elementary events of a tree in the order executed, equal neighbours counted together.

    Raises
    ------
    ValueError
        If the tree holds an event that this package cannot account for; the message names it.
    """
    if length(event) > _LONGEST:
        raise ValueError(f"the event has more than {_LONGEST} changes of release; it cannot be listed in order")
    runs: list[tuple[DpEvent, int]] = []
    for leaf, count in _walk(event):
        if runs and runs[-1][0] == leaf:
            runs[-1] = (leaf, runs[-1][1] + count)
        else:
            runs.append((leaf, count))
    return runs


def releases_in_order(event: DpEvent, relation: Relation) -> list[tuple[Release, int]]:
    """Return the releases in the order executed, without those that cost nothing."""
    found = ((read_release(leaf), count) for leaf, count in flatten(event))
    return [(release.resolve(relation), count) for release, count in found if release is not None]


def total_releases(event: DpEvent, relation: Relation) -> dict[Release, int]:
    """Return how often each distinct release happens; cheap even where the order is very long."""
    totals = _counted(event)
    resolved: dict[Release, int] = {}
    for release, count in totals.items():
        simpler = release.resolve(relation)
        resolved[simpler] = resolved.get(simpler, 0) + count
    return resolved


def check_distinct(event: DpEvent) -> None:
    """Refuse an event from a file whose many releases would take long to account for."""
    totals = _counted(event)
    searches = [release for release in totals if isinstance(release, releases.BestOfTrials)]
    inside = [release for search in searches for trial in search.trials for release, _ in trial]
    found = {release for release in (*totals, *inside) if not isinstance(release, releases.GaussianNoise)}
    repeated = max(len(found), sum(totals.get(release, 0) for release in found))
    if len(found) * math.sqrt(repeated + _SMALLEST_GRID) > _MOST_WORK or len(totals) - len(found) > _MOST_NORMAL:
        raise ValueError(f"its event has {len(totals)} different releases, {repeated:.6g} in all, too many for a file.")


def length(event: DpEvent) -> int:
    """Return the number of runs that `flatten` would list, at most."""
    kind = type(event).__name__
    if kind == "ComposedDpEvent":
        return sum(length(part) for part in event.events)
    if kind == "SelfComposedDpEvent":
        inside = length(event.event)
        return inside if inside <= 1 else inside * event.count
    return 1


def has_best_of_trials(event: DpEvent) -> bool:
    """Whether somewhere the best of a random number of trials is released, so that their number must stay unknown."""
    kind = type(event).__name__
    if kind == "ComposedDpEvent":
        return any(has_best_of_trials(part) for part in event.events)
    return has_best_of_trials(event.event) if kind == "SelfComposedDpEvent" else kind == "BestOfTrialsDpEvent"


def read_release(event: DpEvent) -> Release | None:
    """Return what an elementary event costs, or None if it is free; refuse what is not known."""
    reader = readers().get(type(event))
    if reader is None:
        raise ValueError(f"cannot account for the event {event!r}; write it with the constructors of discreet")
    release: Release | None = reader(event)
    return release


def _walk(event: DpEvent) -> list[tuple[DpEvent, int]]:
    from dp_accounting import ComposedDpEvent, NoOpDpEvent, SelfComposedDpEvent

    if type(event) is NoOpDpEvent:
        return []
    if type(event) is ComposedDpEvent:
        return [run for part in event.events for run in _walk(part)]
    if type(event) is SelfComposedDpEvent:
        inside, count = _walk(event.event), whole("count", event.count, least=0)
        return [(inside[0][0], inside[0][1] * count)] if len(inside) == 1 and count else inside * count
    read_release(event)
    return [(event, 1)]


def _counted(event: DpEvent) -> dict[Release, int]:
    """How often each release of a tree happens, those that are found first coming first."""
    from dp_accounting import ComposedDpEvent, SelfComposedDpEvent

    totals: dict[Release, int] = {}
    waiting = [(event, 1)]
    while waiting:
        part, times = waiting.pop()
        if type(part) is ComposedDpEvent:
            waiting += [(inside, times) for inside in reversed(part.events)]
        elif type(part) is SelfComposedDpEvent:
            waiting.append((part.event, times * whole("count", part.count, least=0)))
        elif times > _MOST_RELEASES:
            raise ValueError(f"the event repeats a release more than {_MOST_RELEASES:g} times")
        elif (release := read_release(part)) is not None and times:
            totals[release] = totals.get(release, 0) + times
    return totals


@cache
def readers() -> dict[Any, Any]:
    """Return the table of known elementary events; a subclass is not its parent, so it is unknown."""
    from dp_accounting import dp_event as dp

    from discreet.privacy.accounting import custom_events as own

    return {
        dp.NoOpDpEvent: lambda event: None,
        dp.NonPrivateDpEvent: lambda event: releases.NonPrivate(),
        dp.GaussianDpEvent: lambda event: _noisy(releases.GaussianNoise, event.noise_multiplier),
        dp.LaplaceDpEvent: lambda event: _noisy(releases.LaplaceNoise, event.noise_multiplier),
        own.BoundedRangeDpEvent: _read_selection,
        own.PureDpEvent: lambda event: _pure(event.epsilon),
        own.ObjectiveDpEvent: _read_objective,
        own.BestOfTrialsDpEvent: _read_best,
        dp.PoissonSampledDpEvent: _read_poisson,
        dp.SampledWithoutReplacementDpEvent: _read_fixed_size,
        dp.RandomizedResponseDpEvent: _read_response,
        dp.MixtureOfGaussiansDpEvent: _read_mixture,
    }


def _noisy(kind: Any, multiplier: Any, *before: float) -> Release | None:
    number = at_least_zero("noise multiplier", multiplier)
    if number < _LEAST_NOISE:
        return releases.NonPrivate()
    release: Release = kind(*before, number)
    return None if number == math.inf else release


def _read_selection(event: Any) -> Release | None:
    epsilon = at_least_zero("epsilon", event.epsilon)
    if epsilon > _LARGEST_EPSILON:
        return releases.NonPrivate()
    return releases.Selection(epsilon) if epsilon else None


def _pure(epsilon: Any) -> Release | None:
    number = at_least_zero("epsilon", epsilon)
    if number > _LARGEST_EPSILON:
        return releases.NonPrivate()
    return releases.PureNoise(number) if number else None


def _read_objective(event: Any) -> Release | None:
    shift, multiplier = at_least_zero("shift", event.shift), at_least_zero("noise multiplier", event.noise_multiplier)
    tails = whole("tails", event.tails, least=1)
    if multiplier == math.inf:  # the determinants remain, however much noise there is
        return _pure(shift)
    if multiplier < _LEAST_NOISE or shift > _LARGEST_EPSILON:
        return releases.NonPrivate()
    return releases.Objective(shift, multiplier, tails)


def _read_best(event: Any) -> Release | None:
    """Nothing is released if no trial releases anything; one without noise makes the whole so."""
    law = TrialsLaw(event.eta, event.gamma)
    if not event.events or len(event.events) > _MOST_PARTS:
        raise ValueError(f"a trial must cost one of 1 to {_MOST_PARTS} events, got {len(event.events)}")
    trials = []
    for part in event.events:
        totals = _counted(part)
        if any(isinstance(release, releases.BestOfTrials) for release in totals):
            raise ValueError("cannot account for a search inside the trials of a search")
        if any(isinstance(release, releases.NonPrivate) for release in totals):
            return releases.NonPrivate()
        trials.append(tuple(totals.items()))
    kept = tuple(trial for trial in trials if trial)
    return releases.BestOfTrials(kept, law) if kept else None


def _inner_multiplier(event: Any) -> Any:
    from dp_accounting import GaussianDpEvent

    if type(event.event) is not GaussianDpEvent:
        raise ValueError(f"cannot account for sampling around {event.event!r}; only a Gaussian event can be inside")
    return event.event.noise_multiplier


def _read_poisson(event: Any) -> Release | None:
    rate = fraction("sampling probability", event.sampling_probability)
    multiplier = _inner_multiplier(event)
    return _noisy(releases.PoissonGaussianNoise, multiplier, rate) if rate else None


def _read_fixed_size(event: Any) -> Release | None:
    n = whole("source dataset size", event.source_dataset_size, least=1)
    batch = whole("sample size", event.sample_size, least=0)
    multiplier = _inner_multiplier(event)
    if batch > n:
        raise ValueError(f"cannot draw {batch} of {n} rows without replacement")
    return _noisy(releases.FixedSizeGaussianNoise, multiplier, batch / n) if batch else None


def _read_response(event: Any) -> Release | None:
    noise = fraction("noise parameter", event.noise_parameter)
    buckets = whole("number of buckets", event.num_buckets, least=1)
    if buckets == 1 or noise == 1.0:
        return None
    return releases.Response(noise, buckets) if noise > _LEAST_NOISE * buckets else releases.NonPrivate()


def _read_mixture(event: Any) -> Release | None:
    deviation = at_least_zero("standard deviation", event.standard_deviation)
    if len(event.sensitivities) > _MOST_PARTS:
        raise ValueError(f"a mixture may have at most {_MOST_PARTS} sensitivities, got {len(event.sensitivities)}")
    moves = [at_least_zero("sensitivity", s) for s in event.sensitivities]
    weights = [fraction("sampling probability", p) for p in event.sampling_probs]
    if len(moves) != len(weights) or abs(math.fsum(weights) - 1.0) > 1e-9:
        raise ValueError(f"the probabilities of a mixture must match its sensitivities and sum to 1: {event!r}")
    kept = sorted((s, p) for s, p in zip(moves, weights, strict=True) if p > 0.0)
    if kept[-1][0] == 0.0 or deviation == math.inf:
        return None
    if deviation < _LEAST_NOISE * kept[-1][0]:
        return releases.NonPrivate()
    return releases.GaussianMixture(tuple(s / deviation for s, _ in kept), tuple(p for _, p in kept))


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
