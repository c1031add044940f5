"""`discreet plan` and `discreet fairness-plan`: what a fit would do, and how unfair its noise can make it; no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from typer import Option

from discreet._common.text import facts
from discreet.cli import options
from discreet.cli.console import answer, check_ledger, check_plot, command, parse_pair
from discreet.cli.fit import in_short
from discreet.fairness.notions import NOTIONS
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.estimators.table_fit import FitRequest
    from discreet.fairness.harm.margin_profiles import MarginProfile


@command("discreet plan --rows 45312 --columns 8 --epsilon 1")
def plan(
    rows: Annotated[int, Option(min=1, help="Number of rows (with add_remove: a public estimate).")],
    columns: Annotated[int, Option(min=1, help="Number of columns without the target.")],
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    estimator: options.Estimator = None,
    solver: options.SolverName = "auto",
    alpha: options.Alpha = None,
    inference: options.Inference = False,
    robust: options.Robust = False,
    bounds: options.Bounds = None,
    y_bounds: options.YBounds = None,
    class_count: Annotated[int, Option(min=2, help="Number of classes of a classification.")] = 2,
    relation: options.RelationName = None,
    persons: Annotated[bool, Option("--persons", help="--rows counts persons, who may have several rows.")] = False,
    ledger: options.LedgerUrl = None,
    dataset: options.DatasetName = None,
    theory: Annotated[bool, Option(help="Show bounds of the literature on the error, below and above.")] = False,
    radius: Annotated[float, Option(help="With --theory: assumed norm of the optimum in scaled columns.")] = 1.0,
    json: options.Json = False,
) -> None:
    """Show the noise, the steps and the cost of a fit, from public facts alone.

    With a ledger: also whether it would pay for the fit, and if not, what it would pay for. Nothing is booked.
    With --theory: also what no private algorithm can beat and what is proved of the planned run (docs/theory.md).
    """
    from discreet.data.schema import Column, Schema, Target
    from discreet.estimators.fitting import why_no_intervals
    from discreet.estimators.table_fit import FitRequest

    names = [f"x{i}" for i in range(columns)]
    low, high = parse_pair("--y-bounds", y_bounds) or (None, None)
    person = "person" if persons else None
    schema = Schema(tuple(map(Column, names)), Target("y", None, low, high), relation or Relation.REPLACE, person)
    limits = parse_pair("--bounds", bounds)
    schema = schema if limits is None else schema.with_bounds(*limits)
    parameters: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "solver": solver}
    parameters |= {} if alpha is None else {"alpha": alpha}
    parameters |= {"inference": options.inference_of(inference, robust)}
    parameters |= {"public_n": rows} if relation is Relation.ADD_REMOVE else {}
    request = FitRequest(schema=schema, estimator=estimator, parameters=parameters)
    task = request.known_task or "classification"
    model = request.model(task)
    planned = model.plan(rows, columns, class_count, persons=persons)
    paid = {"ledger": ledger, "dataset": dataset}
    request = replace(request, task=task, parameters={**request.parameters, **paid})
    budget = _ask_ledger(request, rows, columns, class_count)
    why_not = why_no_intervals(model, planned.public, class_count)
    values = {"plan": planned.to_dict(), "guarantee": planned.guarantee.to_dict(), "ledger": budget}
    values["intervals"] = {"given": why_not is None, "why_not": why_not}
    lines = [f"{type(model).__name__}\n\n{planned}\n{in_short(planned.guarantee)}"]
    lines.append(facts([("intervals", _intervals_told(why_not, inference))]))
    if theory:
        known = planned.theory(radius)
        values["theory"] = known.to_dict()
        lines.append(f"\n{known}")
    if budget is not None:
        left = f"epsilon {budget['remaining']:.6g} left of {budget['epsilon']:.6g} at delta {budget['delta']:.3g}"
        verdict = "would pay for this" if budget["fits"] else f"does not cover this; {budget['would_fit']}"
        lines.append(facts([("ledger", f"{dataset!r} {verdict} ({left})")]))
    answer(json, values, "\n".join(lines))


def _intervals_told(why_not: str | None, asked: bool) -> str:
    if why_not is not None:
        return f"no: {why_not}"
    return "yes" if asked else "yes, by a plan of their own: --inference"


def _ask_ledger(request: FitRequest, rows: int, columns: int, classes: int) -> dict[str, Any] | None:
    """Whether the ledger, if one was named, would pay for the fit, and what it would pay for instead."""
    ledger, dataset = request.parameters["ledger"], request.parameters["dataset"]
    check_ledger(ledger, dataset)
    if ledger is None:
        return None
    from discreet.estimators.table_fit import covers, what_fits
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.statement import budget_of

    fits = covers(request, rows, columns, classes)
    would_fit = None if fits else what_fits(request, rows, columns, classes)
    return budget_of(Ledger(ledger), dataset) | {"fits": fits, "would_fit": would_fit}


SOME_ROWS = 10_000  # to ask which laws are proved, where the number of rows is what is looked for
Pairs = list[str]
of_groups = partial(Option, metavar="[NAME=]NUMBER")
Number = TypeVar("Number", int, float)


@command("discreet fairness-plan --rows 45000 --columns 10 --group men=25000 --group women=20000 --at-most 0.02")
def fairness_plan(
    columns: Annotated[int, Option(min=1, help="Number of columns without the target.")],
    group: Annotated[Pairs, Option(metavar="NAME=ROWS", help="Group name and its number of rows; once per group.")],
    rows: Annotated[
        int | None, Option(min=2, help="Number of training rows; without it, it is looked for at --epsilon.")
    ] = None,
    at_most: Annotated[float | None, Option(help="Most that the noise may change.")] = None,
    epsilon: Annotated[float | None, Option(help="Tell the harm at this epsilon instead of looking for one.")] = None,
    delta: options.Delta = None,
    notion: Annotated[
        str, Option(help=f"{', '.join([*NOTIONS][:-1])} or {[*NOTIONS][-1]}.")
    ] = "equality of opportunity",
    aggregate: Annotated[bool, Option("--aggregate", help="Bound the mean over groups, not every group.")] = False,
    mode: Annotated[
        Literal["bound", "expected"] | None,
        Option(
            help="A bound that fails with --failure, or the mean.", show_default="bound where proved, else expected"
        ),
    ] = None,
    failure: Annotated[float, Option(help="Probability with which a bound may fail.")] = 0.01,
    deviation: Annotated[
        Pairs | None,
        of_groups(help="Standard deviation of the noise-free scores, which a ridge makes smaller.", show_default="2"),
    ] = None,
    auc: Annotated[Pairs | None, of_groups(help="Area under the ROC curve, instead of --deviation.")] = None,
    kappa: Annotated[
        Pairs | None,
        of_groups(help="Instead of normal log-odds: at most kappa * t of each cell within t of the boundary."),
    ] = None,
    base_rate: Annotated[
        Pairs | None, Option(metavar="[NAME=]SHARE", help="Share of the favourable label.", show_default="0.5")
    ] = None,
    row_norm: Annotated[
        float | None, Option(help="Largest norm of a scaled row.", show_default="sqrt(columns + 1)")
    ] = None,
    evaluation_epsilon: Annotated[
        float | None, Option(help="Also tell the noise of a private evaluation with this epsilon.")
    ] = None,
    estimator: Annotated[str, Option(help="LogisticRegression or LinearSVC.")] = "LogisticRegression",
    solver: options.SolverName = "auto",
    ridge: Annotated[
        float | None,
        Option(help="With output-perturbation: least l2 penalty; rows are then shortened to their usual norm."),
    ] = None,
    alpha: options.Alpha = None,
    bounds: options.Bounds = None,
    relation: options.RelationName = None,
    plot: options.Plot = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Find the epsilon, or the rows, with which noise adds little unfairness; no data is read.

    It rests on an assumption about how near people are to the decision boundary, which you make from public knowledge
    and which is printed with the answer.
    """
    from discreet.fairness.harm.at_plan import harm_of, has_proved_law
    from discreet.fairness.harm.search import epsilon_for_harm, plot_harm, rows_for_harm

    check_plot(plot, force)
    parameters: dict[str, Any] = {"epsilon": 1.0 if epsilon is None else epsilon, "delta": delta, "solver": solver}
    parameters |= {"bounds": parse_pair("--bounds", bounds), "relation": relation or Relation.REPLACE}
    model = _model(estimator, ridge, parameters | ({} if alpha is None else {"alpha": alpha}))
    told = "--group must be NAME=ROWS with a whole number of rows"
    groups = {name: _parsed(int, told, size) for name, size in _named("--group", group).items()}
    question: dict[str, Any] = {"groups": groups, "margins": _margins(deviation, auc, kappa, base_rate)}
    question |= {"notion": notion, "failure": failure, "row_norm": row_norm, "evaluation_epsilon": evaluation_epsilon}
    question["mode"] = mode or ("bound" if has_proved_law(model, rows or SOME_ROWS, columns) else "expected")
    target: dict[str, Any] = question | {"at_most": at_most, "of": "aggregate" if aggregate else "groups"}
    if epsilon is not None and rows is not None:
        if plot is not None or at_most is not None:
            raise ValueError("--epsilon with --rows tells the harm there; leave out --at-most and --plot.")
        found: Any = harm_of(model, rows, columns, **question)
    elif at_most is None:
        raise ValueError("say what is bounded, --at-most 0.02, or what to look at, --epsilon with --rows.")
    elif rows is not None and plot is not None:
        found = plot_harm(model, rows, columns, path=plot, **target)
    elif rows is not None:
        found = epsilon_for_harm(model, rows, columns, **target)
    elif epsilon is None:
        raise ValueError("give --rows to look for epsilon, or --epsilon to look for the number of rows.")
    elif plot is not None:
        raise ValueError("--plot shows epsilons: give --rows instead of --epsilon.")
    else:
        found = rows_for_harm(model, columns, **target)
    answer(json, found.to_dict, found)


