"""Seconds of a federated round without and with Flower to carry the messages, both in one process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from federated.holders import planned
from framework import Cell, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of

NAME = "federated-overhead"
ROUNDS = 5


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME):
        for clients in dataset.facts["clients"][: 1 if quick else None]:
            yield Cell(NAME, dataset.name, "ADMM", {"clients": clients})


def measure(cell: Cell) -> dict[str, float]:
    from discreet.federated import Server, simulate
    from discreet.federated.flower.in_process import run_in_process
    from discreet.federated.simulation import clients_of

    holders: Any = datasets()[cell.dataset].load()
    clients = cell.setting["clients"]
    plan, parts = planned(holders, clients, rounds=ROUNDS), holders.parts(clients)
    simulate(plan, holders.X, holders.y, parts, seed=0)  # compiles
    plain = simulate(plan, holders.X, holders.y, parts, seed=0).seconds
    found = clients_of(plan, holders.X, holders.y, parts, seed=0)
    server = Server(plan, list(found), random_state=0)
    started = time.perf_counter()
    run_in_process(server, found)
    return {"plain": plain, "flower": (time.perf_counter() - started) / plan.rounds}


def page(results: Any, folder: Any) -> dict[str, str]:
    rows = []
    for cell, found in results.select():
        clients, times = cell.setting["clients"], (found["plain"], found["flower"])
        more = (times[1] - times[0]) / clients
        rows.append([str(clients), *(f"{1e3 * seconds:.0f} ms" for seconds in times), f"{1e3 * more:.2f} ms"])
    return {"overhead": table(["clients", "plain", "through Flower's messages", "more for each client"], rows)}


overhead = Experiment(
    NAME,
    "federated",
    "what Flower's messages add to a round",
    cells,
    measure,
    page,
    file="federated.md",
    order=1,
    stored=("electricity",),
    alone=True,
)
