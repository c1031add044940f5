"""What a plan will release, and how noisily: read from the same events that are priced, so that the two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from discreet.privacy import accounting
from discreet.privacy.mechanisms.sensitivity import clipped_sum
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Sensitivity

Kind = Literal["Gaussian", "Laplace", "sampled Gaussian", "selection", "pure", "objective"]


@dataclass(frozen=True)
class PlannedRelease:
    """One kind of release: what is told about the rows, how often, and with how much noise.

    Attributes
    ----------
    what : str
        What is released, in plain words.
    kind : str
        The noise: "Gaussian", "Laplace", "sampled Gaussian" (of a random part of the rows), "selection" (exponential
        mechanism), "pure" (known by its epsilon alone) or "objective" (a random linear term in the objective).
    times : int
        How often it is released.
    noise_over_sensitivity : float
        The noise of one release over how far one row can move it: standard deviations for Gaussian noise, scales for
        Laplace noise and for selections.
    epsilon : float, optional
        What one release costs in pure epsilon-DP; None for Gaussian noise, which has no such cost.
    sample_rate : float, optional
        The part of the rows that takes part, where they are sampled.
    deviation : float, optional
        Standard deviation of the noise on one released number, in the `unit`.
    unit : str
        What the deviation is measured in.
    share : float
        Share of the budget, in all.
    event : object
        One of the releases, as the accountant reads it.
    """

    what: str
    kind: Kind
    times: int
    noise_over_sensitivity: float
    epsilon: float | None = None
    sample_rate: float | None = None
    deviation: float | None = None
    unit: str = ""
    share: float = 0.0
    event: Any = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what is shown, as JSON values; what does not apply is left out."""
        names = ("what", "kind", "times", "share", "noise_over_sensitivity", "epsilon", "sample_rate", "deviation")
        facts = {name: getattr(self, name) for name in names} | {"unit": self.unit or None}
        return {name: value for name, value in facts.items() if value is not None}


def planned_releases(
    what: str | Mapping[Kind, str],
    event: Any,
    relation: Relation,
    sensitivity: Sensitivity | None = None,
    unit: str = "",
    dimension: int | None = None,
) -> list[PlannedRelease]:
    """List the releases of an event in order, equal ones together.

    Parameters
    ----------
    what : str or mapping
        What is released, in plain words; for events of several kinds, by kind.
    event : event
        What a mechanism says that its releases cost.
    relation : Relation
        Which tables are neighbours.
    sensitivity : Sensitivity, optional
        How far one row can move what is released, in the unit; without it the noise is not told in a unit.
    unit : str
        What the sensitivity is measured in.
    dimension : int, optional
        Length of a vector that is released with spherical Laplace noise, which grows with it.
    """
    totals: dict[str, tuple[Any, int]] = {}
    for leaf, count in accounting.flatten(event):
        known, before = totals.get(repr(leaf), (leaf, 0))
        totals[repr(leaf)] = (known, before + count)
    return [_planned(what, leaf, times, relation, sensitivity, unit, dimension) for leaf, times in totals.values()]


def _planned(
    what: str | Mapping[Kind, str],
    leaf: Any,
    times: int,
    relation: Relation,
    sensitivity: Sensitivity | None,
    unit: str,
    dimension: int | None,
) -> PlannedRelease:
    facts = _facts(leaf, relation)
    told = what if isinstance(what, str) else what[facts.kind]
    deviation = None if sensitivity is None else _deviation(facts, sensitivity, dimension)
    unit = unit if deviation is not None else ""
    return replace(facts, what=told, times=times, deviation=deviation, unit=unit, event=leaf)


def _facts(leaf: Any, relation: Relation) -> PlannedRelease:
    """Kind and noise of an elementary event."""
    reader = _READERS.get(type(leaf).__name__)
    if reader is None:
        raise ValueError(f"a plan cannot tell the noise of the event {leaf!r} in words.")
    return reader(leaf, relation)


def _poisson(leaf: Any, relation: Relation) -> PlannedRelease:
    """The accountant's multiplier is over the clipping norm, not over how far the sum can move."""
    noise = leaf.event.noise_multiplier / clipped_sum(relation).l2
    return PlannedRelease("", "sampled Gaussian", 1, noise, sample_rate=leaf.sampling_probability)


def _fixed_size(leaf: Any, _: Relation) -> PlannedRelease:
    rate = leaf.sample_size / leaf.source_dataset_size
    return PlannedRelease("", "sampled Gaussian", 1, leaf.event.noise_multiplier, sample_rate=rate)


_READERS: dict[str, Callable[[Any, Relation], PlannedRelease]] = {
    "GaussianDpEvent": lambda leaf, _: PlannedRelease("", "Gaussian", 1, leaf.noise_multiplier),
    "LaplaceDpEvent": lambda leaf, _: PlannedRelease(
        "", "Laplace", 1, leaf.noise_multiplier, 1.0 / leaf.noise_multiplier
    ),
    "PoissonSampledDpEvent": _poisson,
    "SampledWithoutReplacementDpEvent": _fixed_size,
    "BoundedRangeDpEvent": lambda leaf, _: PlannedRelease("", "selection", 1, 2.0 / leaf.epsilon, leaf.epsilon),
    "PureDpEvent": lambda leaf, _: PlannedRelease("", "pure", 1, 1.0 / leaf.epsilon, leaf.epsilon),
    "ObjectiveDpEvent": lambda leaf, _: PlannedRelease("", "objective", 1, leaf.noise_multiplier),
}


def _deviation(facts: PlannedRelease, sensitivity: Sensitivity, dimension: int | None) -> float | None:
    """Standard deviation of one released number, in the unit of the sensitivity."""
    noise = facts.noise_over_sensitivity
    if facts.kind == "Laplace":
        return math.sqrt(2.0) * noise * sensitivity.l1
    if facts.kind == "pure" and dimension is not None:  # a uniform direction, times a radius of law Gamma(dimension)
        return math.sqrt(dimension + 1.0) * noise * sensitivity.l2
    return None if facts.kind in ("selection", "pure") else noise * sensitivity.l2


def with_shares(releases: list[PlannedRelease], budget: Budget) -> list[PlannedRelease]:
    """Say which share of the budget each takes.

    Shares are of epsilon for a pure budget. For the others they are of mu^2, the square of the Gaussian-DP parameter
    that the budget allows: exact for Gaussian noise; what is left goes to the releases of other kinds.
    """
    if budget.kind == "pure":
        return [replace(r, share=r.times * (r.epsilon or 0.0) / budget.amount) for r in releases]
    mu = budget.gaussian_mu()
    exact = [r.times / (r.noise_over_sensitivity * mu) ** 2 if r.kind == "Gaussian" else None for r in releases]
    left = max(0.0, 1.0 - math.fsum(share for share in exact if share is not None))
    weight = [0.0 if r.kind == "Gaussian" else r.times * (r.epsilon or 1.0) ** 2 for r in releases]
    whole = math.fsum(weight) or 1.0
    return [
        replace(r, share=left * w / whole if share is None else share)
        for r, share, w in zip(releases, exact, weight, strict=True)
    ]
