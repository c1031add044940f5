"""Privacy events, the field's own vocabulary (dp_accounting): built, written and read, and what they are made of.

Only this package and `discreet.privacy.mechanisms` deal with dp_accounting; this module is imported on first use,
because dp_accounting takes most of a second. Numbers are checked here. Events become JSON-safe dictionaries and back;
only known types are built, never one named by the data. What an event is made of are elementary releases under a
relation, in the order executed or counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attr
from dp_accounting import dp_event as dp
from dp_accounting.dp_event import DpEvent

from discreet._common.checks import at_least_zero, fraction, whole
from discreet._common.codec import Unbounded, checked, plain
from discreet.privacy.accounting import releases
from discreet.privacy.accounting.releases import Composition, GaussianNoise, Release, Selection, TrialsLaw
from discreet.privacy.relation import Relation


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BoundedRangeDpEvent(DpEvent):
    """A selection by the exponential mechanism: Gumbel noise of scale 2 sensitivity / epsilon.

    For every two neighbouring tables the log-ratio of the probabilities of an outcome lies in an interval of
    length epsilon that contains zero (bounded range), whatever the number of candidates.

    Guarantee: epsilon-DP, and epsilon^2 / 8-zCDP.
    """

    epsilon: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class PureDpEvent(DpEvent):
    """A release of which nothing is known but that it is epsilon-DP.

    Guarantee: dominated by randomised response with the same epsilon.
    """

    epsilon: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ObjectiveDpEvent(DpEvent):
    """The exact minimiser of a strongly convex objective with Gaussian noise on its gradient.

    The noise multiplier is the standard deviation over the sensitivity of the gradient; `shift` bounds the
    log-ratio of the determinants of the Hessians, `tails` counts the Gaussian tails that the proof adds up.

    Guarantee: the loss exceeds x >= shift with probability at most tails * P(G > x - shift), G being the loss of
    a Gaussian release with the same multiplier (docs/guarantees/objective-perturbation.md).
    """

    shift: float
    noise_multiplier: float
    tails: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BestOfTrialsDpEvent(DpEvent):
    """The best of a random number of independent trials; the number and the other trials are not released.

    Each trial costs one of `events`. The number of trials is a truncated negative binomial with the parameters eta
    (1: geometric, 0: logarithmic) and gamma.

    Guarantee: the profile of docs/guarantees/private-search.md.
    """

    events: list[DpEvent]
    eta: float
    gamma: float


# What the fields of an event hold that are no single number; the events inside are read one by one.
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("tails", "num_buckets", "count", "source_dataset_size", "sample_size"), int),
    **dict.fromkeys(("sensitivities", "sampling_probs"), list[Unbounded]),
    "event": Any,
    "events": list[Any],
}
_DEEPEST = 50
_LARGEST_EVENT = 50_000  # parts of an event that is read, those inside others included


def gaussian_event(multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` releases with Gaussian noise of standard deviation multiplier * sensitivity."""
    return _repeat(dp.GaussianDpEvent(at_least_zero("multiplier", multiplier)), count)


