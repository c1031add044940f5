"""A small frame for benchmarks: one file for each data set, method and experiment, results that survive a stop.

Files in `datasets/`, `methods/` and `experiments/` are found by `registry.py`, not listed; `runner.py` measures what is
missing in two processes and `store.py` keeps it. benchmarks/README.md says how to add a file.
"""

from framework.cells import Cell
from framework.kinds import Dataset, Experiment, Method

__all__ = ["Cell", "Dataset", "Experiment", "Method"]
