"""Replay a run on a neighbouring table: the strongest audit, since it compares what proofs speak of, not outcomes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.audit.neighbours import removed_row
from discreet.audit.replays.laws import SampledGaussianLaw
from discreet.audit.replays.tape import ROUNDING, DivergedError, Release, Tape, UnseenReleaseError
from discreet.audit.targets import Outputs, as_data, target_of
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator, secure_generator
from discreet.privacy.relation import Relation

LEVEL = 1e-6  # at which the law of the noise is tested


@dataclass(frozen=True, eq=False)
class Replay:
    """What a run told on one table, and what became of it on a neighbouring one.

    Attributes
    ----------
    releases : list of Release
        Everything that was told, in order, with the claimed and the measured distance of its statistic.
    problems : list of str
        What contradicts the promise, in words; empty if nothing does.
    loss : float or None
        The exact privacy loss of this run, the sum over all releases of log P[told | table] - log P[told | neighbour];
        None if the law of a release has no closed form or depends on a secret sample.
    residuals : ndarray
        The noise of all releases in units of its scale, as normal numbers.
    attained : float or None
        The epsilon, at the promised delta, of releases that move as far as these statistics did: at most the promised
        one, and equal to it on the worst tables. None where the law of a release has no event of its own.
    promised : float or None
    """

    releases: list[Release]
    problems: list[str]
    loss: float | None
    residuals: FloatArray
    attained: float | None
    promised: float | None

    @property
    def passed(self) -> bool:
        """Whether nothing contradicts the promise; a replay that leaves a release out has raised an error."""
        return not self.problems

    @property
    def largest_ratio(self) -> float:
        """The largest distance of a statistic, in units of what was claimed."""
        ratios = [entry.distance / entry.claimed for entry in self.releases if entry.claimed > 0.0]
        return max(ratios, default=0.0)

    def __str__(self) -> str:
        lines = [f"{len(self.releases)} releases; largest distance {self.largest_ratio:.6f} of what was claimed"]
        if self.attained is not None:
            lines.append(f"these distances attain epsilon {self.attained:.6f}; {self.promised:.6g} is promised")
        if self.loss is not None:
            lines.append(f"exact privacy loss of this run: {self.loss:.6f}")
        lines += [f"PROBLEM: {text}" for text in self.problems]
        return "\n".join([*lines, "passed" if self.passed else "not passed"])


def replay(audited: Any, table: Any, neighbour: Any, rng: RandomGenerator | None = None) -> Replay:
    """Run on a table, then on its neighbour with every release forced to what was told before, and compare.

    On the neighbour every statistic must lie within its claimed sensitivity of what it was, the same releases must be
    made in the same order with the same noise, and everything that leaves the run must be the same bit for bit, since
    it may depend on the rows through the releases alone. The noise itself is compared with its claimed law.

    Not private: the result shows statistics of both tables. It replaces methods of the library while it runs, so
    nothing else may run at the same time.

    Parameters
    ----------
    audited : estimator, transformer, Plan, AuditCase or Target
        What to audit.
    table, neighbour : Data, (X, y) or (X, y, sample_weight)
        Two tables that are neighbours under the relation of what is audited: one row replaced, of weight 0, or missing.
    rng : RandomGenerator, optional
        Draws the noise; by default one of the operating system.

    Returns
    -------
    Replay

    Raises
    ------
    UnseenReleaseError
        Noise was drawn, and the replay did not see for which statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.audit import replay
    >>> X, y = np.ones((50, 2)), np.arange(50) % 2
    >>> other = X.copy()
    >>> other[7] = 1e308
    >>> replay(LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1]), (X, y), (other, y)).passed
    True
    """
    target, (first, second) = target_of(audited), _alike(as_data(table), as_data(neighbour))
    generator = rng or secure_generator()
    tape = Tape(target.relation)
    with _recording(tape):
        told = target.run(first, generator)
    _all_seen(tape)
    # Of persons nothing is sampled before one row of each is drawn, and who draws it sees who is missing.
    loses_row = target.relation is Relation.ADD_REMOVE and first.persons is None
    forced = Tape(target.relation, tape, removed_row(first, second) if loses_row else None)
    problems = []
    try:
        with _recording(forced):
            told_again = target.run(second, generator)
    except DivergedError as error:
        problems.append(str(error))
    else:
        _all_seen(forced)
        problems += _left_over(tape, forced) + _differences(told, told_again)
    problems += _too_far(forced.releases) + _wrong_noise(tape, residuals := residuals_of(tape))
    if forced.largest_difference > ROUNDING:
        problems.append(f"weights after a forced step differ by {forced.largest_difference:.3g}, relative")
    guarantee = target.guarantee_for(first)
    attained = attained_epsilon(forced.releases, guarantee) if guarantee is not None else None
    if guarantee is not None and attained is not None and attained > guarantee.epsilon * (1.0 + 1e-6):
        problems.append(f"the releases attain epsilon {attained:.6g}, but {guarantee.epsilon:.6g} is promised")
    losses = [entry.loss for entry in tape.releases if entry.loss is not None]
    known = not problems and len(losses) == len(tape.releases)
    total = math.fsum(losses) if known else None
    promised = None if guarantee is None else guarantee.epsilon
    return Replay(tape.releases, problems, total, residuals, attained, promised)


def _all_seen(tape: Tape) -> None:
    """Refuse a replay that would be silent about some of the releases."""
    if unseen := tape.unseen:
        raise UnseenReleaseError(
            f"the replay does not see what this noise was added to: {'; '.join(unseen)}. Add it to the statistic as an "
            "array, or intercept the place where both meet, in discreet/audit/replays."
        )


def attained_epsilon(releases: list[Release], guarantee: Guarantee) -> float | None:
    """The epsilon at the promised delta of releases that move as far as these did; None if one has no event."""
    sampled = Counter(entry.law for entry in releases if isinstance(entry.law, SampledGaussianLaw))
    events = [replace(law.mechanism, count=count).event for law, count in sampled.items()]
    others = [entry for entry in releases if not isinstance(entry.law, SampledGaussianLaw)]
    events += [entry.law.event(entry.distance) for entry in others]
    if not guarantee.is_private or any(event is None for event in events):
        return None
    event = accounting.compose(events)
    if guarantee.delta == 0.0:
        return float(accounting.pure_epsilon_of(event, guarantee.relation))
    return float(accounting.epsilon_of(event, guarantee.delta, guarantee.relation))


def record(audited: Any, table: Any, rng: RandomGenerator | None = None) -> Tape:
    """Run once and write down everything that was told; `rng=None` leaves the noise to what is audited.

    Not private: the tape holds exact statistics of the table.
    """
    target = target_of(audited)
    tape = Tape(target.relation)
    with _recording(tape):
        target.run(as_data(table), rng)
    _all_seen(tape)
    return tape


def residuals_of(tape: Tape) -> FloatArray:
    """The noise of all releases of a run in units of its scale, as normal numbers."""
    parts = [entry.law.residual(entry.statistic, entry.output) for entry in tape.releases]
    return np.concatenate([np.zeros(0), *(part for part in parts if part is not None)])


def repeats_noise(first: FloatArray, second: FloatArray) -> bool:
    """Whether three consecutive numbers of one sequence of residuals occur in the other.

    The chance for independent noise is below 1e-12 for sequences of a million numbers.
    """
    return bool(set(_triples(first)) & set(_triples(second)))


def _triples(residuals: FloatArray, digits: int = 7) -> list[tuple[float, ...]]:
    rounded = np.round(residuals, digits)
    return list(zip(rounded, rounded[1:], rounded[2:], strict=False))


def _recording(tape: Tape) -> Any:
    from discreet.audit.replays.brackets import bracket_patches
    from discreet.audit.replays.doors import door_patches, intercepted
    from discreet.audit.replays.loops import loop_patches

    return intercepted(tape, [*door_patches(), *loop_patches(), *bracket_patches()])


def _alike(first: Data, second: Data) -> tuple[Data, Data]:
    """Both tables with weights or both without: whether there are any is public."""
    if (first.weight is None) == (second.weight is None):
        return first, second
    weights = [np.ones(data.rows) if data.weight is None else data.weight for data in (first, second)]
    return replace(first, weight=weights[0]), replace(second, weight=weights[1])


def _left_over(first: Tape, second: Tape) -> list[str]:
    missing = len(first.releases) - len(second.releases)
    if missing:
        return [f"{missing} releases were not made on the second table: how much is released depends on the rows"]
    return []


def _differences(first: Outputs, second: Outputs) -> list[str]:
    """What was told besides the releases must be the same bit for bit."""
    return [
        f"{name} differs although every release was the same: it depends on the rows in another way"
        for name in first
        if np.asarray(first[name]).tobytes() != np.asarray(second.get(name)).tobytes()
    ]


def _too_far(releases: list[Release]) -> list[str]:
    return [
        f"{entry.what} ({position}) moved by {entry.distance:.6g}, but {entry.claimed:.6g} is claimed"
        for position, entry in enumerate(releases, start=1)
        if not entry.distance
        <= entry.claimed * (1.0 + ROUNDING) + 1e-12 * float(np.abs(entry.statistic).max(initial=0.0))
    ]


def _wrong_noise(tape: Tape, residuals: FloatArray) -> list[str]:
    """Whether the noise has the claimed size, and whether some of it was used twice."""
    from scipy.stats import chi2

    found = [f"{what} was added to more than one statistic" for what in tape.used_again]
    if residuals.size:
        square, half = float(residuals @ residuals), 0.5 * LEVEL
        if not chi2.ppf(half, residuals.size) <= square <= chi2.isf(half, residuals.size):
            size = math.sqrt(square / residuals.size)
            found.append(f"the noise is {size:.3f} times as large as claimed, over {residuals.size} numbers")
        triples = _triples(residuals)
        if len(set(triples)) < len(triples):
            found.append("the same noise was used twice: differences of releases are free of it")
    return found
