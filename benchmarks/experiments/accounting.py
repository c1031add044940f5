"""Our accounting against dp-accounting: excess epsilon over the truth, range of delta, seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from accounting.accountants import ours, refused_events, their_accountant, theirs, timed
from accounting.cases import BATCHES, FAMILIES, GAUSSIANS, at_small_delta, rare
from accounting.moving_sums import beside_busy_processes
from framework import Cell, Experiment
from framework.markdown import table

NAME = "accounting"
SEED, EACH = 20240607, 4
DELTAS = (1e-5, 1e-10, 1e-12, 1e-13, 1e-14, 1e-16, 1e-30)
RARE, RARE_DELTAS = ((1e-3, 10**3, 1.0), (1e-6, 10**6, 0.5)), (1e-5, 1e-10, 1e-30)
KINDS = ("ours", "PLD", "RDP")


def cells(quick: bool) -> Iterator[Cell]:
    """The part of the page is the data set of a cell, the composition its method."""
    for family in ("Gaussians",) if quick else FAMILIES:
        yield Cell(NAME, "tightness", family)
    for composition in (GAUSSIANS,) if quick else (GAUSSIANS, *BATCHES):
        yield Cell(NAME, "range of delta", composition)
    if not quick:
        for q, k, z in RARE:
            yield Cell(NAME, "rare losses", f"{q:g}, {k}, {z}", {"q": q, "k": k, "z": z})
        yield Cell(NAME, "moving sums", "beside busy processes")
    yield Cell(NAME, "refused events", "their PLD")


def measure(cell: Cell) -> dict[str, Any]:
    parts = {"tightness": tightness, "range of delta": range_of_delta, "rare losses": rare_losses}
    if cell.dataset in parts:
        return parts[cell.dataset](cell)
    return beside_busy_processes() if cell.dataset == "moving sums" else {"refused": refused_events()}


def tightness(cell: Cell) -> dict[str, Any]:
    """Excess epsilon of each accountant over the truth, and the time of each; None where one cannot count it."""
    rng = np.random.default_rng([SEED, len(cell.method)])
    excess: dict[str, list[float]] = {kind: [] for kind in KINDS}
    times = dict.fromkeys(KINDS, 0.0)
    for _ in range(EACH):
        case, delta = FAMILIES[cell.method](rng), float(10 ** rng.uniform(-10, -5))
        truth = case.truth(delta)
        for kind in KINDS:
            count = (ours, case, delta) if kind == "ours" else (theirs, case, kind, delta)
            epsilon, taken = timed(*count)
            if epsilon is not None:
                excess[kind].append(epsilon / truth - 1)
                times[kind] += taken
    return {"excess": excess, "seconds": times}


def range_of_delta(cell: Cell) -> dict[str, Any]:
    """The same composition at smaller and smaller delta."""
    case = at_small_delta(cell.method)
    pld, rdp = their_accountant(case, "PLD"), their_accountant(case, "RDP")
    assert pld is not None
    assert rdp is not None
    lines = []
    for delta in DELTAS:
        truth = case.truth(delta)
        lines.append([delta, truth, *(e / truth - 1 for e in (ours(case, delta), pld(delta), rdp(delta)))])
    return {"found": lines}


def rare_losses(cell: Cell) -> dict[str, Any]:
    """k q = 1: nearly all losses are tiny, a few are large."""
    from tests.exact_privacy import Profile

    case, lines = rare(**cell.setting), []
    for delta in RARE_DELTAS:
        truth = Profile(case.directions[0]).epsilon(delta, points=4000)
        found = [timed(ours, case, delta), timed(theirs, case, "PLD", delta), timed(theirs, case, "RDP", delta)]
        lines.append([delta, truth, *(epsilon / truth - 1 for epsilon, _ in found), found[0][1], found[1][1]])
    return {"found": lines}


def percent(ratio: float | None) -> str:
    """None is what the store keeps of a number that is not finite."""
    return "infinite" if ratio is None or math.isinf(ratio) else f"{100 * ratio:+.2g} %"


def summary(excess: list[float]) -> str:
    if not excess:
        return "no way to count it"
    below = sum(x < -1e-6 for x in excess)
    told = f"{percent(float(np.median(excess)))}, {percent(max(excess))}"
    return told + (f"; {below} below the truth" if below else "")


def page(results: Any, folder: Any) -> dict[str, str]:
    parts = [tightness_table(results), range_table(results), rare_table(results)]
    refused = results.one(dataset="refused events")
    if refused:
        parts.append(f"Events that their PLD accountant refuses: {'; '.join(refused['refused'])}.")
    sums = results.one(dataset="moving sums")
    if sums:
        cores = sums["cores"]
        parts.append(
            f"Moving sums, 4,000 of 12,001 terms, beside {cores} busy processes on {cores} cores, wall time:\n"
            f"ours {sums['ours']:.2f} s, `np.convolve` {sums['numpy']:.2f} s."
        )
    return {"table": "\n\n".join(parts)}


def tightness_table(results: Any) -> str:
    rows = []
    for cell, found in results.select(dataset="tightness"):
        times, excess = found["seconds"], found["excess"]
        ratio = f"{times['PLD'] / times['ours']:.1f}" if excess["PLD"] else ""
        rows.append([cell.method, *(summary(excess[kind]) for kind in KINDS), ratio])
    head = f"composition ({EACH} of each, delta 1e-5 to 1e-10)"
    return table([head, "ours", "their PLD", "their RDP", "time of their PLD / ours"], rows)


def range_table(results: Any) -> str:
    rows = [
        [cell.method, f"{delta:g}", f"{truth:.5g}", *map(percent, excess)]
        for cell, found in results.select(dataset="range of delta")
        for delta, truth, *excess in found["found"]
    ]
    return table(["composition", "delta", "truth", "ours", "their PLD", "their RDP"], rows)


def rare_table(results: Any) -> str:
    rows = [
        [cell.method, f"{delta:g}", f"{truth:.5g}", *map(percent, excess), f"{mine:.2g}, {other:.2g}"]
        for cell, found in results.select(dataset="rare losses")
        for delta, truth, *excess, mine, other in found["found"]
    ]
    head = ["q, k, multiplier", "delta", "truth", "ours", "their PLD", "their RDP", "seconds of ours, PLD"]
    return table(head, rows)


accounting = Experiment(
    NAME, NAME, "our accounting against dp-accounting", cells, measure, page, file="accounting.md", alone=True
)
