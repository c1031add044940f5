"""`discreet account`: what a mechanism costs, certified, with Google's number beside it, or what a promise means."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from discreet._common.text import facts
from discreet.cli import options
from discreet.cli.account_meaning import curve_of, draw, promise_cost, promise_of, told
from discreet.cli.console import check_plot, print_json
from discreet.privacy import accounting
from discreet.privacy.relation import Relation

LARGEST_COMPARED = 1_000.0  # epsilon up to which Google is asked: the memory it takes grows with epsilon
EXAMPLE = "Example: discreet account --gaussian 5 --count 100 --delta 1e-6"


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
        single, stored = _event_of(event, gaussian, laplace, selection, poisson_rate)
        inner = accounting.event_to_dict(single)
        if count > 1:
            single = accounting.event_from_dict({"type": "SelfComposedDpEvent", "event": inner, "count": count})
        described, under = single, relation or stored or Relation.REPLACE
        found = cost(described, delta, epsilon, under)
    sentences: list[str] = []
    if meaning or plot is not None:
        curve = curve_of(described, found, under)
        if meaning:
            found["meaning"], sentences = told(curve, found, under)
        if plot is not None:
            draw(curve, found, plot)
    if json:
        print_json({name: "inf" if value == math.inf else value for name, value in found.items()})
        return
    _print(found)
    print("".join(f"\n{sentence}\n" for sentence in sentences), end="")


def _print(found: dict[str, Any]) -> None:
    lines = [(name, f"{found[name]:.6g}") for name in ("epsilon", "delta")]
    if "promise" in found:
        lines += [("promise", found["promise"]), *(("implies", other) for other in found["implies"])]
    else:
        google = found["google_epsilon"]
        answer = "no answer for this" if google is None else f"epsilon {google:.6g} at this delta"
        lines += [("relation", found["relation"]), ("route", found["route"]), ("Google", answer)]
    print(facts(lines, label=10))


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
    parts = []
    if gaussian is not None:
        plain = accounting.gaussian_event(gaussian)
        parts.append(plain if rate is None else accounting.poisson_event(rate, gaussian))
    if laplace is not None:
        parts.append(accounting.laplace_event(laplace))
    if selection is not None:
        parts.append(accounting.selection_event(selection))
    if not parts:
        raise ValueError(
            "describe a mechanism (--gaussian, --laplace, --selection or --event FILE) or a promise "
            "(--promise-epsilon, --rho or --mu)."
        )
    return accounting.compose(parts), None


def _read_event(path: Path) -> tuple[Any, Relation | None]:
    """The event of an event file or of a model file, and the relation that the model file states."""
    from discreet._common.codec import read_json_file  # imports NumPy

    def build(content: Any) -> tuple[Any, Relation | None]:
        guarantee = content.get("guarantee", {})
        relation = Relation(guarantee["relation"]) if guarantee else None
        event = accounting.event_from_dict(guarantee.get("event", content))
        accounting.check_distinct(event)
        return event, relation

    return read_json_file(path, build, f"--event {path} holds no event")
