"""What public coefficients and public tables gain, and what misleading ones cost: held-out losses of `auto`.

Run: make bench-warm-starts. 2,000 private and 500 public rows of each table; the loss is the log-loss of a
classification, and one minus R^2 of a regression, on 10,000 other rows. Three kinds of public rows:

- same: drawn like the private ones;
- shifted: other people (Nebraska for Colorado, under 30 years for all ages, the first months for all months, the north
  for the whole state);
- wrong: drawn like the private ones, with labels or targets turned round.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from stored_tables import command, labelled, load_benchmark

from discreet import LogisticRegression, PublicModel, PublicTable, Ridge
from discreet.problem.column_scaling import identity_scaling
from discreet.scaling.public_scales import with_public_scales

PRIVATE, PUBLIC, TEST = 2_000, 500, 10_000
EPSILONS = (0.1, 0.3, 1.0, 3.0)
DRAWS = 5
TABLES = ("adult", "acsincome_co", "electricity", "california")


def drawn(name: str, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    """Private, public and test rows, each with their targets."""
    X, y = load_benchmark(name)
    early = np.arange(len(y)) < 10_000
    order = rng.permutation(len(y))
    X, y, early = X[order], y[order], early[order]
    same = slice(PRIVATE, PRIVATE + PUBLIC)
    test = slice(same.stop, same.stop + TEST)
    if name == "acsincome_co":
        other, labels = load_benchmark("acsincome_ne")
        some = rng.permutation(len(labels))[:PUBLIC]
        shifted = other[some], labels[some]
    else:
        where = {"adult": X[:, 0] < 30, "electricity": early, "california": X[:, 6] > 36.0}[name]
        some = test.stop + np.flatnonzero(where[test.stop :])[:PUBLIC]
        shifted = X[some], y[some]
    wrong = X[same], y[same].min() + y[same].max() - y[same]
    tables = {"same": (X[same], y[same]), "shifted": shifted, "wrong": wrong}
    return ((X[:PRIVATE], y[:PRIVATE]), (X[test], y[test])), tables


def estimator(name: str, **settings: Any) -> Any:
    return Ridge(**settings) if name == "california" else LogisticRegression(classes=[0, 1], **settings)


def loss(name: str, margins: Any, y: Any) -> float:
    if name == "california":
        return float(np.mean((margins - y) ** 2) / np.var(y))
    return float(np.logaddexp(0.0, -(2.0 * y - 1.0) * margins).mean())


def start_of(name: str, table: PublicTable) -> PublicModel:
    """The public coefficients that a table gives by itself."""
    return estimator(name, public_table=table).plan(PRIVATE, table.columns).start


def alone(name: str, table: PublicTable, X: Any, y: Any) -> float:
    """The loss of the public coefficients without any private row."""
    start, public = start_of(name, table), estimator(name, public_table=table).plan(PRIVATE, table.columns).public
    scaling = with_public_scales(identity_scaling(table.columns), public, True, False)
    return loss(name, np.clip(X, scaling.low, scaling.high) @ start.coef + start.intercept, y)


def inputs_of(name: str, tables: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is given to a fit, by the name of its row."""
    found: dict[str, dict[str, Any]] = {"nothing public": {}}
    for kind, (X, y) in tables.items():
        found[f"coefficients, {kind}"] = {"start": start_of(name, PublicTable(X, y))}
        found[f"table with target, {kind}"] = {"public_table": PublicTable(X, y)}
        if kind != "wrong":
            found[f"table without target, {kind}"] = {"public_table": PublicTable(X)}
    return found


def run(name: str) -> list[str]:
    """The lines of a table's figures: mean losses, and the largest of all draws."""
    losses: dict[str, dict[str, list[float]]] = {}
    for draw in range(DRAWS):
        ((X, y), (X_test, y_test)), tables = drawn(name, np.random.default_rng(draw))
        share = float(y_test.mean())
        constant = 1.0 if name == "california" else -share * np.log(share) - (1 - share) * np.log(1 - share)
        losses.setdefault("constant", {}).setdefault("", []).append(float(constant))
        for kind, (X_public, y_public) in tables.items():
            found = alone(name, PublicTable(X_public, y_public), X_test, y_test)
            losses.setdefault(f"public rows alone, {kind}", {}).setdefault("", []).append(found)
        for what, given in inputs_of(name, tables).items():
            for epsilon in EPSILONS:
                model = estimator(name, epsilon=epsilon, random_state=draw, **given).fit(X, y)
                margins = model.predict(X_test) if name == "california" else model.decision_function(X_test)
                losses.setdefault(what, {}).setdefault(f"{epsilon:g}", []).append(loss(name, margins, y_test))
    return [line(what, found) for what, found in losses.items()]


def line(what: str, found: dict[str, list[float]]) -> str:
    if "" in found:
        cells = [f"{np.mean(found['']):.3f}"] * len(EPSILONS)
    else:
        cells = [f"{np.mean(values):.3f} ({max(values):.3f})" for values in found.values()]
    return f"| {what} | {' | '.join(cells)} |"


def main() -> None:
    parser = command(__doc__, *TABLES, "acsincome_ne")
    parser.add_argument("tables", nargs="*", help=f"some of {', '.join(TABLES)}; all by default")
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.tables) - set(TABLES)):
        parser.error(f"no such table: {', '.join(unknown)}")
    warnings.simplefilter("ignore")
    for name in chosen.tables or TABLES:
        print(f"\n{labelled(name)}\n\n| given | {' | '.join(f'epsilon {e:g}' for e in EPSILONS)} |", flush=True)
        print("| --- |" + " --- |" * len(EPSILONS))
        print("\n".join(run(name)), flush=True)


if __name__ == "__main__":
    main()
