"""What a person asks of a fit with intervals, under the names that statsmodels uses.

Everything is computed from released numbers: `infer` makes it of them, a model file holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats
from scipy.special import expit

from discreet._common.blocks import Groups, Shown, as_text
from discreet._common.checks import number_in
from discreet._common.codec import UsualArray
from discreet._common.types import FloatArray
from discreet.inference.covariance import covariance, to_user
from discreet.inference.estimate import estimate
from discreet.inference.refusals import why_refused

if TYPE_CHECKING:
    from discreet.inference.released import InferenceReleases
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem

Link = Literal["identity", "logit", "log"]
INTERCEPT = "(intercept)"
RATIOS: dict[str, str] = {"logit": "odds ratio", "log": "rate ratio"}
LARGEST_LOG = 700.0  # exp of more overflows


@dataclass(frozen=True)
class WaldTest:
    """Whether several combinations of coefficients are what a hypothesis says.

    Attributes
    ----------
    statistic : float
        Distributed as chi-squared if the hypothesis is true.
    df : int
        Its degrees of freedom.
    pvalue : float
    """

    statistic: float
    df: int
    pvalue: float


@dataclass(frozen=True, eq=False)
class Predictions:
    """Means that a model predicts, with their standard errors; from `Inference.get_prediction`.

    The intervals are for the mean of all people with these columns, not for a single one.
    """

    linear: FloatArray
    se_linear: FloatArray
    link: Link

    @property
    def predicted_mean(self) -> FloatArray:
        return _mean(self.linear, self.link)

    @property
    def se_mean(self) -> FloatArray:
        """The standard error of the mean; by the delta method where there is a link."""
        mean = self.predicted_mean
        slope = {"identity": np.ones_like(mean), "logit": mean * (1.0 - mean), "log": mean}[self.link]
        return np.asarray(slope * self.se_linear)

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Lower and upper end of each mean, of shape (n_samples, 2)."""
        half = _quantile(alpha) * self.se_linear
        return _mean(np.column_stack([self.linear - half, self.linear + half]), self.link)


