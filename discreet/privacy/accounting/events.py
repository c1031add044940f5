"""Build privacy events, the field's own vocabulary (dp_accounting), from numbers that are checked here.

Only this package and `discreet.privacy.mechanisms` deal with dp_accounting; it is imported on first use, because that
takes most of a second. Events become JSON-safe dictionaries and back; only known types are built, never one named by
the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from discreet._common.checks import at_least_zero, fraction, whole
from discreet._common.codec import Unbounded, checked, plain

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# What each field of an event holds; the events inside are read one by one.
_NUMBERS = (
    *("noise_multiplier", "epsilon", "noise_parameter", "sampling_probability", "standard_deviation"),
    *("shift", "eta", "gamma"),
)
_COUNTS = ("tails", "num_buckets", "count", "source_dataset_size", "sample_size")
_LISTS = ("sensitivities", "sampling_probs")
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(_NUMBERS, Unbounded),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(_LISTS, list[Unbounded]),
    "event": Any,
    "events": list[Any],
}
_DEEPEST = 50
_MOST_PARTS = 50_000  # of an event that is read, those inside others included


def gaussian_event(multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` releases with Gaussian noise of standard deviation multiplier * sensitivity."""
    from dp_accounting import GaussianDpEvent

    return _repeat(GaussianDpEvent(at_least_zero("multiplier", multiplier)), count)


