"""The moving sums of the selection recursion beside busy processes: wall times, with as many threads as cores.

Run as a module it is the measured process: it prints the seconds of both ways.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from framework.runner import THREADS
from framework.timing import in_new_process


def race() -> dict[str, float]:
    import numpy as np

    from discreet.privacy.accounting.pld.selections import moving_sums

    values, kernel = np.random.default_rng(1).random(16_000), np.random.default_rng(2).random(12_001)
    found = {}
    for name, call in (("ours", moving_sums), ("numpy", lambda v, k: np.convolve(v, k, mode="valid"))):
        start = time.perf_counter()
        call(values, kernel)
        found[name] = time.perf_counter() - start
    return found


def beside_busy_processes() -> dict[str, float]:
    """One busy process for each core, and as many threads of BLAS as there are cores."""
    cores = os.cpu_count() or 1
    spin = "import time\nend = time.time() + 90\nwhile time.time() < end: pass"
    rivals = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(cores)]
    try:
        found = in_new_process("accounting.moving_sums", **dict.fromkeys(THREADS, str(cores)))
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
    return {**found, "cores": cores}


if __name__ == "__main__":
    print(json.dumps(race()))
