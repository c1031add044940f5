"""What a private evaluation says: figures with confidence limits, as values, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet._common.codec import Format, Size, plain
from discreet._common.text import table
from discreet.metrics.curves import CalibrationBin, RocPoint
from discreet.metrics.intervals import Limits
from discreet.metrics.released_sums import NoisySums
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
    "mean_squared_error": "mean squared error",
    "mean_squared_error_of_constant": "  of the mean",
    "mean_squared_error_gain": "  better than that by",
}
CLIPPED = "errors_clipped_to"  # the setting, if errors are clipped
FORMAT = Format("discreet evaluation", 1, derived=("beats_constant",))
VERDICTS = {
    True: "The model predicts better than a constant.",
    False: "The model predicts worse than a constant.",
    None: "Whether the model predicts better than a constant cannot be told from this release.",
}
GAINS = ("accuracy_gain", "log_loss_gain", "mean_squared_error_gain")


@dataclass(frozen=True, eq=False)
class Evaluation:
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

    def __getitem__(self, name: str) -> Limits:
        if name not in self.figures:
            raise KeyError(f"this evaluation has no figure {name!r}; it has {', '.join(self.figures)}.")
        return self.figures[name]

    @property
    def beats_constant(self) -> bool | None:
        """Whether the model predicts better than a constant; None where this release cannot tell.

        Clipped errors are those of the model alone, not of the constant: they can show that it is worse, never better.
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
        }

    def __str__(self) -> str:
        lines = [["figure", "value", "from", "to", "noise (std)"]]
        lines += [[NAMES[name], *limits.texts()] for name, limits in self.figures.items()]
        confusion = ["", self._confusion_text()] if self.confusion else []
        return "\n".join([table(lines), *confusion, "", *self.notes(), *self._cost()])

    def _confusion_text(self) -> str:
        labels = [str(label) for label in self.classes]
        lines = [["shares of all rows", *(f"predicted {label}" for label in labels)]]
        for label, line in zip(labels, self.confusion, strict=True):
            lines.append([f"label {label}", *(f"{c.value:.3f} ({c.low:.3f} to {c.high:.3f})" for c in line)])
        return table(lines)

    def notes(self) -> list[str]:
        """Return what the figures tell, and on which public choices they depend."""
        notes = [
            VERDICTS[self.beats_constant],
            f"Each line holds with probability {self.confidence:g} for the population that the rows were drawn from: "
            "noise and draw of the rows are both in it.",
        ]
        notes += [f"{name.replace('_', ' ')}: {value}" for name, value in self.settings.items() if name != "edges"]
        if CLIPPED in self.settings:
            notes.append("The model's errors are clipped and those of the mean are not: without that, R2 may be lower.")
        return notes

    def _cost(self) -> list[str]:
        promise = self.guarantee
        notes = [f"Cost: epsilon {promise.epsilon:g}, delta {promise.delta:g}, relation {promise.relation}."]
        if promise.leaks or not promise.is_private:
            notes.append("NOT PRIVATE: " + ", ".join(promise.leaks or ("no noise was added",)) + ".")
        return notes
