"""What a private evaluation says: figures with confidence limits, as values, as JSON files and as text.

A file is read as strictly as a model file: its guarantee must be proved by its event, and its verdict is made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discreet._common.blocks import Groups, Shown, Table, Text, numbers_of
from discreet._common.checks import number_in
from discreet._common.codec import Amount, Format, Size, built, plain, read, read_json_file, write_json_file
from discreet.metrics.classification import CalibrationBin, RocPoint
from discreet.metrics.released_sums import Limits, NoisySums, Part
from discreet.privacy.guarantee import Guarantee

NAMES = {
    "accuracy": "accuracy",
    "accuracy_of_constant": "  of the most frequent label",
    "accuracy_gain": "  better than that by",
    "log_loss": "log-loss",
    "log_loss_of_constant": "  of the best constant",
    "log_loss_gain": "  better than that by",
    "roc_auc": "area under the ROC curve",
    "r2": "R2",
    "d2": "D2",
    "mean_squared_error": "mean squared error",
    "mean_squared_error_of_constant": "  of the mean",
    "mean_squared_error_gain": "  better than that by",
    "mean_deviance": "mean deviance",
    "mean_deviance_of_constant": "  of the mean",
    "mean_deviance_gain": "  better than that by",
}
ERRORS = "errors_of_model_and_constant_clipped_to"  # the settings, if errors are clipped
DEVIANCES = "deviances_of_model_and_constant_clipped_to"
BEYOND = "share_of_rows_with_larger_errors_at_most"
CLIPPED = "errors_clipped_to"  # the same of earlier versions, where errors of the model alone were clipped
FORMAT = Format("discreet evaluation", 1, derived=("beats_constant",))
VERDICTS = {
    True: "The model predicts better than a constant.",
    False: "The model predicts worse than a constant.",
    None: "Whether the model predicts better than a constant cannot be told from this release.",
}
ALIKE = (
    "Errors of the model and of the mean are clipped alike. Larger errors than that count as that large, of either: a "
    "model that is far off for a few rows looks better for it, one that predicts far targets well looks worse."
)
SAME_ROWS = (
    "The model was trained on as many rows of the same data set of the ledger. If these are the rows it was trained "
    "on, the figures are too good."
)
GAINS = ("accuracy_gain", "log_loss_gain", "mean_squared_error_gain", "mean_deviance_gain")


@dataclass(frozen=True, eq=False)
class Evaluation(Shown):
    """Figures of a model on private rows, all computed from one private release.

    Limits are for the population that the rows were drawn from: they cover the noise and the random draw of the rows.

    Guarantee: everything here is private as `guarantee` states.

    Attributes
    ----------
    figures : mapping of str to Limits
        Each with `value`, `low`, `high` and `noise_std`, the standard deviation of the noise in the value. Each holds
        with probability `confidence`. `..._of_constant` is the figure of the best constant prediction, `..._gain` by
        how much the model is better than that.
    classes : tuple
        Labels of a classifier, in the order of `confusion`.
    confusion : tuple of tuples of Limits
        Shares of all rows by label (lines) and by prediction (columns). All hold together.
    roc : tuple of RocPoint
        With two classes: rates at fixed thresholds. All points hold together.
    calibration : tuple of CalibrationBin
        With two classes and probabilities: observed shares of the second label. All bins hold together.
    confidence : float
        The probability with which an interval holds.
    rows : int
        Number of rows; under "add_remove" the public estimate of it.
    settings : mapping
        Public choices on which the figures depend, such as the limits of the target.
    released : NoisySums
        What was released; everything else follows from it.
    guarantee : Guarantee
        What is promised about the rows of the evaluation.
    weighted : bool
        Whether `sample_weight` was given.
    model : str
        The `fingerprint` of the linear model that was evaluated; empty for pipelines.
    training_rows : bool
        Whether, by the ledger, the model was trained on as many rows of the same data set: these may be the same rows.

    Examples
    --------
    See `evaluate`.
    """

    figures: Mapping[str, Limits]
    classes: tuple[str | int | float | bool, ...]
    confusion: tuple[tuple[Limits, ...], ...]
    roc: tuple[RocPoint, ...]
    calibration: tuple[CalibrationBin, ...]
    confidence: float
    rows: Size
    settings: Mapping[str, Any]
    released: NoisySums
    guarantee: Guarantee
    weighted: bool = False
    model: str = ""
    training_rows: bool = False

    def __getitem__(self, name: str) -> Limits:
        if name not in self.figures:
            raise KeyError(f"this evaluation has no figure {name!r}; it has {', '.join(self.figures)}.")
        return self.figures[name]

    @property
    def beats_constant(self) -> bool | None:
        """Whether the model predicts better than a constant; None where this release cannot tell.

        In files of earlier versions only the model's errors may be clipped: then it can be worse, never better.
        """
        found = [self.figures[name] for name in GAINS if name in self.figures]
        if any(gain.low > 0.0 for gain in found):
            return None if CLIPPED in self.settings else True
        return False if all(gain.high < 0.0 for gain in found) else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; what is not known is null. `load_evaluation` reads it from a file."""
        return {
            **FORMAT.head,
            "model": self.model,
            "figures": plain(self.figures),
            "beats_constant": self.beats_constant,
            "classes": list(self.classes),
            "confusion": plain(self.confusion),
            "roc": plain(self.roc),
            "calibration": plain(self.calibration),
            "confidence": self.confidence,
            "rows": self.rows,
            "rows_are_public": self.released.rows is not None,
            "weighted": self.weighted,
            "settings": dict(self.settings),
            "noise": "Laplace" if self.released.laplace else "Gaussian",
            "released": self.released.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        } | ({"training_rows": True} if self.training_rows else {})

    def _blocks(self) -> Groups:
        header = ("figure", "value", "from", "to", "noise (std)")
        lines = tuple((NAMES[name], *limits.texts()) for name, limits in self.figures.items())
        figures = Table("", header, lines, numbers_of(header))
        notes = [Text(note) for note in (*self.notes(), *self._cost())]
        return [[figures], [self._confusion()] if self.confusion else [], notes]

    def _confusion(self) -> Table:
        labels = [str(label) for label in self.classes]
        header = ("shares of all rows", *(f"predicted {label}" for label in labels))
        lines = (
            (f"label {label}", *(f"{c.value:.3f} ({c.low:.3f} to {c.high:.3f})" for c in line))
            for label, line in zip(labels, self.confusion, strict=True)
        )
        return Table("", header, tuple(lines), numbers_of(header))

    def notes(self) -> list[str]:
        """Return what the figures tell, and on which public choices they depend."""
        notes = [
            VERDICTS[self.beats_constant],
            f"Each line holds with probability {self.confidence:g} for the population that the rows were drawn from: "
            "noise and draw of the rows are both in it.",
        ]
        notes += [f"{name.replace('_', ' ')}: {value}" for name, value in self.settings.items() if name != "edges"]
        if ERRORS in self.settings or DEVIANCES in self.settings:
            notes.append(ALIKE)
        if self.training_rows:
            notes.append(SAME_ROWS)
        if CLIPPED in self.settings:
            notes.append("The model's errors are clipped and those of the mean are not: without that, R2 may be lower.")
        return notes

    def _cost(self) -> list[str]:
        promise = self.guarantee
        notes = [f"Cost: epsilon {promise.epsilon:g}, delta {promise.delta:g}, relation {promise.relation}."]
        if promise.leaks or not promise.is_private:
            notes.append("NOT PRIVATE: " + ", ".join(promise.leaks or ("no noise was added",)) + ".")
        return notes


Noise = Literal["Gaussian", "Laplace"]
SETTINGS = ("least_probability", "edges", "limits_of_the_target", CLIPPED, ERRORS, DEVIANCES, BEYOND)


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