def laplace_event(multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` releases with Laplace noise of scale multiplier * l1 sensitivity."""
    return _repeat(dp.LaplaceDpEvent(at_least_zero("multiplier", multiplier)), count)


def selection_event(epsilon: float, count: int = 1) -> DpEvent:
    """Return `count` selections by the exponential mechanism, each of bounded range epsilon."""
    return _repeat(BoundedRangeDpEvent(at_least_zero("epsilon", epsilon)), count)


def pure_event(epsilon: float, count: int = 1) -> DpEvent:
    """Return `count` releases of which nothing is known but that each is epsilon-DP."""
    return _repeat(PureDpEvent(at_least_zero("epsilon", epsilon)), count)


def objective_event(shift: float, multiplier: float, tails: int = 1, count: int = 1) -> DpEvent:
    """Return `count` minimisers of objectives with Gaussian noise of std multiplier * sensitivity on the gradient.

    `shift` bounds the log-ratio of the two Hessian determinants. `tails` is how many Gaussian tails the proof
    adds up: 1 for a slope of one sign, else 2, or 4 when a row is replaced (docs/guarantees/objective-perturbation.md).
    """
    shift, multiplier = at_least_zero("shift", shift), at_least_zero("multiplier", multiplier)
    return _repeat(ObjectiveDpEvent(shift, multiplier, whole("tails", tails, least=1)), count)


def poisson_event(rate: float, multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` noisy sums over Poisson samples; multiplier = std / C for rows clipped to C."""
    return _repeat(
        dp.PoissonSampledDpEvent(fraction("rate", rate), dp.GaussianDpEvent(at_least_zero("multiplier", multiplier))),
        count,
    )


def fixed_size_event(n: int, batch: int, multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` noisy sums over `batch` of n rows drawn without replacement; multiplier = std / (2 C).

    With batch = 1 this is one uniform index a step.
    """
    n, batch = whole("n", n, least=1), whole("batch", batch, least=1)
    if batch > n:
        raise ValueError(f"batch must be at most n, got batch={batch} and n={n}")
    return _repeat(
        dp.SampledWithoutReplacementDpEvent(n, batch, dp.GaussianDpEvent(at_least_zero("multiplier", multiplier))),
        count,
    )


def randomised_response_event(noise: float, buckets: int = 2, count: int = 1) -> DpEvent:
    """Return `count` randomised responses: with probability `noise` a uniform bucket, else the truth."""
    return _repeat(dp.RandomizedResponseDpEvent(fraction("noise", noise), whole("buckets", buckets, least=1)), count)


def mixture_event(
    multiplier: float, sensitivities: Sequence[float], probabilities: Sequence[float], count: int = 1
) -> DpEvent:
    """Return `count` releases with Gaussian noise of std `multiplier` on a sum that moves by a random amount.

    A record moves the sum by sensitivities[i] with probability probabilities[i], independently of the data.
    """
    if len(sensitivities) != len(probabilities) or not len(sensitivities):
        raise ValueError("sensitivities and probabilities must have the same length, at least 1")
    moves = [at_least_zero("sensitivities", s) for s in sensitivities]
    weights = [fraction("probabilities", p) for p in probabilities]
    if abs(math.fsum(weights) - 1.0) > 1e-9:
        raise ValueError(f"probabilities must sum to 1, got {math.fsum(weights)!r}")
    return _repeat(dp.MixtureOfGaussiansDpEvent(at_least_zero("multiplier", multiplier), moves, weights), count)


def best_of_trials_event(events: Sequence[DpEvent], eta: float, gamma: float) -> DpEvent:
    """Return the best of a random number of trials, each of which costs one of `events`, it is not said which.

    The number of trials is a truncated negative binomial with parameters eta and gamma: `TrialsLaw`.
    """
    law = TrialsLaw(eta, gamma)
    different = [event for i, event in enumerate(events) if event not in events[:i]]
    if not different:
        raise ValueError("a trial must cost something; pass at least one event")
    return BestOfTrialsDpEvent(different, law.eta, law.gamma)


def no_event() -> DpEvent:
    """Return the event of releasing nothing."""
    return dp.NoOpDpEvent()


def non_private_event() -> DpEvent:
    """Return the event of a release without noise, which no finite budget covers."""
    return dp.NonPrivateDpEvent()


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """Return the events one after the other, each of which may depend on the results before it."""
    kept = [event for event in events if not isinstance(event, dp.NoOpDpEvent)]
    if not kept:
        return dp.NoOpDpEvent()
    return kept[0] if len(kept) == 1 else dp.ComposedDpEvent(kept)


def _repeat(event: DpEvent, count: int) -> DpEvent:
    count = whole("count", count, least=0)
    if count == 0:
        return no_event()
    return event if count == 1 else dp.SelfComposedDpEvent(event, count)


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return an event as a dictionary that JSON can hold; floats keep every digit, infinity becomes "inf"."""
    name = type(event).__name__
    if TYPES.get(name) is not type(event):
        raise ValueError(f"cannot write the event {event!r}; only the events that discreet accounts for are known")
    content: dict[str, Any] = {"type": name}
    for field in _fields_of(name):
        value = getattr(event, field)
        if field == "events":
            content[field] = list(map(event_to_dict, value))
        else:
            content[field] = event_to_dict(value) if field == "event" else plain(value)
    return content


def event_from_dict(fields: dict[str, Any]) -> DpEvent:
    """Return the event that `event_to_dict` wrote; refuse unknown types, wrong fields and too many parts."""
    waiting: list[Any] = [fields]
    for _ in range(_LARGEST_EVENT):
        if not waiting:
            return _read_event(fields, 0)
        if isinstance(part := waiting.pop(), dict):
            inner = part.get("events")
            waiting += [part["event"]] if "event" in part else inner if isinstance(inner, list) else []
    raise ValueError(f"an event may have at most {_LARGEST_EVENT:,} parts")


def _fields_of(name: str) -> list[str]:
    return [field.name for field in attr.fields(TYPES[name])]


def _read_event(content: Any, depth: int) -> DpEvent:
    if not isinstance(content, dict) or depth > _DEEPEST:
        raise ValueError(f"an event must be a dictionary, nested at most {_DEEPEST} deep, got {type(content).__name__}")
    name = content.get("type")
    if not isinstance(name, str) or name not in TYPES:
        raise ValueError(f"unknown event type {name!r}; known are {', '.join(sorted(TYPES))}")
    hints = {field: _FIELDS.get(field, Unbounded) for field in _fields_of(name)}
    found = checked(hints, tuple(hints), {key: value for key, value in content.items() if key != "type"}, f"a {name}")
    if "event" in found:
        found["event"] = _read_event(found["event"], depth + 1)
    if "events" in found:
        found["events"] = [_read_event(part, depth + 1) for part in found["events"]]
    return TYPES[name](**found)


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
    reader = READERS.get(type(event))
    if reader is None:
        raise ValueError(f"cannot account for the event {event!r}; write it with the constructors of discreet")
    release: Release | None = reader(event)
    return release


def _walk(event: DpEvent) -> list[tuple[DpEvent, int]]:
    if type(event) is dp.NoOpDpEvent:
        return []
    if type(event) is dp.ComposedDpEvent:
        return [run for part in event.events for run in _walk(part)]
    if type(event) is dp.SelfComposedDpEvent:
        inside, count = _walk(event.event), whole("count", event.count, least=0)
        return [(inside[0][0], inside[0][1] * count)] if len(inside) == 1 and count else inside * count
    read_release(event)
    return [(event, 1)]


def _counted(event: DpEvent) -> dict[Release, int]:
    """How often each release of a tree happens, those that are found first coming first."""
    totals: dict[Release, int] = {}
    waiting = [(event, 1)]
    while waiting:
        part, times = waiting.pop()
        if type(part) is dp.ComposedDpEvent:
            waiting += [(inside, times) for inside in reversed(part.events)]
        elif type(part) is dp.SelfComposedDpEvent:
            waiting.append((part.event, times * whole("count", part.count, least=0)))
        elif times > _MOST_RELEASES:
            raise ValueError(f"the event repeats a release more than {_MOST_RELEASES:g} times")
        elif (release := read_release(part)) is not None and times:
            totals[release] = totals.get(release, 0) + times
    return totals


def _noisy(kind: Any, multiplier: Any, *before: float) -> Release | None:
    number = at_least_zero("noise multiplier", multiplier)
    if number < _LEAST_NOISE:
        return releases.NonPrivate()
    release: Release = kind(*before, number)
    return None if number == math.inf else release


def _known_by_epsilon(kind: Any, epsilon: Any) -> Release | None:
    number = at_least_zero("epsilon", epsilon)
    if number > _LARGEST_EPSILON:
        return releases.NonPrivate()
    return kind(number) if number else None


def _read_objective(event: Any) -> Release | None:
    shift, multiplier = at_least_zero("shift", event.shift), at_least_zero("noise multiplier", event.noise_multiplier)
    tails = whole("tails", event.tails, least=1)
    if multiplier == math.inf:  # the determinants remain, however much noise there is
        return _known_by_epsilon(releases.PureNoise, shift)
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
    if type(event.event) is not dp.GaussianDpEvent:
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


# The known elementary events; a subclass is not its parent, so it is unknown.
READERS: dict[Any, Callable[[Any], Release | None]] = {
    dp.NoOpDpEvent: lambda event: None,
    dp.NonPrivateDpEvent: lambda event: releases.NonPrivate(),
    dp.GaussianDpEvent: lambda event: _noisy(GaussianNoise, event.noise_multiplier),
    dp.LaplaceDpEvent: lambda event: _noisy(releases.LaplaceNoise, event.noise_multiplier),
    BoundedRangeDpEvent: lambda event: _known_by_epsilon(Selection, event.epsilon),
    PureDpEvent: lambda event: _known_by_epsilon(releases.PureNoise, event.epsilon),
    ObjectiveDpEvent: _read_objective,
    BestOfTrialsDpEvent: _read_best,
    dp.PoissonSampledDpEvent: _read_poisson,
    dp.SampledWithoutReplacementDpEvent: _read_fixed_size,
    dp.RandomizedResponseDpEvent: _read_response,
    dp.MixtureOfGaussiansDpEvent: _read_mixture,
}
# All events that the accounting knows, by name.
TYPES: dict[str, Any] = {kind.__name__: kind for kind in (*READERS, dp.SelfComposedDpEvent, dp.ComposedDpEvent)}

# Above this many changes between selections and Gaussians their order is not kept.
LONGEST_ORDER = 20_000


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
