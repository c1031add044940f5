"""newton with and without the counts of its scores by label: where they help, and where they cost.

Prints the mean log-loss on held-out rows at epsilon 1, over that of a constant without privacy, and the worst draw.
"Without" plans no check, and spends its share on the steps. About half a minute.

Run: make bench-score-check.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from scipy.special import expit
from stored_tables import command

from discreet import LogisticRegression
from discreet.solvers.newton import solver

HELD_OUT, COLUMNS = 5_000, 10
CASES = {  # rows, strength of the scores, share of labels that are drawn at random
    "nearly separable, 1,000 rows": (1_000, 12.0, 0.0),
    "nearly separable, 5,000 rows": (5_000, 12.0, 0.0),
    "weak signal, 1,000 rows": (1_000, 1.0, 0.0),
    "no signal, 1,000 rows": (1_000, 0.0, 0.0),
    "strong, a fifth of the labels at random, 5,000 rows": (5_000, 12.0, 0.2),
    "strong, a fifth of the labels at random, 20,000 rows": (20_000, 12.0, 0.2),
}


def losses(rows: int, strength: float, random: float, draws: int) -> list[float]:
    """The log-loss of each draw, in units of that of even labels."""
    rng, found = np.random.default_rng(3), []
    for seed in range(draws):
        X = rng.normal(size=(rows + HELD_OUT, COLUMNS))
        y = (rng.random(len(X)) < expit(strength * X[:, :3].sum(axis=1) / math.sqrt(3.0))).astype(int)
        y = np.where(rng.random(len(X)) < random, rng.integers(0, 2, len(X)), y)
        model = LogisticRegression(epsilon=1.0, solver="newton", classes=[0, 1], random_state=seed)
        scores = model.fit(X[:rows], y[:rows]).decision_function(X[rows:])
        found.append(float(np.logaddexp(0.0, -(2.0 * y[rows:] - 1.0) * scores).mean()) / math.log(2.0))
    return found


def main() -> None:
    parser = command(__doc__, other="all of them are generated")
    parser.add_argument("--draws", type=int, default=20, help="tables and noises for each line (default 20)")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | without: mean | worst | with: mean | worst |\n|---|---|---|---|---|")
    planned = solver.check_share
    for name, case in CASES.items():
        cells = []
        for share in (lambda public, budget: 0.0, planned):
            solver.check_share = share
            found = losses(*case, asked.draws)
            cells += [f"{np.mean(found):.3f}", f"{max(found):.3f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
