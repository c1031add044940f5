"""`discreet account`: what a mechanism costs, certified, with Google's number beside it, or what a promise means."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from discreet._common.text import facts, paragraph
from discreet.cli import options
from discreet.cli.console import answer, check_plot, command
from discreet.privacy import accounting
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.privacy.conversions import Promise
    from discreet.privacy.relation import Relation
    from discreet.privacy.tradeoffs import TradeOff

FALSE_ALARMS = (0.01, 0.05)  # shares of outsiders called members, of which the output tells how many members are found


def promise_of(epsilon: float | None, rho: float | None, mu: float | None, delta: float) -> Promise | None:
    """The promise that was given instead of a mechanism; None if none was."""
    from discreet.privacy.budget import Budget

    promises = {"--promise-epsilon": epsilon, "--rho": rho, "--mu": mu}
    given = [name for name, value in promises.items() if value is not None]
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
    at = (curve.epsilon(delta), delta) if epsilon is None else (epsilon, curve.delta(epsilon))
    implied = [str(other) for other in _implied(promise)]
    return {"epsilon": at[0], "delta": at[1], "promise": str(promise), "implies": implied}


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


LARGEST_COMPARED = 50.0  # epsilon up to which Google is asked: its time and memory grow with epsilon


@command("discreet account --gaussian 5 --count 100 --delta 1e-6")
def account(
    gaussian: Annotated[
        float | None, Option(help="Gaussian noise: deviation over sensitivity (over the clip, if sampled).")
    ] = None,
    laplace: Annotated[float | None, Option(help="Laplace noise: scale over L1 sensitivity.")] = None,
    selection: Annotated[float | None, Option(help="A selection by the exponential mechanism: epsilon.")] = None,
    poisson_rate: Annotated[float | None, Option(help="Gaussian noise on a Poisson sample.")] = None,
    event: Annotated[
        Path | None, Option(help="A JSON file with an event, or a model file, instead of the above.")
    ] = None,
    promise_epsilon: Annotated[
        float | None, Option(help="A promise instead of a mechanism: this epsilon, with --delta.")
    ] = None,
    rho: Annotated[float | None, Option(help="A promise instead: rho of zero-concentrated DP.")] = None,
    mu: Annotated[float | None, Option(help="A promise instead: mu of Gaussian DP.")] = None,
    count: Annotated[int, Option(min=1, help="How often all of the above happens.")] = 1,
    delta: Annotated[float, Option(help="The delta at which epsilon is asked for.")] = 1e-6,
    epsilon: Annotated[float | None, Option(help="Ask for delta at this epsilon instead.")] = None,
    relation: options.RelationName = None,
    meaning: Annotated[bool, Option("--meaning", help="Say in plain words what it means for a person.")] = False,
    plot: options.Plot = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Certify the privacy cost of a mechanism, or convert a promise, and say what it means for one person.

    Google's accountant is asked too.
    """
    described: Any = promise_of(promise_epsilon, rho, mu, delta)
    check_plot(plot, force)
    if described is not None:
        if (event, gaussian, laplace, selection, poisson_rate, relation) != (None,) * 6 or count > 1:
            raise ValueError("a promise stands alone; leave out --event, --count, --relation and the noise.")
        found, under = promise_cost(described, delta, epsilon), None
    else:
        described, stored = _event_of(event, gaussian, laplace, selection, poisson_rate)
        inner, under = accounting.event_to_dict(described), relation or stored or Relation.REPLACE
        if count > 1:
            described = accounting.event_from_dict({"type": "SelfComposedDpEvent", "event": inner, "count": count})
        found = cost(described, delta, epsilon, under)
    sentences: list[str] = []
    if meaning or plot is not None:
        curve = curve_of(described, found, under)
        if meaning:
            found["meaning"], sentences = told(curve, found, under)
        if plot is not None:
            draw(curve, found, plot)
    values = {name: "inf" if value == math.inf else value for name, value in found.items()}
    first: list[str] = []
    if event is not None:
        from discreet.privacy.signatures import signature_line, signature_of, signature_values

        signed = signature_of(event)
        values, first = values | signature_values(signed), [f"{signature_line(signed)}\n"]
    answer(json, values, lambda: "\n".join([*first, _as_text(found), *(f"\n{sentence}" for sentence in sentences)]))


def _as_text(found: dict[str, Any]) -> str:
    lines = [(name, f"{found[name]:.6g}") for name in ("epsilon", "delta")]
    if "promise" in found:
        lines += [("promise", found["promise"]), *(("implies", other) for other in found["implies"])]
    else:
        google = found["google_epsilon"]
        told = "no answer for this" if google is None else f"epsilon {google:.6g} at this delta"
        lines += [("relation", found["relation"]), ("route", found["route"]), ("Google", told)]
    return facts(lines, label=10)


def cost(event: Any, delta: float, epsilon: float | None, relation: Relation) -> dict[str, Any]:
    """Certified epsilon at delta (or delta at epsilon), its route, and Google's epsilon at the same delta."""
    if epsilon is not None:
        delta = accounting.delta_of(event, epsilon, relation)
    found: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": str(relation)}
    if epsilon is not None and delta >= 1.0:
        return found | {"route": "no guarantee", "google_epsilon": None}
    certificate = accounting.certify(event, delta, relation)
    google = _google(event, delta, relation) if certificate.epsilon < LARGEST_COMPARED else None
    found["epsilon"] = certificate.epsilon if epsilon is None else epsilon
    return found | {"route": certificate.route, "google_epsilon": google}


def _google(event: Any, delta: float, relation: Relation) -> float | None:
    """Google's epsilon; None if its accountants refuse the event or fail."""
    try:
        found = float(accounting.google_epsilon(event, delta, relation))
    except (ValueError, ArithmeticError):
        return None
    return None if math.isnan(found) else found


def _event_of(
    path: Path | None, gaussian: float | None, laplace: float | None, selection: float | None, rate: float | None
) -> tuple[Any, Relation | None]:
    if path is not None:
        if (gaussian, laplace, selection, rate) != (None,) * 4:
            raise ValueError("--event stands alone; leave out --gaussian, --laplace, --selection, --poisson-rate.")
        return _read_event(path)
    if rate is not None and gaussian is None:
        raise ValueError("--poisson-rate needs --gaussian, the noise multiplier of the sampled sum.")
    noisy = accounting.gaussian_event if rate is None else partial(accounting.poisson_event, rate)
    given = ((noisy, gaussian), (accounting.laplace_event, laplace), (accounting.selection_event, selection))
    parts = [event_of(size) for event_of, size in given if size is not None]
    if not parts:
        raise ValueError(
            "describe a mechanism (--gaussian, --laplace, --selection or --event FILE) or a promise "
            "(--promise-epsilon, --rho or --mu)."
        )
    return accounting.compose(parts), None


def _read_event(path: Path) -> tuple[Any, Relation | None]:
    """The event of an event file or of a model file, and the relation that the model file states."""
    from discreet._common.codec import read_json_file

    def build(content: Any) -> tuple[Any, Relation | None]:
        guarantee = content.get("guarantee", {})
        relation = Relation(guarantee["relation"]) if guarantee else None
        event = accounting.event_from_dict(guarantee.get("event", content))
        accounting.check_distinct(event)
        return event, relation

    return read_json_file(path, build, f"--event {path} holds no event")
