"""How the default fit grows with the number of rows, up to 10^8 that are generated in every pass; none is stored."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from scale.tables import GeneratedRows

SIZES, QUICK_SIZES, COLUMNS = (10**5, 10**6, 10**7, 10**8), (10**5, 10**6), 10


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """Seconds, passes and resident memory of a fit for each number of rows."""
    from discreet.data.public import public_facts
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import generator_from
    from discreet.problem import L2, Logistic, Problem
    from discreet.solvers.run import make_plan, run_plan

    found = []
    for rows in QUICK_SIZES if quick else SIZES:
        table = GeneratedRows(rows, COLUMNS)
        plan = make_plan("newton", Problem(Logistic(), L2(1.0 / rows)), public_facts(table), Budget(1.0, 1e-9))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            run_plan(plan, table, generator_from(0))
        found.append({"rows": rows, "seconds": time.perf_counter() - start, "steps": plan.settings.steps})
        print(f"  {rows:,} rows: {found[-1]['seconds']:.1f} s", flush=True)
    return found


if __name__ == "__main__":
    print(json.dumps(measure("quick" in sys.argv[1:])))
