"""The accountant against dp-accounting: tightness, range of delta, seconds. Run: make bench-accounting.

Prints the tables; with --write it also puts them into docs/benchmarks/accounting.md, where they are explained.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import timing
from stored_tables import command

if "--convolution" not in sys.argv:
    timing.use_one_core()  # before anything imports NumPy
sys.path.insert(0, str(timing.ROOT))  # the exact values come from tests/exact_privacy.py

import numpy as np
from accounting_cases import FAMILIES, Case

from discreet.privacy import accounting
from tests import exact_privacy as exact

PAGE = timing.ROOT / "docs" / "benchmarks" / "accounting.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
SEED, EACH = 20240607, 4
DELTAS = (1e-5, 1e-10, 1e-12, 1e-13, 1e-14, 1e-16, 1e-30)


# ---- the two accountants --------------------------------------------------------------------------------------------


def ours(case: Case, delta: float) -> float:
    from discreet.privacy.accounting import certificates

    certificates._certify.cache_clear()
    return accounting.epsilon_of(case.event, delta, case.relation)


def their_accountant(case: Case, kind: str) -> Callable[[float], float] | None:
    """Their epsilon as a function of delta, or None where they have no way to count the composition."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    if case.theirs is None or (kind == "RDP" and not case.rdp):
        return None
    neighbours = getattr(dp.NeighboringRelation, case.their_relation)
    try:
        accountant = PLDAccountant(neighbours) if kind == "PLD" else RdpAccountant(neighboring_relation=neighbours)
        for event, count in case.theirs:
            accountant.compose(event, count)
    except (dp.UnsupportedEventError, NotImplementedError):
        return None
    return lambda delta: float(accountant.get_epsilon(delta))


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """A result and the processor time that it took."""
    start = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - start


def theirs(case: Case, kind: str, delta: float) -> float | None:
    counted = their_accountant(case, kind)
    return None if counted is None else counted(delta)


# ---- the tables -----------------------------------------------------------------------------------------------------


def percent(ratio: float) -> str:
    return "infinite" if math.isinf(ratio) else f"{100 * ratio:+.2g} %"


def summary(excess: list[float]) -> str:
    if not excess:
        return "no way to count it"
    below = sum(x < -1e-6 for x in excess)
    return f"{percent(float(np.median(excess)))}, {percent(max(excess))}" + (
        f"; {below} below the truth" if below else ""
    )


def tightness() -> Iterator[str]:
    """Excess epsilon of each accountant over the truth, median and largest, and the time of each."""
    yield "| composition (4 of each, delta 1e-5 to 1e-10) | ours | their PLD | their RDP | time of their PLD / ours |"
    yield "| --- | --- | --- | --- | --- |"
    for name, build in FAMILIES.items():
        rng = np.random.default_rng([SEED, len(name)])
        excess: dict[str, list[float]] = {"ours": [], "PLD": [], "RDP": []}
        times = dict.fromkeys(excess, 0.0)
        for _ in range(EACH):
            case, delta = build(rng), float(10 ** rng.uniform(-10, -5))
            truth = case.truth(delta)
            for kind in ("ours", "PLD", "RDP"):
                count = (ours, case, delta) if kind == "ours" else (theirs, case, kind, delta)
                epsilon, taken = timed(*count)
                if epsilon is not None:
                    excess[kind].append(epsilon / truth - 1)
                    times[kind] += taken
        ratio = f"{times['PLD'] / times['ours']:.1f}" if excess["PLD"] else ""
        yield f"| {name} | {summary(excess['ours'])} | {summary(excess['PLD'])} | {summary(excess['RDP'])} | {ratio} |"


def delta_range() -> Iterator[str]:
    """The same compositions at smaller and smaller delta."""
    import dp_accounting as dp

    gauss = Case(accounting.gaussian_event(10.0, 100), "replace", (), ((dp.GaussianDpEvent(10.0), 100),), mu=1.0)
    compositions = {"100 Gaussians, multiplier 10": gauss}
    for rate, times in ((0.01, 1000), (0.02, 500)):
        moments = tuple(((m, times),) for m in exact.poisson_moments(rate, 1.0))
        given = ((dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(1.0)), times),)
        sampled = Case(accounting.poisson_event(rate, 1.0, times), "zero_out", moments, given)
        compositions[f"{times} Poisson batches, q = {rate}, z = 1"] = sampled
    yield "| composition | delta | truth | ours | their PLD | their RDP |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, case in compositions.items():
        pld, rdp = their_accountant(case, "PLD"), their_accountant(case, "RDP")
        for delta in DELTAS:
            truth = case.truth(delta)
            cells = [percent(epsilon / truth - 1) for epsilon in (ours(case, delta), pld(delta), rdp(delta))]
            yield f"| {name} | {delta:g} | {truth:.5g} | {' | '.join(cells)} |"