def laplace_event(multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` releases with Laplace noise of scale multiplier * l1 sensitivity."""
    from dp_accounting import LaplaceDpEvent

    return _repeat(LaplaceDpEvent(at_least_zero("multiplier", multiplier)), count)


def selection_event(epsilon: float, count: int = 1) -> DpEvent:
    """Return `count` selections by the exponential mechanism, each of bounded range epsilon."""
    from discreet.privacy.accounting.custom_events import BoundedRangeDpEvent

    return _repeat(BoundedRangeDpEvent(at_least_zero("epsilon", epsilon)), count)


def pure_event(epsilon: float, count: int = 1) -> DpEvent:
    """Return `count` releases of which nothing is known but that each is epsilon-DP."""
    from discreet.privacy.accounting.custom_events import PureDpEvent

    return _repeat(PureDpEvent(at_least_zero("epsilon", epsilon)), count)


def objective_event(shift: float, multiplier: float, tails: int = 1, count: int = 1) -> DpEvent:
    """Return `count` minimisers of objectives with Gaussian noise of std multiplier * sensitivity on the gradient.

    `shift` bounds the log-ratio of the two Hessian determinants. `tails` is how many Gaussian tails the proof
    adds up: 1 for a slope of one sign, else 2, or 4 when a row is replaced (docs/guarantees/objective-perturbation.md).
    """
    from discreet.privacy.accounting.custom_events import ObjectiveDpEvent

    shift, multiplier = at_least_zero("shift", shift), at_least_zero("multiplier", multiplier)
    return _repeat(ObjectiveDpEvent(shift, multiplier, whole("tails", tails, least=1)), count)


def poisson_event(rate: float, multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` noisy sums over Poisson samples; multiplier = std / C for rows clipped to C."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

    return _repeat(
        PoissonSampledDpEvent(fraction("rate", rate), GaussianDpEvent(at_least_zero("multiplier", multiplier))),
        count,
    )


def fixed_size_event(n: int, batch: int, multiplier: float, count: int = 1) -> DpEvent:
    """Return `count` noisy sums over `batch` of n rows drawn without replacement; multiplier = std / (2 C).

    With batch = 1 this is one uniform index a step.
    """
    from dp_accounting import GaussianDpEvent, SampledWithoutReplacementDpEvent

    n, batch = whole("n", n, least=1), whole("batch", batch, least=1)
    if batch > n:
        raise ValueError(f"batch must be at most n, got batch={batch} and n={n}")
    return _repeat(
        SampledWithoutReplacementDpEvent(n, batch, GaussianDpEvent(at_least_zero("multiplier", multiplier))),
        count,
    )


def randomised_response_event(noise: float, buckets: int = 2, count: int = 1) -> DpEvent:
    """Return `count` randomised responses: with probability `noise` a uniform bucket, else the truth."""
    from dp_accounting import RandomizedResponseDpEvent

    return _repeat(RandomizedResponseDpEvent(fraction("noise", noise), whole("buckets", buckets, least=1)), count)


def mixture_event(
    multiplier: float, sensitivities: Sequence[float], probabilities: Sequence[float], count: int = 1
) -> DpEvent:
    """Return `count` releases with Gaussian noise of std `multiplier` on a sum that moves by a random amount.

    A record moves the sum by sensitivities[i] with probability probabilities[i], independently of the data.
    """
    from dp_accounting.dp_event import MixtureOfGaussiansDpEvent

    if len(sensitivities) != len(probabilities) or not len(sensitivities):
        raise ValueError("sensitivities and probabilities must have the same length, at least 1")
    moves = [at_least_zero("sensitivities", s) for s in sensitivities]
    weights = [fraction("probabilities", p) for p in probabilities]
    if abs(math.fsum(weights) - 1.0) > 1e-9:
        raise ValueError(f"probabilities must sum to 1, got {math.fsum(weights)!r}")
    return _repeat(MixtureOfGaussiansDpEvent(at_least_zero("multiplier", multiplier), moves, weights), count)


def best_of_trials_event(events: Sequence[DpEvent], eta: float, gamma: float) -> DpEvent:
    """Return the best of a random number of trials, each of which costs one of `events`, it is not said which.

    The number of trials is a truncated negative binomial with parameters eta and gamma: `TrialsLaw`.
    """
    from discreet.privacy.accounting.custom_events import BestOfTrialsDpEvent
    from discreet.privacy.accounting.trials_law import TrialsLaw

    law = TrialsLaw(eta, gamma)
    different = [event for i, event in enumerate(events) if event not in events[:i]]
    if not different:
        raise ValueError("a trial must cost something; pass at least one event")
    return BestOfTrialsDpEvent(different, law.eta, law.gamma)


def no_event() -> DpEvent:
    """Return the event of releasing nothing."""
    from dp_accounting import NoOpDpEvent

    return NoOpDpEvent()


def non_private_event() -> DpEvent:
    """Return the event of a release without noise, which no finite budget covers."""
    from dp_accounting import NonPrivateDpEvent

    return NonPrivateDpEvent()


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """Return the events one after the other, each of which may depend on the results before it."""
    from dp_accounting import ComposedDpEvent, NoOpDpEvent

    kept = [event for event in events if not isinstance(event, NoOpDpEvent)]
    if not kept:
        return NoOpDpEvent()
    return kept[0] if len(kept) == 1 else ComposedDpEvent(kept)


def _repeat(event: DpEvent, count: int) -> DpEvent:
    from dp_accounting import SelfComposedDpEvent

    count = whole("count", count, least=0)
    if count == 0:
        return no_event()
    return event if count == 1 else SelfComposedDpEvent(event, count)


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return an event as a dictionary that JSON can hold; floats keep every digit, infinity becomes "inf"."""
    name = type(event).__name__
    if _types().get(name) is not type(event):
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
    for _ in range(_MOST_PARTS):
        if not waiting:
            return _read_event(fields, 0)
        if isinstance(part := waiting.pop(), dict):
            inner = part.get("events")
            waiting += [part["event"]] if "event" in part else inner if isinstance(inner, list) else []
    raise ValueError(f"an event may have at most {_MOST_PARTS:,} parts")


@cache
def _types() -> dict[str, Any]:
    """All events that the accounting knows, by name."""
    from dp_accounting import ComposedDpEvent, SelfComposedDpEvent

    from discreet.privacy.accounting.composition import readers

    return {kind.__name__: kind for kind in (*readers(), SelfComposedDpEvent, ComposedDpEvent)}


def _fields_of(name: str) -> list[str]:
    import attr

    return [field.name for field in attr.fields(_types()[name])]


def _read_event(content: Any, depth: int) -> DpEvent:
    if not isinstance(content, dict) or depth > _DEEPEST:
        raise ValueError(f"an event must be a dictionary, nested at most {_DEEPEST} deep, got {type(content).__name__}")
    name = content.get("type")
    if not isinstance(name, str) or name not in _types():
        raise ValueError(f"unknown event type {name!r}; known are {', '.join(sorted(_types()))}")
    hints = {field: _FIELDS[field] for field in _fields_of(name)}
    found = checked(hints, tuple(hints), {key: value for key, value in content.items() if key != "type"}, f"a {name}")
    if "event" in found:
        found["event"] = _read_event(found["event"], depth + 1)
    if "events" in found:
        found["events"] = [_read_event(part, depth + 1) for part in found["events"]]
    return _types()[name](**found)
