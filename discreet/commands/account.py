"""`discreet account`: what a described mechanism costs, certified, with Google's number beside it."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.commands import options
from discreet.console import print_json
from discreet.relation import Relation

EXAMPLE = "Example: discreet account --gaussian 5 --count 100 --delta 1e-6"
Multiplier = Annotated[float | None, typer.Option(metavar="MULTIPLIER")]


def account(
    gaussian: Annotated[
        float | None, typer.Option(help="Gaussian noise: deviation over sensitivity (over the clip, if sampled).")
    ] = None,
    laplace: Annotated[float | None, typer.Option(help="Laplace noise: scale over L1 sensitivity.")] = None,
    selection: Annotated[float | None, typer.Option(help="A selection by the exponential mechanism: epsilon.")] = None,
    poisson_rate: Annotated[float | None, typer.Option(help="Gaussian noise on a Poisson sample.")] = None,
    event: Annotated[
        Path | None, typer.Option(help="A JSON file with an event, or a model file, instead of the above.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How often all of the above happens.")] = 1,
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is asked for.")] = 1e-6,
    epsilon: Annotated[float | None, typer.Option(help="Ask for delta at this epsilon instead.")] = None,
    relation: options.RelationName = None,
    json: options.Json = False,
) -> None:
    """Certify the privacy cost of a mechanism."""
    from discreet import accounting

    if event is None:
        what, stored = _described(gaussian, laplace, selection, poisson_rate, count), None
    elif (gaussian, laplace, selection, poisson_rate) == (None,) * 4:
        what, stored = _read_event(event)
        what = accounting.compose([what] * count)
    else:
        raise ValueError("--event stands alone; leave out --gaussian, --laplace, --selection and --poisson-rate.")
    kind = relation or stored or Relation.REPLACE
    asked_delta = delta if epsilon is None else float(accounting.delta_of(what, epsilon, kind))
    certificate = accounting.certify(what, asked_delta, kind)
    found = {
        "epsilon": certificate.epsilon if epsilon is None else epsilon,
        "delta": asked_delta,
        "relation": str(kind),
        "route": certificate.route,
        "google_epsilon": _google(what, asked_delta, kind),
    }
    if json:
        print_json({name: _json_number(value) for name, value in found.items()})
        return
    google = found["google_epsilon"]
    print(f"epsilon   {found['epsilon']:.6g}\ndelta     {found['delta']:.6g}\nrelation  {kind}")
    print(f"route     {certificate.route}")
    print(f"Google    {'has no accountant for this' if google is None else f'epsilon {google:.6g} at this delta'}")


def _described(
    gaussian: float | None, laplace: float | None, selection: float | None, rate: float | None, count: int
) -> Any:
    from discreet import accounting

    if rate is not None and gaussian is None:
        raise ValueError("--poisson-rate needs --gaussian, the noise multiplier of the sampled sum.")
    parts = []
    if gaussian is not None:
        sampled = rate is not None
        parts.append(accounting.poisson_event(rate, gaussian) if sampled else accounting.gaussian_event(gaussian))
    if laplace is not None:
        parts.append(accounting.laplace_event(laplace))
    if selection is not None:
        parts.append(accounting.selection_event(selection))
    if not parts:
        raise ValueError("describe a mechanism: --gaussian, --laplace, --selection or --event FILE.")
    return accounting.repeat(accounting.compose(parts), count)


def _read_event(path: Path) -> tuple[Any, Relation | None]:
    """The event of an event file or of a model file, and the relation that the model file states."""
    from discreet import accounting

    try:
        content = json_module.loads(path.read_text(encoding="utf-8"))
        guarantee = content.get("guarantee", {})
        relation = Relation(guarantee["relation"]) if guarantee else None
        return accounting.event_from_dict(guarantee.get("event", content)), relation
    except (ValueError, AttributeError, KeyError) as error:
        raise ValueError(f"--event {path} holds no event: {error}") from None


def _google(event: Any, delta: float, relation: Relation) -> float | None:
    from discreet import accounting

    try:
        return float(accounting.google_epsilon(event, delta, relation))
    except ValueError:
        return None


def _json_number(value: Any) -> Any:
    return "inf" if value == float("inf") else value
