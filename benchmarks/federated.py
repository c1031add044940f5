"""Federated private ADMM beside federated averaging as Flower ships it, at the same guarantee.

Run: make bench-federated (`--write` puts tables and pictures into docs/benchmarks/federated.md; `--quick` makes one run
of each). Whole clients are protected in the central model unless
said otherwise. ADMM runs with its defaults. Averaging gets the best of nine settings, chosen by the held-out log-loss,
which is not private and in its favour.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from federated_averaging import averaged
from federated_tables import PROBLEM, STORED, HolderTable, load_table
from stored_tables import command, labelled, may_write

from discreet.federated import FederatedPlan, Server, plan_federated, simulate
from discreet.federated.flower.in_process import run_in_process
from discreet.federated.model_map import ModelMap
from discreet.federated.simulate import clients_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "federated.md"
CLIENTS = {"income": (10, 100, 1_000), "electricity": (10, 100, 944)}  # 944 days
TITLES = {"income": "income, by occupation", "electricity": "electricity, by day"}
ROUNDS = (5, 10, 20, 40)
USUAL_ROUNDS, EPSILON = 20, 1.0
STEPS, CLIPS = (0.3, 1.0, 3.0), (0.1, 0.3, 1.0)  # of averaging: the length of its local steps, and its clipping norm
Scores = list[tuple[float, float]]  # log-loss and accuracy of each run


def planned(table: HolderTable, clients: int, rounds: int, **settings: Any) -> FederatedPlan:
    """A plan with nothing tuned."""
    facts = {"epsilon": EPSILON, "rounds": rounds, "model": "central", "dropouts": 0} | settings
    return plan_federated(PROBLEM, table.X.shape[1], (table.low, table.high), clients, **facts)


def by_admm(table: HolderTable, clients: int, rounds: int, runs: int, **settings: Any) -> Scores:
    """Held-out scores of federated ADMM."""
    plan, parts, found = planned(table, clients, rounds, **settings), table.parts(clients), []
    for seed in range(runs):
        server = simulate(plan, table.X, table.y, parts, seed=seed).server
        found.append(table.judge(*server.to_user(server.averaged_weights)))
    return found


def by_rows(table: HolderTable, clients: int, rounds: int, runs: int) -> Scores:
    """The same, protecting single rows from the server too."""
    fewest = min(part.size for part in table.parts(clients).values())
    return by_admm(table, clients, rounds, runs, unit="record", model="local", rows_per_client=fewest)


def by_averaging(table: HolderTable, clients: int, rounds: int, runs: int) -> Scores:
    """Held-out scores of Flower's private averaging, with the best of nine settings."""
    plan, parts = planned(table, clients, rounds), table.parts(clients)

    def scores(step: float, clip: float, seeds: Iterable[int]) -> Scores:
        models = [averaged(plan, table.X, table.y, parts, step, clip, seed) for seed in seeds]
        return [table.judge(*ModelMap(plan).to_user(w)) for w in models]

    settings = [(step, clip) for step in STEPS for clip in CLIPS]
    best = min(settings, key=lambda setting: scores(*setting, seeds=[1_000])[0][0])
    return scores(*best, seeds=range(runs))


METHODS: dict[str, Callable[[HolderTable, int, int, int], Scores]] = {
    "ADMM": by_admm,
    "averaging (Flower), tuned": by_averaging,
    "ADMM, rows, local": by_rows,
}


@cache
def table_of(name: str) -> HolderTable:
    return load_table(name)


def grid_of_scores(name: str, cells: list[tuple[int, int]], runs: int) -> dict[tuple[str, int, int], Scores]:
    """The scores of all methods for pairs of clients and rounds."""
    found = {}
    for clients, rounds in cells:
        for method, run in METHODS.items():
            started = time.perf_counter()
            found[method, clients, rounds] = run(table_of(name), clients, rounds, runs)
            seconds = time.perf_counter() - started
            losses = [loss for loss, _ in found[method, clients, rounds]]
            print(
                f"{name} {clients} clients {rounds} rounds {method}: {np.mean(losses):.4f} ({seconds:.0f} s)",
                flush=True,
            )
    return found


def overhead() -> list[str]:
    """Seconds of a round without and with Flower to carry the messages, both in one process."""
    table, lines = table_of("electricity"), ["| clients | plain | through Flower's messages | more for each client |"]
    lines.append("|---|---|---|---|")
    for clients in (10, 100, 944):
        plan, parts = planned(table, clients, rounds=5), table.parts(clients)
        plain = simulate(plan, table.X, table.y, parts, seed=0).seconds
        holders = clients_of(plan, table.X, table.y, parts, seed=0)
        server = Server(plan, list(holders), random_state=0)
        started = time.perf_counter()
        run_in_process(server, holders)
        flower = (time.perf_counter() - started) / plan.rounds
        more = (flower - plain) / clients
        lines.append(f"| {clients} | {1e3 * plain:.0f} ms | {1e3 * flower:.0f} ms | {1e3 * more:.2f} ms |")
    return lines


