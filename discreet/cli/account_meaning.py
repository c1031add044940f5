"""What a mechanism or a promise means for one person, as `discreet account --meaning` and `--plot` tell it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._common.text import paragraph

if TYPE_CHECKING:
    from discreet.privacy.conversions import Promise
    from discreet.privacy.relation import Relation
    from discreet.privacy.tradeoffs import TradeOff

FALSE_ALARMS = (0.01, 0.05)  # shares of outsiders called members, of which the output tells how many members are found


def promise_of(epsilon: float | None, rho: float | None, mu: float | None, delta: float) -> Promise | None:
    """The promise that was given instead of a mechanism; None if none was."""
    from discreet.privacy.budget import Budget

    given = [
        name for name, value in (("--promise-epsilon", epsilon), ("--rho", rho), ("--mu", mu)) if value is not None
    ]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are different promises; give one of them.")
    if epsilon is not None:
        return Budget(epsilon, delta)
    if rho is not None:
        return Budget.zcdp(rho)
    return None if mu is None else Budget.gdp(mu)


def promise_cost(promise: Promise, delta: float, epsilon: float | None) -> dict[str, Any]:
    """Epsilon at delta, or delta at epsilon, and the promises in other definitions that follow."""
    from discreet.privacy import trade_off

    curve = trade_off(promise)
    if epsilon is not None:
        found = {"epsilon": epsilon, "delta": curve.delta(epsilon)}
    else:
        found = {"epsilon": curve.epsilon(delta), "delta": delta}
    return {**found, "promise": str(promise), "implies": [str(other) for other in _implied(promise)]}


def _implied(promise: Promise) -> list[Promise]:
    from discreet.privacy.conversions import convert, kind_of

    found = []
    for to in ("zcdp", "gdp"):
        try:
            found += [convert(promise, to)] if kind_of(promise) != to else []
        except ValueError:
            continue  # nothing follows in that definition
    return found


def curve_of(described: Any, found: dict[str, Any], relation: Relation | None) -> TradeOff:
    """The trade-off curve of a mechanism under a relation, with the epsilon and delta found, or of a promise."""
    from discreet.privacy import trade_off
    from discreet.privacy.budget import Budget
    from discreet.privacy.tradeoffs import EventTradeOff

    epsilon, delta = float(found["epsilon"]), float(found["delta"])
    stated = Budget(epsilon, delta) if 0.0 < epsilon < math.inf and delta < 1.0 else None
    curve = trade_off(described) if relation is None else EventTradeOff(described, relation, stated)
    if stated is not None or epsilon == 0.0:
        return curve
    if curve.advantage < 1.0:
        raise ValueError(f"no epsilon holds with delta = {delta:g}; give another --delta to see what it means.")
    return trade_off(math.inf)


def told(curve: TradeOff, found: dict[str, Any], relation: Relation | None) -> tuple[dict[str, Any], list[str]]:
    """The meaning as JSON values and as sentences."""
    from discreet.privacy.statement import NO_PRIVACY, Meaning, in_words, percent_at_most

    meaning = Meaning.of_curve(curve, _failure(curve, found))
    rates = [1.0 - float(missed) for missed in curve.false_negative(FALSE_ALARMS)]
    attacks = " ".join(
        f"An attack that takes {100 * alarm:g} % of the people outside the table for members finds at most "
        f"{percent_at_most(rate)} of those in it."
        for alarm, rate in zip(FALSE_ALARMS, rates, strict=True)
    )
    values = meaning.to_dict() | {
        "advantage_at_most": curve.advantage,
        "area_at_most": curve.area,
        "found_at_most": [{"false_alarms": a, "found": r} for a, r in zip(FALSE_ALARMS, rates, strict=True)],
    }
    if curve.odds_growth(_failure(curve, found)) == math.inf:
        return values, list(map(paragraph, NO_PRIVACY))
    return values, list(map(paragraph, [*in_words(meaning, relation), attacks]))


def draw(curve: TradeOff, found: dict[str, Any], path: Path) -> None:
    """The picture of the same facts."""
    from discreet.privacy import plot_meaning
    from discreet.privacy.statement import rounded_up

    epsilon, delta = (rounded_up(found[name], 4) if found[name] < math.inf else "inf" for name in ("epsilon", "delta"))
    name = found.get("promise") or f"epsilon {epsilon}, delta {delta}"
    plot_meaning(curve, path, failure=_failure(curve, found), title=f"What this means for one person: {name}")


def _failure(curve: TradeOff, found: dict[str, Any]) -> float | None:
    """How often a belief may pass its bound; `usual_failure` of the delta asked for, where the promise has no delta."""
    from discreet.privacy.tradeoffs import usual_failure

    return None if curve.usual_growth() is not None else usual_failure(float(found["delta"]))
