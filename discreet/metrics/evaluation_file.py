"""Private evaluations as JSON files: what was released, for which model, and what it cost.

A file is read as strictly as a model file: its guarantee must be proved by its event, and its verdict is made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discreet._common.checks import number_in
from discreet._common.codec import Amount, built, read
from discreet._common.json_file import read_json_file, write_json_file
from discreet.metrics.record import CLIPPED, FORMAT, NAMES, Evaluation
from discreet.metrics.released_sums import NoisySums, Part

Noise = Literal["Gaussian", "Laplace"]
SETTINGS = ("least_probability", "edges", "limits_of_the_target", CLIPPED)


def save_evaluation(evaluation: Evaluation, path: str | Path, overwrite: bool = True) -> None:
    """Write a private evaluation to a JSON file, with its own cost.

    Guarantee: the file holds only what the evaluation's guarantee covers and what was declared as public.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returned.
    path : str or Path
        Where to write.
    overwrite : bool, default=True
        Whether a file that exists may be replaced; else it is a FileExistsError.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Ridge
    >>> from discreet.metrics import evaluate, load_evaluation, save_evaluation
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2))
    >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X[:1000], X[:1000, 0])
    >>> found = evaluate(model, X[1000:], X[1000:, 0], epsilon=0.5)
    >>> save_evaluation(found, "evaluation.json")
    >>> load_evaluation("evaluation.json")["r2"] == found["r2"]
    True
    """
    write_json_file(path, evaluation.to_dict(), overwrite)


def load_evaluation(path: str | Path) -> Evaluation:
    """Return the evaluation of a file that `save_evaluation` or `discreet evaluate` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Evaluation
        With its guarantee, which is proved again.

    Raises
    ------
    ValueError
        The file is no evaluation, or is damaged; the message says what is wrong.

    Examples
    --------
    See `save_evaluation`.
    """
    return read_json_file(path, from_dict, f"{path} is not an evaluation of discreet")


def from_dict(content: Any) -> Evaluation:
    """Rebuild what `Evaluation.to_dict` wrote; anything unexpected is a ValueError, KeyError or TypeError."""
    fields = FORMAT.body(content)
    law, public = (read(kind, fields.pop(name), name) for kind, name in ((Noise, "noise"), (bool, "rows_are_public")))
    released = _released(fields["released"], law == "Laplace", float(fields["rows"]) if public else None)
    found = built(Evaluation, fields | {"released": released}, "the evaluation")
    if not set(found.figures) <= set(NAMES) or not set(found.settings) <= set(SETTINGS):
        raise ValueError(f"its figures must have names among {', '.join(NAMES)}, its settings {', '.join(SETTINGS)}.")
    for name, value in found.settings.items():
        read(list[float] if isinstance(value, list) else float, value, name)
    number_in("confidence", found.confidence, 0.0, 1.0, above=True)
    if not found.figures or [len(line) for line in found.confusion] != [len(found.classes)] * len(found.classes):
        raise ValueError("its figures or its confusion matrix are not complete.")
    return found


@dataclass(frozen=True)
class _Part:
    """What was released for one part."""

    values: list[float]
    noise_std: Amount


def _released(content: Any, laplace: bool, rows: float | None) -> NoisySums:
    found: dict[str, _Part] = read(Mapping[str, _Part], content, "released")
    if not all(part.values for part in found.values()):
        raise ValueError("its release has a part with no number.")
    parts = tuple(Part(name, len(part.values) if len(part.values) > 1 else 0) for name, part in found.items())
    values = np.concatenate([part.values for part in found.values()])
    deviations = np.concatenate([np.full(len(part.values), part.noise_std) for part in found.values()])
    return NoisySums(parts, values, deviations, laplace, rows)
