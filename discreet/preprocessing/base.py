"""What the private transformers share: parameters, validation, and the order plan, ledger, release.

Also what a release is made from, checked rows, the public facts about them and a budget, and what it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet._common.docstrings import InheritedDocstring
from discreet._common.types import FloatArray
from discreet.data.invalid_rows import readable_table, without_entries
from discreet.data.loading import CheckedTable, Entries, load, load_array
from discreet.data.public import Public, clip_columns, public_facts
from discreet.data.rows import Rows
from discreet.data.validation import is_neutral, validate_features
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.random.pickling import NoGeneratorInPickles
from discreet.privacy.release import ReleasePlan


@dataclass(frozen=True, eq=False)
class Released:
    """Numbers that were released, one per column, with their guarantee.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        The released numbers.
    guarantee : Guarantee
        What is promised about them.
    weighted_ : bool
        Whether sample weights were given.
    """

    values: FloatArray
    guarantee: Guarantee
    weighted_: bool = False

    @property
    def event(self) -> Any:
        return self.guarantee.event


def facts_of(
    data: Rows,
    bounds: Any,
    feature_names: Any = None,
    booleans: Any = None,
    *,
    epsilon: Any,
    delta: Any,
    relation: Any,
    public_n: Any,
    neutral: Any = False,
) -> tuple[Public, Budget]:
    """What is public about validated rows, and the budget that goes with their number."""
    facts = {"relation": relation, "public_n": public_n, "booleans": booleans, "neutral": neutral}
    public = public_facts(data, bounds=bounds, feature_names=feature_names, **facts)
    return public, budget_from(epsilon, delta, public.rows)


def rows_and_facts(
    X: Any,
    bounds: Any,
    sample_weight: Any,
    door: Callable[..., CheckedTable] = load_array,
    invalid_rows: str = "error",
    **promised: Any,
) -> tuple[CheckedTable, Public, Budget]:
    """A raw table with declared bounds, validated, and its facts; `promised` are the last arguments of `facts_of`.

    What needs only sums over the rows passes the door `load`: X may then be a Dask table or a `pyarrow.dataset`.
    """
    if bounds is None:
        raise ValueError("bounds is missing; pass (low, high), for example from PrivateBounds.")
    table = door(X, metadata={"sample_weight": sample_weight}, invalid_rows=invalid_rows)
    public, budget = facts_of(table.rows, bounds, table.names, table.booleans, neutral=table.neutral, **promised)
    public.complete_bounds(table.names)
    return table, public, budget


def marked_rows(X: Any, check: Callable[[Any], Any], gaps: bool = False) -> Any:
    """A table to transform, with NaN in all entries of rows that cannot be read; infinity where NaN is a gap."""
    table, readable = readable_table(X, gaps)
    return without_entries(check(without_entries(table, ~readable)), ~readable, math.inf if gaps else math.nan)


NEEDS_MEMORY = (
    "{name} needs all rows in memory; PrivateScaler, PrivateBounds and private_means take tables on Dask or in Parquet "
    "files."
)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateTransformer(
    InheritedDocstring, NoGeneratorInPickles, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    """Base class of the private transformers: the parameters and attributes that they share.

    Use one of its subclasses, `PrivateScaler`, `PrivateBounds` or `PrivateQuantiles`.

    Guarantee: everything that `fit` learns from the rows is differentially private as `guarantee_` states.

    Parameters
    ----------
    epsilon : float or Budget, default=1.0
        Privacy budget of the fit; smaller is more private. `float("inf")` turns privacy off, with a warning. A
        `Budget` may state it as rho-zCDP or mu-GDP instead.
    delta : float, optional
        Failure probability of the promise; None means 1/n^2, 0 asks for pure epsilon-DP.
    relation : {"replace", "zero_out", "add_remove"}, default="replace"
        Which tables count as neighbours: one row replaced, one row turned into an empty one, or one row more or
        less. The number of rows is public, except under "add_remove".
    public_n : int, optional
        With relation="add_remove": a public estimate of the number of rows.
    invalid_rows : {"error", "neutral"}, default="error"
        What becomes of a row that cannot be read, one with NaN or text where a number belongs: "error" refuses the
        table, "neutral" counts it as an empty row, which adds nothing. `transform` then makes NaN of all its entries,
        by which the next step knows it.
    ledger : Ledger or str, optional
        Where the cost of the fit is booked before any row is used; a `Ledger` or its address. A fit that the
        budget of the data set does not cover is refused. Needs `dataset`.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    random_state : int, optional
        None draws cryptographically secure noise. A seed makes the run reproducible, and whoever knows it can
        remove the noise: for tests only, with a warning. A NumPy generator is used to draw a seed. `guarantee_.leaks`
        then names it, and a ledger refuses the fit unless it was made with `allow_seeded=True`.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is promised about everything that the fit released.
    weighted_ : bool
        Whether rows had weights: `fit` was given `sample_weight`, or `invalid_rows` is "neutral".
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X was a table whose column names are all strings.
    """

    epsilon: Any = 1.0
    delta: Any = None
    relation: Any = "replace"
    public_n: Any = None
    invalid_rows: Any = "error"
    ledger: Any = None
    dataset: Any = None
    random_state: Any = None

    _has_guarantee: ClassVar[bool] = True  # `is_private` knows it by this before the fit
    _needs_sums_only: ClassVar[bool] = False  # whether rows on workers will do, which give sums only
    # Whether columns of type bool have the bounds 0 and 1.
    _types_bound: ClassVar[bool] = True
    _entries: ClassVar[Entries] = "numbers"  # what can be read

    # As for the estimators: a weight must lie in [0, 1], so it cannot equal a repeated row.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None}

    def fit(self, X: Any, y: Any = None, **metadata: Any) -> Self:
        """Learn from the rows privately.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The private rows; finite numbers. `PrivateScaler` and `PrivateBounds` take Dask frames and arrays as well.
        y : None
            Ignored; here because pipelines pass it.
        sample_weight : array of shape (n_samples,), optional
            Weights between 0 and 1, passed by name. They are as private as the rows. Larger weights are refused: a
            row may not count more than once.

        Returns
        -------
        self
            The fitted transformer itself.

        Guarantee: everything learned is differentially private as `guarantee_` states; the ledger, if there
        is one, grants the cost before anything is computed from the rows.
        """
        check = partial(self._validated, reset=True)
        refusal = None if self._needs_sums_only else NEEDS_MEMORY.format(name=type(self).__name__)
        reading: dict[str, Any] = {"invalid_rows": self.invalid_rows, "entries": self._entries}
        table = load(X, metadata=metadata, estimator=self, memory_only=refusal, check=check, **reading)
        data = table.rows
        booleans = table.booleans if hasattr(self, "bounds") and self._types_bound else None
        promised = {name: getattr(self, name) for name in ("epsilon", "delta", "relation", "public_n")}
        promised["neutral"] = table.neutral
        plan = self._plan(*facts_of(data, getattr(self, "bounds", None), table.names, booleans, **promised))
        with plan.booked(type(self).__name__, self.ledger, self.dataset, self.random_state) as booking:
            self._learn(plan, data, booking.rng)
        self.weighted_ = table.weighted
        self.guarantee_: Guarantee = booking.guarantee
        return self

    def plan(self, n_samples: int, n_features: int, sparse: bool = False, feature_names: Any = None) -> ReleasePlan:
        """Return what `fit` would release from a table of this size, and its `event`. No data is needed.

        Parameters
        ----------
        n_samples, n_features : int
            Number of rows and of columns.
        sparse : bool, default=False
            Whether the table would be sparse.
        feature_names : sequence of str, optional
            Names of the columns, for bounds by name; by default those of the last fit.

        Returns
        -------
        ReleasePlan
            Its `event` is the cost.
        """
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        facts = {"relation": self.relation, "bounds": getattr(self, "bounds", None), "public_n": self.public_n}
        facts["neutral"] = is_neutral(self.invalid_rows)
        public = Public.of(n_samples, n_features, sparse=sparse, feature_names=names, **facts)
        return self._plan(public, budget_from(self.epsilon, self.delta, public.rows))

    def _plan(self, public: Public, budget: Budget) -> ReleasePlan:
        """Decide from public facts what will be released."""
        raise NotImplementedError

    def _learn(self, plan: ReleasePlan, data: Any, rng: RandomGenerator) -> None:
        """Release what was planned and store it in attributes that end in _."""
        raise NotImplementedError

    def _validated(self, X: Any, reset: bool) -> Any:
        if not reset:
            check_is_fitted(self, "guarantee_")
            if is_neutral(self.invalid_rows):
                return marked_rows(X, self._checked_columns)
        return self._checked_columns(X, reset)

    def _checked_columns(self, X: Any, reset: bool = False) -> Any:
        return validate_features(self, X, reset=reset, sparse=self.__sklearn_tags__().input_tags.sparse)

    @staticmethod
    def _clipped(X: Any, low: FloatArray, high: FloatArray) -> Any:
        """Entries outside the learned or declared ranges are treated as the nearest end."""
        if sp.issparse(X) and ((low > 0.0) | (high < 0.0)).any():
            raise ValueError("X is sparse, but a range excludes 0, the value of entries that are not stored.")
        return clip_columns(X, low, high)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags
