"""Tables larger than memory: peak memory of fits that read a Parquet file block by block. Run: make bench-out-of-core.

Makes a file of random rows in a temporary folder, trains on it in fresh processes and prints the peak memory of each
beside the size of the file. --rows N makes a smaller or larger file, --write puts the table into
docs/benchmarks/out-of-core.md. On a part of the rows each model is compared, bit for bit, with that of the same rows in
memory under the same seed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import timing
from stored_tables import command

PAGE = timing.ROOT / "docs" / "benchmarks" / "out-of-core.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
HEAD = """\
| fit | file | peak memory | file / peak | target | | seconds | same model as in memory |
| --- | --- | --- | --- | --- | --- | --- | --- |"""
ROWS, COLUMNS, GROUP = 25_000_000, 20, 1 << 17
COMPARED_ROWS = 1_000_000
LEAST_RATIO = 4.0
SOLVERS = ("newton", "gd", "sufficient-statistics")
COMMAND = "discreet fit"
STEPS = 4  # of newton and gd in Python: their number changes how long they take, not what they hold


def write_table(path: Path, rows: int) -> None:
    """Random doubles do not compress: the file is as large as the table would be in memory."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(COLUMNS)] + [("y", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, GROUP):
            X = rng.standard_normal((min(GROUP, rows - start), COLUMNS))
            label = X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(X.shape[0]) > 0.0
            columns = [pa.array(np.ascontiguousarray(X[:, j])) for j in range(COLUMNS)]
            writer.write_table(pa.table([*columns, pa.array(label.astype(np.int8))], schema=schema))


def estimator(solver: str) -> Any:
    """An estimator whose solver runs briefly."""
    from discreet import LogisticRegression, Ridge
    from discreet.solvers import GradientDescent, Newton

    if solver == "sufficient-statistics":
        return Ridge(solver=solver, random_state=0)
    brief = Newton(steps=STEPS) if solver == "newton" else GradientDescent(steps=STEPS)
    return LogisticRegression(solver=brief, classes=[0, 1], random_state=0)


def measure(solver: str, path: str, form: str) -> dict[str, Any]:
    """In a process of its own: fit once, on stored rows or on rows in memory."""
    import warnings

    import numpy as np
    import pyarrow.dataset
    import pyarrow.parquet as pq
    from memory import resident

    warnings.simplefilter("ignore")  # a seed is insecure, which is the point here
    start = time.perf_counter()
    if solver == COMMAND:
        with tempfile.TemporaryDirectory() as folder:
            coef = fit_by_command(path, Path(folder) / "model.json")
    elif form == "stored":
        coef = estimator(solver).fit(pyarrow.dataset.dataset(path), "y").coef_
    else:
        table = pq.read_table(path)
        X = np.column_stack([table[f"x{j}"].to_numpy() for j in range(COLUMNS)])
        coef = estimator(solver).fit(X, table["y"].to_numpy()).coef_
    seconds = time.perf_counter() - start
    return {"peak": resident("VmHWM"), "seconds": seconds, "coef": np.ravel(coef).tolist()}


def fit_by_command(path: str, out: Path) -> Any:
    """What a person would type; in this process, so that its memory is measured."""
    from discreet.cli.app import app

    model = ["--task", "regression", "--solver", "sufficient-statistics"]  # the one with the fewest passes
    options = ["--target", "y", *model, "--out-of-core", "--quiet", "--out", str(out)]
    try:
        app(["fit", path, *options])
    except SystemExit as end:
        if end.code:
            raise
    return json.loads(out.read_text())["coef"]


def child(solver: str, path: Path, form: str) -> dict[str, Any]:
    """One fit in a fresh process."""
    return timing.in_new_process(Path(__file__).name, "--child", solver, str(path), form)


def row(solver: str, large: Path, small: Path) -> tuple[str, bool]:
    """A line of the table, and whether it keeps its promises."""
    run = child(solver, large, "stored")
    size, peak = large.stat().st_size, run["peak"]
    verdict, same = size / peak >= LEAST_RATIO, True
    compared = "not compared: its noise is secure"
    if solver != COMMAND:
        stored, held = (child(solver, small, form) for form in ("stored", "memory"))
        same = stored["coef"] == held["coef"]
        compared = f"{'yes' if same else 'NO'}, {COMPARED_ROWS:,} rows"
    steps = f", {STEPS} steps" if solver in ("newton", "gd") else ""
    cells = [f"`{solver}`{steps}", f"{size / 1e9:.2f} GB", f"{peak / 1e9:.2f} GB", f"{size / peak:.1f}"]
    cells += [f"at least {LEAST_RATIO:g}"]
    cells += ["pass" if verdict else "FAIL", f"{run['seconds']:.0f}", compared]
    return f"| {' | '.join(cells)} |", verdict and same


def write_page(table: str) -> None:
    """Replace the table of the page and leave its prose alone."""
    page = PAGE.read_text()
    before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:before]}\n{table}\n\n{page[after:]}")


def main() -> int:
    """Print the table; 1 if a target was missed or a model differs."""
    parser = command(__doc__, other="generated, about 4.2 GB in a temporary folder; --rows makes it smaller")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"default: {ROWS:,}")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks/out-of-core.md")
    parser.add_argument("--child", nargs=3, metavar=("SOLVER", "FILE", "FORM"), help="one fit, in a process of its own")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(*options.child)))
        return 0
    lines, kept = [HEAD], True
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder) / "large.parquet", Path(folder) / "small.parquet"
        write_table(large, options.rows)
        write_table(small, min(COMPARED_ROWS, options.rows))
        for solver in (*SOLVERS, COMMAND):
            line, good = row(solver, large, small)
            print(line, flush=True)
            lines.append(line)
            kept &= good
    if options.write:
        write_page("\n".join(lines))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
