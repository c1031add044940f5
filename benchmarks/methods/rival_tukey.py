"""TukeyEM (Amin et al., 2022): many least-squares fits and a draw of great depth among them; needs no ranges."""

from framework import Method
from rivals import tukey
from rivals.judge import scored_by

method = Method(
    "TukeyEM",
    "own code with a proof for replaced rows; numbers only; told nothing",
    scored_by(tukey.scores),
    experiments=("scoreboard",),
    refuses=lambda dataset: "for numbers to predict only" if dataset.classification else None,
    version=2,
    style={"color": "tab:pink", "marker": "D"},
)
