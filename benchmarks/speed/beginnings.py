"""What a user waits for before anything runs: imports, the command line, the first fit of a process.

Run as a module it is the measured process: it times a first and a later fit and prints them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from framework.timing import ROOT, Row, in_new_process, milliseconds, minima, seconds_of

SOLVERS = ("newton", "cd", "gd", "sgd")
IMPORTS = {
    "sklearn": "import sklearn.linear_model",
    "package": "import discreet",
    "estimator": "import discreet; discreet.LogisticRegression",
}
LATER_FITS = 3
MOST_SECONDS = {"newton": 0.5, "gd": 0.5}  # of a first fit with an empty cache; other solvers compile their loops


def import_rows() -> list[Row]:
    """Imports in fresh processes, without the start of the interpreter; the command line with it."""
    times = minima({name: partial(_import_seconds, code) for name, code in IMPORTS.items()})
    sklearn = times["sklearn"]
    rows = []
    for name in ("package", "estimator"):
        ratio = times[name] / sklearn
        ours, theirs = milliseconds(times[name]), f"`{IMPORTS['sklearn']}` {milliseconds(sklearn)}"
        rows.append(Row(f"`{IMPORTS[name]}`", ours, theirs, f"{ratio:.2f} times", "at most 1.3 times", ratio <= 1.3))
    command = Path(sys.executable).parent / "discreet"
    if command.exists():
        rows.append(_command_row(command))
    return rows


def _import_seconds(code: str) -> float:
    script = f"import time; start = time.perf_counter()\n{code}\nprint(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def _command_row(command: Path) -> Row:
    times = minima(
        {
            "help": lambda: seconds_of([str(command), "--help"]),
            "sklearn": lambda: seconds_of([sys.executable, "-c", IMPORTS["sklearn"]]),
        }
    )
    ratio = times["help"] / times["sklearn"]
    theirs = f"a process that imports it {milliseconds(times['sklearn'])}"
    return Row(
        "`discreet --help`",
        milliseconds(times["help"]),
        theirs,
        f"{ratio:.2f} times",
        "at most 0.5 times",
        ratio <= 0.5,
    )


def first_fit_rows(solver: str) -> list[Row]:
    """What the first fit of a process costs over a later one, with a filled and with an empty code cache."""
    measure = partial(in_new_process, "speed.beginnings", solver)
    measure()  # fills the cache
    found = [measure() for _ in range(5)]
    warm = min(run["first"] - run["later"] for run in found)
    with tempfile.TemporaryDirectory() as empty:
        run = measure(NUMBA_CACHE_DIR=empty)
    cold = run["first"] - run["later"]
    most = MOST_SECONDS.get(solver, 10.0)
    later = f"a later fit {milliseconds(found[0]['later'])}"
    return [
        Row(f"first `{solver}` fit, warm cache", f"+ {warm:.2f} s", later, "", "below 1 s", warm < 1.0),
        Row(f"first `{solver}` fit, empty cache", f"+ {cold:.2f} s", later, "", f"below {most:g} s", cold < most),
    ]


def time_fits(solver: str) -> dict[str, float]:
    """Processor seconds of the first fit in this process, and of the best of some later ones."""
    import numpy as np

    from discreet import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 8))
    y = (X[:, 0] + rng.standard_normal(2_000) > 0.0).astype(int)
    times = []
    for _ in range(1 + LATER_FITS):
        start = time.process_time()
        LogisticRegression(solver=solver, classes=[0, 1], bounds=(-5.0, 5.0)).fit(X, y)
        times.append(time.process_time() - start)
    return {"first": times[0], "later": min(times[1:])}


if __name__ == "__main__":
    print(json.dumps(time_fits(sys.argv[1])))
