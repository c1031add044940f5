"""Synthetic rows from noisy marginals (mbi), to which scikit-learn is fitted."""

from framework import Method
from rivals.judge import scored_by
from rivals.libraries import marginals

method = Method(
    "mbi",
    "version 2.0.0: a tree of pairs and all pairs with the target, in its own environment; told the ranges",
    scored_by(marginals, "mbi"),
    experiments=("scoreboard",),
    # Once: it compiles anew for every tree of pairs, which takes ten seconds or more.
    grid={"seed": (0,), "epsilon": (1.0, 3.0, 0.3, 0.1)},
    style={"color": "goldenrod", "marker": "h"},
)