def rare_losses() -> Iterator[str]:
    """k q = 1: nearly all losses are tiny, a few are large."""
    import dp_accounting as dp

    yield "| q, k, multiplier | delta | truth | ours | their PLD | their RDP | seconds of ours, PLD |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for q, k, z in ((1e-3, 10**3, 1.0), (1e-6, 10**6, 0.5)):
        given = ((dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), k),)
        moment = exact.poisson_moments(q, 1 / z)[0]  # this direction is the worse one
        case = Case(accounting.poisson_event(q, z, k), "zero_out", (((moment, k),),), given)
        for delta in (1e-5, 1e-10, 1e-30):
            truth = exact.Profile(case.directions[0]).epsilon(delta, points=4000)
            found = [timed(ours, case, delta), timed(theirs, case, "PLD", delta), timed(theirs, case, "RDP", delta)]
            cells = " | ".join(percent(epsilon / truth - 1) for epsilon, _ in found)
            yield f"| {q:g}, {k}, {z} | {delta:g} | {truth:.5g} | {cells} | {found[0][1]:.2g}, {found[1][1]:.2g} |"


def without_a_pair() -> Iterator[str]:
    """Events of ours that their PLD accountant refuses."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    events = {
        "selection of bounded range": (accounting.selection_event(0.5), "ADD_OR_REMOVE_ONE"),
        "any epsilon-DP release": (accounting.pure_event(0.5), "ADD_OR_REMOVE_ONE"),
        "objective perturbation": (accounting.objective_event(0.1, 5.0), "ADD_OR_REMOVE_ONE"),
        "batch of fixed size": (accounting.fixed_size_event(100, 5, 1.0), "REPLACE_ONE"),
        "Laplace noise": (accounting.laplace_event(5.0), "REPLACE_ONE"),
        "randomised response": (accounting.randomised_response_event(0.5), "REPLACE_ONE"),
        "mixture of Gaussians": (accounting.mixture_event(1.0, [0.0, 1.0], [0.9, 0.1]), "ADD_OR_REMOVE_ONE"),
    }
    refused = [
        f"{name} ({relation})"
        for name, (event, relation) in events.items()
        if not PLDAccountant(getattr(dp.NeighboringRelation, relation)).supports(event)
    ]
    yield f"Events that their PLD accountant refuses: {'; '.join(refused)}."


# ---- the moving sums of the selection recursion, beside busy processes ---------------------------------------------


def race_convolutions() -> None:
    from discreet.privacy.accounting.pld.selections import moving_sums

    values, kernel = np.random.default_rng(1).random(16_000), np.random.default_rng(2).random(12_001)
    result = {}
    for name, call in (("ours", moving_sums), ("numpy", lambda v, k: np.convolve(v, k, mode="valid"))):
        start = time.perf_counter()
        call(values, kernel)
        result[name] = time.perf_counter() - start
    print(json.dumps(result))


def busy_machine() -> Iterator[str]:
    """Wall time beside one busy process a core, with as many BLAS threads as there are cores."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(cores))
    spin = "import time\nend = time.time() + 90\nwhile time.time() < end: pass"
    rivals = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(cores)]
    try:
        found = timing.in_new_process("accounting.py", "--convolution", **dict.fromkeys(timing.THREADS, str(cores)))
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
    yield f"Moving sums, 4,000 of 12,001 terms, beside {cores} busy processes on {cores} cores, wall time:"
    yield f"ours {found['ours']:.2f} s, `np.convolve` {found['numpy']:.2f} s."


def write(tables: str) -> None:
    """Replace the tables of the page and leave its prose alone."""
    page = PAGE.read_text()
    before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:before]}\n{tables}\n\n{page[after:]}")


def main() -> int:
    """Print the tables."""
    parser = command(__doc__, other="none: compositions are drawn from a seed")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks/accounting.md")
    parser.add_argument("--convolution", action="store_true", help="only the race of moving sums; prints JSON")
    asked = parser.parse_args()
    if asked.convolution:
        race_convolutions()
        return 0
    sections = []
    for part in (tightness, delta_range, rare_losses, without_a_pair, busy_machine):
        lines = []
        for line in part():
            print(line, flush=True)
            lines.append(line)
        print()
        sections.append("\n".join(lines))
    if asked.write:
        write("\n\n".join(sections))
    return 0


if __name__ == "__main__":
    sys.exit(main())