def written(scores: Scores) -> str:
    losses, accuracies = np.array(scores).T
    return f"{losses.mean():.3f} ± {losses.std():.3f} ({losses.max():.3f}), {100 * accuracies.mean():.1f} %"


def score_table(name: str, found: dict[tuple[str, int, int], Scores], cells: list[tuple[int, int]]) -> list[str]:
    table = table_of(name)
    lines = ["| clients | rounds | " + " | ".join(METHODS) + " |", "|---|---|" + "---|" * len(METHODS)]
    for clients, rounds in cells:
        lines.append(
            f"| {clients} | {rounds} | " + " | ".join(written(found[m, clients, rounds]) for m in METHODS) + " |"
        )
    references = {"Without privacy": table.without_privacy, "a constant": table.constant}
    lines += ["", "; ".join(f"{what} {loss:.3f}, {100 * hit:.1f} %" for what, (loss, hit) in references.items()) + "."]
    return lines


def draw(name: str, found: dict[tuple[str, int, int], Scores]) -> None:
    """Two panels: log-loss against rounds with the most clients, and against clients."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    table, most = table_of(name), CLIENTS[name][-1]
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.0), sharey=True, layout="constrained")
    panels = [
        ([(most, rounds) for rounds in ROUNDS], ROUNDS, f"rounds, {most} clients"),
        ([(clients, USUAL_ROUNDS) for clients in CLIENTS[name]], CLIENTS[name], f"clients, {USUAL_ROUNDS} rounds"),
    ]
    styles = dict(zip(METHODS, [("#08306b", "o", "-"), ("#d94801", "s", "--"), ("#238b45", "D", ":")], strict=True))
    for axis, (cells, places, label) in zip(axes, panels, strict=True):
        for method, (colour, marker, line) in styles.items():
            losses = [np.array(found[method, *cell])[:, 0] for cell in cells]
            means = np.array([loss.mean() for loss in losses])
            spread = np.array([loss.std() for loss in losses])
            axis.plot(places, means, line, color=colour, marker=marker, ms=5, label=method)
            axis.fill_between(places, means - spread, means + spread, color=colour, alpha=0.15, lw=0)
        axis.axhline(table.without_privacy[0], color="black", lw=1, label="without privacy")
        axis.axhline(table.constant[0], color="#777777", lw=1, ls=":", label="a constant")
        axis.set(xscale="log", xlabel=label)
        axis.set_xticks(places, [f"{place:,}" for place in places])
        axis.minorticks_off()
        axis.set_ylim(table.without_privacy[0] - 0.02, table.constant[0] + 0.12)
    axes[0].set_ylabel("held-out log-loss")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.suptitle(f"{TITLES[name]}: epsilon {EPSILON:g}, whole clients, central (green: rows, local)", fontsize=10)
    figure.savefig(PAGE.parent / f"federated-{name}.png", dpi=110)
    plt.close(figure)


def put(name: str, lines: list[str]) -> None:
    """Write lines between the marks of that name on the page."""
    text, begin, end = PAGE.read_text(), f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, after = text.index(begin) + len(begin), text.index(end)
    PAGE.write_text(text[:before] + "\n".join(lines) + "\n" + text[after:])


def main() -> None:
    parser = command(__doc__, *STORED.values())
    parser.add_argument("--write", action="store_true", help="put the results into the page")
    parser.add_argument("--quick", action="store_true", help="one run of each instead of five")
    parser.add_argument("tables", nargs="*", default=list(CLIENTS))
    asked = parser.parse_args()
    write = asked.write and may_write(*(STORED[name] for name in asked.tables))
    warnings.simplefilter("ignore")
    for name in asked.tables:
        print(labelled(name, STORED[name]))
        cells = [(c, USUAL_ROUNDS) for c in CLIENTS[name]]
        cells += [(CLIENTS[name][-1], rounds) for rounds in ROUNDS if rounds != USUAL_ROUNDS]
        found = grid_of_scores(name, cells, 1 if asked.quick else 5)
        lines = score_table(name, found, cells)
        print("\n".join(lines))
        if write:
            put(name, lines)
            draw(name, found)
    lines = overhead()
    print("\n".join(lines))
    if write:
        put("overhead", lines)


if __name__ == "__main__":
    sys.exit(main())
