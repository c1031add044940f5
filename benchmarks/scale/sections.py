"""The sections of docs/benchmarks/scale.md, from the figures of the parts."""

from __future__ import annotations

from typing import Any

from framework.markdown import table


def in_memory(found: dict[str, Any]) -> str:
    rows = []
    for name, each in found["tables"].items():
        rows.append(
            [
                name,
                f"{each['copy'] * 1e3:.0f} ms",
                f"{each['lbfgs']:.2f} s",
                f"{each['fit']:.2f} s",
                f"{each['fit'] / each['copy']:.0f}",
                f"{each['fit'] / each['lbfgs']:.1f}",
                f"{each['one_thread'] / each['fit']:.2f}",
                "yes" if each["same_bits"] else "NO",
            ]
        )
    head = ["labels", "a copy", "L-BFGS", "fit", "fit, in copies", "over L-BFGS", "speed-up of threads", "same bits"]
    title = f"## In memory: `newton` on {found['rows']:,} x {found['columns']}, {found['threads']} threads"
    told = (
        "Goals: at most 60 copies and 3 times scikit-learn's L-BFGS. Peak memory is "
        f"{found['peak']:.2f} times the table (goal 1.2): rows are scaled while they are read, and no copy of them is "
        "made. L-BFGS stops after few steps where labels are random; a private fit cannot know, and makes the planned "
        "number."
    )
    return "\n\n".join([title, table(head, rows), told, passes(found)])


def passes(found: dict[str, Any]) -> str:
    size = 8.0 * found["rows"] * found["columns"]
    speed = found["bandwidth"]
    rows = [
        [name.replace("_", " "), str(each["count"]), f"{each['seconds'] * 1e3:.0f} ms",
         f"{found['rows'] / each['seconds'] / 1e6:.0f} million", f"{size / each['seconds'] / speed['copy_all']:.2f}"]
        for name, each in sorted(found["passes"].items(), key=lambda item: -item[1]["count"] * item[1]["seconds"])
    ]  # fmt: skip
    told = (
        f"A copy reads {speed['copy_one'] / 1e9:.1f} GB/s with one thread and {speed['copy_all'] / 1e9:.1f} with all, "
        "and writes as much. The last column is what a pass reads of the table in a second, over what the copy by all "
        "threads reads (goal for the gradient: 0.5)."
    )
    head = ["pass", "how often", "time", "rows a second", "of the copy's bandwidth"]
    return "\n\n".join(["### Passes over the table", table(head, rows), told])


def growth(found: list[dict[str, Any]]) -> str:
    rows = [
        [f"{each['rows']:,}", f"{each['seconds']:.1f} s", f"{each['seconds'] / each['rows'] * 1e9:.0f} ns"]
        for each in found
    ]
    told = "Rows of 10 columns that are generated in every pass and never stored; the time to generate them is in it."
    return "\n\n".join(["## Growth in rows", told, table(["rows", "fit", "per row"], rows)])


ASKED = ("one process", "threads", "dask")


def dask_overhead(found: dict[str, Any]) -> str:
    wall, spent = found["wall"], found["processor"]
    rows = [
        ["wall time a round", *(f"{wall[name] * 1e3:.0f} ms" for name in ASKED), ""],
        ["processor time a round", *(f"{spent[name] * 1e3:.0f} ms" for name in ASKED),
         f"{found['over_threads']:.2f} times two threads, {found['processor_ratio']:.2f} times one (goal: 1.10)"],
        ["a round that computes nothing", "", "", f"{found['empty_round'] * 1e3:.1f} ms", "goal: 10 ms"],
    ]  # fmt: skip
    title = f"## Dask: {found['rows']:,} x {found['columns']}, {found['workers']} workers, one thread each"
    same = "The sums are the same to the last bit." if found["same_bits"] else "THE SUMS DIFFER."
    head = ["", "one process, one thread", f"one process, {found['workers']} threads", "Dask", ""]
    shared = "Two threads of one process cost more processor time than one, as they share the memory's bandwidth."
    return "\n\n".join([title, table(head, rows), shared, same, on_paper(found)])


def on_paper(found: dict[str, Any]) -> str:
    """A planned run of 10^10 rows on 100 workers, from the measured constants."""
    per_row = found["processor"]["one process"] / found["rows"]
    workers, rows, rounds = 100, 10**10, 45
    round_ = rows / workers * per_row + found["empty_round"]
    held = rows / workers * 8 * (found["columns"] + 3) / 2**30
    return (
        f"### On paper: 10^10 rows x {found['columns']} on 100 workers\n\n"
        f"A worker of one core needs {per_row * 1e9:.0f} ns a row and round (measured above), hence "
        f"{rows / workers * per_row:.0f} s for its 10^8 rows; asking costs {found['empty_round'] * 1e3:.0f} ms more, "
        f"and collecting 100 answers of {found['columns'] + 1} numbers perhaps as much again. `newton` makes about "
        f"{rounds} rounds: {rounds * round_ / 60:.0f} minutes, if the {held:.0f} GB of a worker's rows stay in memory; "
        "from Parquet files each round adds the time to read them. Nobody has run this."
    )


def dask_faults(found: dict[str, Any]) -> str:
    rows = [
        [name, str(each["rounds"]), str(each["kills"]), f"{each['seconds']:.0f} s",
         "same bits" if each["same_model"] else "DIFFERENT", str(each["entries"])]
        for name, each in found.items()
    ]  # fmt: skip
    head = ["solver", "rounds", "workers killed", "time", "model against memory", "ledger entries"]
    told = "A worker is killed (`kill -9`) in every tenth round; its rows are loaded again and the sum is asked again."
    return "\n\n".join(["## Faults", told, table(head, rows)])


def gpu(found: dict[str, Any]) -> str:
    sums, fits = found["sums"], found["fits"]
    rows = [
        ["clipped gradient sum, ms", f"{sums['gpu_ms']:.1f}", f"{sums['cpu_all_ms']:.0f}", f"{sums['cpu_two_ms']:.0f}",
         f"{sums['all_over_gpu']:.0f}", f"{sums['two_over_gpu']:.0f}"],
        [f"fit of {fits['rows']:,} rows, s", f"{fits['gpu_s']:.1f}", f"{fits['cpu_all_s']:.1f}",
         f"{fits['cpu_two_s']:.1f}", f"{fits['cpu_all_s'] / fits['gpu_s']:.1f}",
         f"{fits['cpu_two_s'] / fits['gpu_s']:.1f}"],
    ]  # fmt: skip
    head = ["", "GPU", f"{sums['cores']} cores", "2 threads", "times faster than all cores", "than 2 threads"]
    told = (
        f"{sums['device']}, {sums['rows']:,} x 50 in single precision, sums in double precision (goal: 100 times two "
        f"threads). Copying the table to the device takes {sums['copy_ms'] / 1e3:.1f} s; with it, one sum is "
        f"{sums['two_over_gpu_with_copy']:.1f} times as fast as two threads."
    )
    return "\n\n".join(["## GPU", told, table(head, rows)])