def _model(estimator: str, ridge: float | None, parameters: dict[str, Any]) -> Any:
    """The classifier whose plans are looked at."""
    from discreet import estimators
    from discreet.estimators.names import CLASSIFIERS
    from discreet.solvers.output_perturbation import OutputPerturbation

    if estimator not in CLASSIFIERS:
        raise ValueError(f"--estimator must be one of {', '.join(CLASSIFIERS)}; got {estimator!r}.")
    if ridge is not None:
        if parameters["solver"] != OutputPerturbation.name:
            raise ValueError("--ridge goes with --solver output-perturbation.")
        parameters["solver"] = OutputPerturbation(ridge=ridge, row_norm=1.0)
    return getattr(estimators, estimator)(classes=[0, 1], **parameters)


def _margins(deviation: Pairs | None, auc: Pairs | None, kappa: Pairs | None, base_rate: Pairs | None) -> MarginProfile:
    from discreet.fairness.harm.margin_profiles import MarginDensity, NormalMargins

    rates = _per_group("--base-rate", base_rate)
    given: dict[str, Any] = {} if rates is None else {"base_rates": rates}
    if kappa is None:
        return NormalMargins(deviation=_per_group("--deviation", deviation), auc=_per_group("--auc", auc), **given)
    if deviation is not None or auc is not None:
        raise ValueError("--kappa is an assumption of its own; leave out --deviation and --auc.")
    return MarginDensity(_per_group("--kappa", kappa), **given)  # type: ignore[arg-type] # kappa is given


def _per_group(option: str, texts: Sequence[str] | None) -> float | dict[str, float] | None:
    """`NUMBER` for all groups, or `NAME=NUMBER` for each."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _parsed(float, f"{option} must be a number", texts[0])
    return {name: _parsed(float, f"{option} must be a number", text) for name, text in _named(option, texts).items()}


def _named(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.rpartition("=") for text in texts]
    names = [name.strip() for name, _, _ in pairs]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{option} must be NAME=NUMBER, once for each group; got {', '.join(texts)}.")
    return {name: text for name, (_, _, text) in zip(names, pairs, strict=True)}


def _parsed(kind: type[Number], told: str, text: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{told}; got {text!r}.") from None