@dataclass(frozen=True, eq=False)
class Inference(Shown):
    """Estimates with standard errors that hold sampling and privacy noise, in the user's columns and units.

    Where no interval can be given, all numbers are NaN and `reasons` says why.

    Guarantee: computed from what the fit released; its guarantee covers it.

    Attributes
    ----------
    names : tuple of str
        The columns, and "(intercept)" last.
    link : {"identity", "logit", "log"}
    robust : bool
        Whether the coefficients are those of Huber's kind (`inference="robust"`); else they are the usual ones.
    valid : bool
    reasons : tuple of str
        Why no interval can be given, one sentence each.
    """

    names: tuple[str, ...]
    link: Link
    robust: bool
    reasons: tuple[str, ...] = ()
    estimate: UsualArray | None = None
    covariance: UsualArray | None = None
    sampling: UsualArray | None = None

    def __post_init__(self) -> None:
        size, given = len(self.names), (self.estimate, self.covariance, self.sampling)
        missing = [part is None for part in given]
        if any(missing) != bool(self.reasons) or any(missing) != all(missing):
            raise ValueError("an inference holds either estimates or the reasons why there are none.")
        if self.estimate is None or self.covariance is None or self.sampling is None:
            return
        square = (size, size)
        if self.estimate.shape != (size,) or self.covariance.shape != square or self.sampling.shape != square:
            raise ValueError("names, estimate and covariance of an inference do not fit together.")
        if not (np.diag(self.covariance) >= np.diag(self.sampling)).all() or not (np.diag(self.sampling) >= 0.0).all():
            raise ValueError("variances of an inference must not be negative, nor smaller than without noise.")

    @property
    def valid(self) -> bool:
        return self.estimate is not None

    @property
    def params(self) -> FloatArray:
        """The estimates. They are not shrunk, and `coef_` is: an interval belongs to these."""
        return np.full(len(self.names), np.nan) if self.estimate is None else self.estimate.copy()

    def cov_params(self) -> FloatArray:
        """Return the covariance of the estimates."""
        size = len(self.names)
        return np.full((size, size), np.nan) if self.covariance is None else self.covariance.copy()

    @property
    def bse(self) -> FloatArray:
        """The standard errors."""
        return np.sqrt(np.diag(self.cov_params()))

    @property
    def noise(self) -> FloatArray:
        """How much of each standard error is privacy noise: bse^2 is noise^2 plus the variance of sampling."""
        if self.sampling is None:
            return np.full(len(self.names), np.nan)
        return np.sqrt(np.maximum(np.diag(self.cov_params() - self.sampling), 0.0))

    @property
    def tvalues(self) -> FloatArray:
        """Estimates over standard errors; normal if the coefficient is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.params / self.bse

    @property
    def pvalues(self) -> FloatArray:
        """Two-sided."""
        return np.asarray(2.0 * stats.norm.sf(np.abs(self.tvalues)))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return lower and upper ends of intervals that hold with probability 1 - alpha, of shape (terms, 2)."""
        half = _quantile(alpha) * self.bse
        return np.column_stack([self.params - half, self.params + half])

    def ratios(self, alpha: float = 0.05) -> FloatArray:
        """Return odds ratios (logistic) or rate ratios (log link) per unit with their ends, of shape (terms, 3)."""
        if self.link not in RATIOS:
            raise ValueError("ratios are for logistic regression and for a log link; use params and conf_int.")
        logs = np.column_stack([self.params, self.conf_int(alpha)])
        return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))

    def wald_test(self, hypothesis: Any, value: Any = 0.0) -> WaldTest:
        """Test several coefficients together.

        Parameters
        ----------
        hypothesis : sequence of str, or array of shape (combinations, terms)
            The names of coefficients, or combinations of all of them, the intercept last.
        value : float or array of shape (combinations,), default=0.0
            What they are under the hypothesis.

        Returns
        -------
        WaldTest
        """
        rows = self._combinations(hypothesis)
        between = rows @ self.cov_params() @ rows.T
        gap = rows @ self.params - np.broadcast_to(np.asarray(value, dtype=np.float64), (rows.shape[0],))
        if not self.valid:
            return WaldTest(np.nan, rows.shape[0], np.nan)
        df = int(np.linalg.matrix_rank(between, hermitian=True))
        statistic = float(gap @ np.linalg.pinv(between, hermitian=True) @ gap)
        return WaldTest(statistic, df, float(stats.chi2.sf(statistic, max(df, 1))))

    def _combinations(self, hypothesis: Any) -> FloatArray:
        if isinstance(hypothesis, str):
            hypothesis = [hypothesis]
        named = isinstance(hypothesis, Sequence) and all(isinstance(name, str) for name in hypothesis)
        if not named:
            rows = np.atleast_2d(np.asarray(hypothesis, dtype=np.float64))
            if rows.shape[1] != len(self.names) or not np.isfinite(rows).all():
                raise ValueError(f"a hypothesis has one finite number for each of {len(self.names)} terms.")
            return rows
        unknown = [name for name in hypothesis if name not in self.names]
        if unknown or not hypothesis:
            raise ValueError(f"there is no coefficient {unknown[0]!r}." if unknown else "name a coefficient.")
        return np.eye(len(self.names))[[self.names.index(name) for name in hypothesis]]

    def get_prediction(self, X: Any) -> Predictions:
        """Return predicted means with intervals; entries are used as they are, in the order of the columns."""
        table = np.atleast_2d(np.asarray(X, dtype=np.float64))
        columns = len(self.names) - self.has_intercept
        if table.ndim != 2 or table.shape[1] != columns:
            raise ValueError(f"X must have {columns} columns; got shape {table.shape}.")
        if self.has_intercept:
            table = np.column_stack([table, np.ones(table.shape[0])])
        variances = np.einsum("ij,jk,ik->i", table, self.cov_params(), table)
        return Predictions(table @ self.params, np.sqrt(np.maximum(variances, 0.0)), self.link)

    @property
    def has_intercept(self) -> bool:
        return self.names[-1] == INTERCEPT

    def to_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Return everything as JSON values; what is not given is None."""
        columns = {
            "estimate": self.params, "standard_error": self.bse, "privacy_noise": self.noise, "z": self.tvalues,
            "p_value": self.pvalues, "low": self.conf_int(alpha)[:, 0], "high": self.conf_int(alpha)[:, 1],
        }  # fmt: skip
        if self.link in RATIOS:
            ratio, low, high = self.ratios(alpha).T
            columns |= {"ratio": ratio, "ratio_low": low, "ratio_high": high}
        terms = [
            {"name": name} | {what: _number(values[k]) for what, values in columns.items()}
            for k, name in enumerate(self.names)
        ]
        told = {"valid": self.valid, "reasons": list(self.reasons), "alpha": alpha, "link": self.link}
        return told | {"robust": self.robust, "terms": terms}

    def blocks(self, alpha: float = 0.05, shown: Sequence[int] | None = None) -> Groups:
        """Return the table as blocks; with `shown`, of these columns and the intercept."""
        from discreet.inference.text import blocks_of

        return blocks_of(self, alpha, shown)

    def text(self, alpha: float = 0.05) -> str:
        """Return the table for people."""
        return as_text(self.blocks(alpha))

    def _blocks(self) -> Groups:
        return self.blocks()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _quantile(alpha: float) -> float:
    return float(stats.norm.ppf(1.0 - 0.5 * number_in("alpha", alpha, 1e-12, 1.0 - 1e-12)))


def _mean(linear: FloatArray, link: Link) -> FloatArray:
    if link == "identity":
        return linear
    return expit(linear) if link == "logit" else np.exp(np.clip(linear, -LARGEST_LOG, LARGEST_LOG))


def infer(
    released: InferenceReleases, problem: Problem, scaling: ColumnScaling, rows: int, names: Sequence[str], robust: bool
) -> Inference:
    """The estimates and their covariance in the user's columns, or why there are none.

    `rows` is the public number of rows by which released sums were divided, `names` those of the columns.
    """
    loss, intercept = problem.loss, problem.fit_intercept
    names = tuple(map(str, names)) + (INTERCEPT,) * intercept
    link: Link = "logit" if loss.classification else "log" if loss.log_link else "identity"
    found = estimate(released, loss, intercept)
    reasons = why_refused(released, found, loss, scaling, names)
    matrix, shift = to_user(scaling, intercept)
    errors = covariance(released, found, rows).mapped(matrix)
    params = matrix @ found.w + shift
    if not reasons and not all(np.isfinite(part).all() for part in (params, errors.total, errors.sampling)):
        reasons = ("No interval can be given: numbers are out of range; rescale the columns.",)
    if reasons:
        return Inference(names, link, robust, reasons)
    return Inference(names, link, robust, (), params, errors.total, errors.sampling)
