"""Statements around one reference model on one table: the tightest bounds, and the other forms beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._common.types import BoolArray, FloatArray
from discreet.fairness.cells import RowCells
from discreet.fairness.certificates import change
from discreet.fairness.certificates.change import Reach
from discreet.fairness.certificates.margins import Margins
from discreet.fairness.certificates.record import AggregateStatement, FairnessCertificate, FairnessStatement
from discreet.fairness.quantities import Quantity
from discreet.theory.distance import DistanceLaw, GaussianDistance


@dataclass(frozen=True, eq=False)
class AroundReference:
    """One reference model on one set of rows, with what is known of the distance to the other model.

    Attributes
    ----------
    law, failure, reference, simultaneous
        As in `certificate`.
    rows, margins : RowCells, Margins
        The cells of the rows, and their margins for the reference model.
    other : tuple of two arrays, or None
        Gaps of the other model's scores and which of its predictions are correct, where it is known.
    """

    law: DistanceLaw
    failure: float
    reference: str
    simultaneous: bool
    rows: RowCells
    margins: Margins
    other: tuple[FloatArray, BoolArray] | None

    def certificate(self, asked: list[Quantity], clean: bool) -> FairnessCertificate:
        made = [self.statement(quantity) for quantity in asked]
        aggregate = {
            notion: self.aggregate([q for q in asked if q.notion == notion], [s for s in made if s.notion == notion])
            for notion in dict.fromkeys(quantity.notion for quantity in asked)
        }
        plain = bool((self.law.weights == self.law.weights[0]).all())
        scale = f" times {math.sqrt(self.law.weights[0]):.4g}" if plain and self.law.weights[0] != 1.0 else ""
        norm = f"Euclidean norm{scale}" if plain else "Euclidean norm with a weight for each column"
        messages = tuple(f"No rows: {s.notion}, {s.who}; left out of the mean." for s in made if math.isnan(s.value))
        about = (self.failure, self.simultaneous, self.reference, self.law.reference, self.law.radius(self.failure))
        return FairnessCertificate(tuple(made), aggregate, *about, norm, self.rows.label.size, clean, messages)

    def statement(self, quantity: Quantity) -> FairnessStatement:
        value = quantity.value(self.rows.table(self.margins.correct))
        about = (quantity.notion, quantity.label, quantity.group, quantity.rows)
        if not quantity.defined:
            return FairnessStatement(*about, math.nan, math.nan, math.nan)
        low, high = self._change(quantity)
        bounds = {form: quantity.absolute_change(cells) for form, cells in self._forms.items()}
        ball = Reach(self.law.radius(self.failure))
        bounds["signed"] = _largest(change.interval(quantity, self.rows, self.margins, ball))
        if self._noise is not None:
            bounds["noise"] = _largest(self._noise_change(quantity))
        printed = None if self._printed is None else quantity.absolute_change(self._printed)
        return FairnessStatement(*about, value, low, high, bounds, printed, *self._known(quantity, value))

    def _change(self, quantity: Quantity) -> tuple[float, float]:
        """The tightest interval that holds for this quantity with probability 1 - failure."""
        found = [change.interval(quantity, self.rows, self.margins, reach) for reach in self._reaches]
        best = max(low for low, _ in found), min(high for _, high in found)
        if self._noise is None:
            return best
        # Each end is a quantile of a change around a fixed model: the choice between the two intervals reads no noise.
        return min(best, self._noise_change(quantity), key=lambda ends: ends[1] - ends[0])

    def _noise_change(self, quantity: Quantity) -> tuple[float, float]:
        assert self._noise is not None
        noise = change.noise_interval(quantity, self.rows, self.margins.correct, self._noise, self.failure)
        half = Reach(change.all_rows_reach(self.law, 0.5 * self.failure, self.rows.label.size, self.margins.rivals))
        ball = change.interval(quantity, self.rows, self.margins, half)
        return max(noise[0], ball[0]), min(noise[1], ball[1])

    def aggregate(self, asked: list[Quantity], made: list[FairnessStatement]) -> AggregateStatement:
        kept = [(quantity, found) for quantity, found in zip(asked, made, strict=True) if quantity.defined]
        if not kept:
            return AggregateStatement(made[0].notion, 0, math.nan, math.nan)
        value = float(np.mean([abs(found.value) for _, found in kept]))
        candidates = [
            float(np.mean([_largest(change.interval(q, self.rows, self.margins, reach)) for q, _ in kept]))
            for reach in self._reaches
        ]
        if self._noise is not None:
            weights = np.mean([np.abs(change.row_weights(quantity, self.rows)) for quantity, _ in kept], axis=0)
            candidates.append(change.noise_side(weights, self._noise, self.failure))
        refined = exact = None
        if self.other is not None:
            refined = float(np.mean([found.refined for _, found in kept]))
            exact = float(np.mean([abs(found.value + found.exact) for _, found in kept])) - value  # type: ignore[operator]
        bound = kept[0][1].bound if len(kept) == 1 else min(candidates)
        printed = None if self._printed is None else float(np.mean([found.printed for _, found in kept]))
        return AggregateStatement(made[0].notion, len(kept), value, bound, printed, refined, exact)

    def _known(self, quantity: Quantity, value: float) -> tuple[float | None, float | None]:
        """The refined bound and the exact change, if both models are known."""
        if self.other is None:
            return None, None
        gaps, correct = self.other
        moved = np.abs(gaps - self.margins.gaps).max(axis=1)
        near = np.abs(self.margins.margin) <= moved * (1.0 + 1e-9)
        right = self.margins.correct
        loss, gain = self.rows.means(near & right), self.rows.means(near & ~right)
        return _largest(quantity.change_within(loss, gain)), quantity.value(self.rows.table(correct)) - value

    @cached_property
    def _reaches(self) -> list[Reach]:
        return change.reaches(self.law, self.failure, self.rows.label.size, self.margins.rivals, self.simultaneous)

    @cached_property
    def _noise(self) -> FloatArray | None:
        """The probability of each row's change, for a reference that does not depend on the noise."""
        if self.reference != "twin" or self.simultaneous or not isinstance(self.law, GaussianDistance):
            return None
        return self.margins.flip_probabilities(self.law.deviation, self.law.error)

    @cached_property
    def _forms(self) -> dict[str, FloatArray]:
        radius = self.law.radius(self.failure)
        return {name: form(self.rows, self.margins, radius) for name, form in change.FORMS.items()}

    @cached_property
    def _printed(self) -> FloatArray | None:
        """Chernoff's form with the printed distance and twice the norm of each row as Lipschitz constant."""
        if not isinstance(self.law, GaussianDistance):
            return None
        speed = 2.0 if self.margins.rivals == 1 else math.sqrt(2.0)
        slower = Margins(self.margins.gaps, self.margins.correct, speed * self.margins.lipschitz)
        return change.chernoff(
            self.rows, slower, change.printed_radius(self.law.deviation, self.law.size, self.failure)
        )


def _largest(ends: tuple[float, float]) -> float:
    return max(abs(ends[0]), abs(ends[1]))
