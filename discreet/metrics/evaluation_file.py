"""Private evaluations as JSON files: what was released, for which model, and what it cost.

A file is read as strictly as a model file: its guarantee must be proved by its event, and its verdict is made again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.checks import number_in, real_number, whole
from discreet._common.json_file import read_json_file
from discreet.metrics.curves import CalibrationBin, RocPoint
from discreet.metrics.intervals import Limits
from discreet.metrics.record import CLIPPED, FORMAT, NAMES, VERSION, Evaluation
from discreet.metrics.released_sums import NoisySums, Part
from discreet.privacy.guarantee import Guarantee

NOISES = ("Gaussian", "Laplace")
UNKNOWN = {"value": math.nan, "low": -math.inf, "high": math.inf, "noise_std": math.inf}  # what null stands for


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
    text = json.dumps(evaluation.to_dict(), indent=1, allow_nan=False)
    with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text + "\n")


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
    _check_format(content)
    rows = whole("rows", content["rows"], least=1)
    figures = {name: _limits(name, limits) for name, limits in _mapping("figures", content["figures"], NAMES).items()}
    classes = _classes(content["classes"])
    confusion = tuple(tuple(_limits("confusion", cell) for cell in line) for line in content["confusion"])
    if not figures or [len(line) for line in confusion] != [len(classes)] * len(classes):
        raise ValueError("its figures or its confusion matrix are not complete.")
    return Evaluation(
        figures=figures,
        classes=classes,
        confusion=confusion,
        roc=tuple(_roc_point(point) for point in content["roc"]),
        calibration=tuple(_calibration_bin(each) for each in content["calibration"]),
        confidence=number_in("confidence", content["confidence"], 0.0, 1.0, above=True),
        rows=rows,
        settings=_settings(content["settings"]),
        released=_released(content, float(rows) if _flag(content, "rows_are_public") else None),
        guarantee=Guarantee.from_dict(content["guarantee"]),
        weighted=_flag(content, "weighted"),
        model=_text(content, "model"),
    )


def _check_format(content: Any) -> None:
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ValueError(f'it lacks "format": "{FORMAT}".')
    if type(content["version"]) is not int or content["version"] != VERSION:
        raise ValueError(f"it has version {content['version']!r}; this discreet reads version {VERSION}.")


def _limits(name: str, content: Any) -> Limits:
    if not isinstance(content, Mapping) or set(content) != set(UNKNOWN):
        raise ValueError(f"its {name} must have the fields {', '.join(UNKNOWN)}.")
    found = {key: UNKNOWN[key] if number is None else real_number(key, number) for key, number in content.items()}
    if found["low"] > found["high"] or found["noise_std"] < 0.0:
        raise ValueError(f"the limits of its {name} are not in order.")
    return Limits(**found)


def _roc_point(content: Any) -> RocPoint:
    rates = (_limits(name, content[name]) for name in ("false_positive_rate", "true_positive_rate"))
    return RocPoint(real_number("threshold", content["threshold"]), *rates)


def _calibration_bin(content: Any) -> CalibrationBin:
    low, high, rows = (real_number(name, content[name]) for name in ("low", "high", "rows"))
    return CalibrationBin(low, high, rows, _limits("observed", content["observed"]))


def _classes(content: Any) -> tuple[Any, ...]:
    if not isinstance(content, list) or not all(isinstance(label, (str, int, float, bool)) for label in content):
        raise ValueError("its classes are neither numbers nor texts.")
    return tuple(content)


def _settings(content: Any) -> dict[str, Any]:
    known = _mapping("settings", content, ("least_probability", "edges", "limits_of_the_target", CLIPPED))
    for name, value in known.items():
        for number in value if isinstance(value, list) else [value]:
            real_number(name, number)
    return known


def _released(content: Any, rows: float | None) -> NoisySums:
    if content["noise"] not in NOISES:
        raise ValueError(f"its noise must be one of {', '.join(NOISES)}; got {content['noise']!r}.")
    parts, values, deviations = [], [], []
    for name, part in content["released"].items():
        numbers = [real_number(name, number) for number in part["values"]]
        if not numbers:
            raise ValueError(f"its release has no number for {name}.")
        parts.append(Part(name, len(numbers) if len(numbers) > 1 else 0))
        values += numbers
        deviations += [number_in("noise_std", part["noise_std"], 0.0)] * len(numbers)
    return NoisySums(tuple(parts), np.array(values), np.array(deviations), content["noise"] == "Laplace", rows)


def _mapping(name: str, content: Any, allowed: Any) -> dict[str, Any]:
    if not isinstance(content, Mapping) or not set(content) <= set(allowed):
        raise ValueError(f"its {name} must have names among {', '.join(allowed)}.")
    return dict(content)


def _flag(content: Any, name: str) -> bool:
    flag: bool = content[name]
    if not isinstance(flag, bool):
        raise ValueError(f"{name} must be true or false; got {flag!r}.")
    return flag


def _text(content: Any, name: str) -> str:
    text: str = content[name]
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a text; got {text!r}.")
    return text
