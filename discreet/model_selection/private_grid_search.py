"""A grid search whose choice is private: candidates are compared by noisy scores, and everything is paid for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid, train_test_split

from discreet._common.types import BoolArray, FloatArray
from discreet.data.validation import only_weights, refuse_groups
from discreet.estimators.fitting import load_for
from discreet.model_selection.row_scores import RowScore
from discreet.model_selection.search_plan import TableShape, plan_search
from discreet.model_selection.winner import Winner, check_event, check_searchable
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.mechanisms import bounded_fractions
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.random.pickling import NoGeneratorInPickles
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan


class PrivateGridSearch(Winner, NoGeneratorInPickles, MetaEstimatorMixin, BaseEstimator):
    """Search over a grid of settings with differential privacy.

    Some rows are held out. Every candidate is fitted privately on the others and scored on those held out; one is
    selected by the exponential mechanism, and fitted again on all rows. A score is the number of held-out rows that are
    predicted right, or for regressors the sum of 1 - |error| / (width of `y_bounds`), each at least 0.

    Guarantee: the winner and the choice are differentially private together, as `guarantee_` states. The scores are
    not released.

    Parameters
    ----------
    estimator : estimator of discreet
        A classifier with `classes=[...]`, or a regressor with `y_bounds=(low, high)`. Its own `epsilon` and `delta` are
        replaced.
    param_grid : dict or list of dict
        Lists of settings by parameter, as in scikit-learn. Few candidates are better: all are paid for.
    epsilon : float or Budget, default=1.0
        Privacy budget of the whole: all fits and the choice. Budgets in Gaussian DP are refused, because a selection
        has no cost in that definition.
    delta : float, optional
        Failure probability of the promise; None means 1/n^2, 0 asks for pure epsilon-DP.
    search_share : float, default=0.5
        Share of the budget for the search; the rest is for the fit of the winner.
    held_out : float, default=0.2
        Share of the rows that the candidates are scored on.
    ledger : Ledger or str, optional
        Where the cost of the whole is booked before any row is used. Needs `dataset`.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    random_state : int, optional
        None draws cryptographically secure noise. A seed makes the run reproducible, and whoever knows it can
        remove the noise: for tests only, with a warning. `guarantee_.leaks` then names it, and a ledger refuses the
        search unless it was made with `allow_seeded=True`.

    Attributes
    ----------
    best_params_ : dict
        The selected settings.
    best_index_ : int
        The number of the selected candidate.
    best_estimator_ : estimator
        The model with these settings, fitted on all rows; its `guarantee_` is that of the search, and the only promise
        to quote: `best_estimator_.plan_` is the plan of this one fit.
    plan_ : ReleasePlan
        What was fixed before any row was read.
    guarantee_ : Guarantee
        What is promised for the winner and the choice together.
    weighted_ : bool
        Whether `fit` was given `sample_weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.model_selection import PrivateGridSearch
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1])
    >>> search = PrivateGridSearch(model, {"alpha": [1e-5, 10.0]}, epsilon=1.0, random_state=0)
    >>> search = search.fit(X, (X[:, 0] > 0.0).astype(int))  # a seed, so that this example repeats; leave it out
    >>> search.best_params_, search.guarantee_.epsilon
    ({'alpha': 1e-05}, 1.0)
    """

    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None}

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: Any = 1.0,
        delta: float | None = None,
        search_share: float = 0.5,
        held_out: float = 0.2,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.search_share = search_share
        self.held_out = held_out
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def plan(self, n_samples: int, n_features: int, sparse: bool = False, feature_names: Any = None) -> ReleasePlan:
        """Return what `fit` would do with a table of this size, and its `guarantee`. No data is needed.

        Parameters
        ----------
        n_samples, n_features : int
            Number of rows and of columns.
        sparse : bool, default=False
            Whether the table would be sparse.
        feature_names : sequence of str, optional
            Names of the columns, for bounds by name.

        Returns
        -------
        ReleasePlan
            Its `guarantee` is that of the whole, its `trials` and `finals` are the plans of the fits.
        """
        return self._planned(n_samples, n_features, sparse, feature_names)

    def _planned(
        self, n_samples: int, n_features: int, sparse: bool, names: Any, booleans: BoolArray | None = None
    ) -> ReleasePlan:
        """The same, where it is known as well which columns have the type bool."""
        self._check()
        held_out = round(self.held_out * n_samples)
        if not 0 < held_out < n_samples:
            raise ValueError(
                f"held_out={self.held_out} of {n_samples} rows leaves no row to fit on, or none to score on."
            )
        classes = len(self.estimator.classes) if is_classifier(self.estimator) else 2
        shape = TableShape(n_samples, held_out, n_features, classes, sparse, names, booleans)
        models = [clone(self.estimator).set_params(**settings) for settings in self._candidates()]
        return plan_search(models, shape, self._budget(n_samples), self.search_share)

    def fit(self, X: Any, y: Any, **metadata: Any) -> Self:
        """Search, and fit the winner on all rows.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The private rows; finite numbers.
        y : array of shape (n_samples,)
            The target.
        sample_weight : array of shape (n_samples,), optional
            Weights between 0 and 1, passed by name; as private as the rows.

        Returns
        -------
        self
            The fitted search itself.

        Guarantee: what is learned is differentially private as `guarantee_` states; the ledger, if there is one,
        grants the cost before anything is computed from the rows.
        """
        self._check()
        refuse_groups(metadata, "a private search")
        table = load_for(clone(self.estimator), X, y, metadata)  # refuses a bad table before any release
        rows = table.rows
        plan = self._planned(rows.rows, rows.columns, rows.sparse, table.names, table.booleans)
        with plan.booked(type(self).__name__, self.ledger, self.dataset, self.random_state) as booking:
            rng = booking.rng
            scores = self._scores(plan, X, y, only_weights(metadata, rows.rows), rng)
            # A selection among runs of one place each is the exponential mechanism on the candidates.
            chosen, _ = plan.selection.choose(rng, -scores, np.ones(scores.size, dtype=np.int64), bounded_fractions(1))
            self.best_index_, self.best_params_ = chosen, self._candidates()[chosen]
            self.best_estimator_ = self._model(plan.finals[chosen], self.best_params_, rng).fit(X, y, **metadata)
        check_event(self.best_estimator_, plan.finals[chosen])
        self.plan_, self.weighted_ = plan, "sample_weight" in metadata
        whole, own = plan.guarantee, self.best_estimator_.guarantee_
        self.best_estimator_.guarantee_ = replace(whole, leaks=own.leaks, release=booking.record)
        self.best_estimator_.set_params(random_state=None)  # a generator belongs to this run, not to the model
        return self

    def _scores(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> FloatArray:
        """The exact score of every candidate on the held-out rows; a row adds a number in [0, 1] to each."""
        weights = np.ones(len(y)) if weight is None else weight
        seed = int(rng.integers(2**31, 1)[0])
        # By position: no row decides where another row goes.
        X_fit, X_out, y_fit, y_out, w_fit, w_out = train_test_split(
            X, y, weights, test_size=plan.held_out, random_state=seed
        )
        passed = {} if weight is None else {"sample_weight": w_fit}
        scores = []
        for settings, trial in zip(self._candidates(), plan.trials, strict=True):
            model = self._model(trial, settings, rng).fit(X_fit, y_fit, **passed)
            check_event(model, trial)
            scores.append(self._row_score().total(model, X_out, y_out, w_out))
        return np.array(scores)

    def _model(self, plan: Any, settings: dict[str, Any], rng: RandomGenerator) -> Any:
        """A candidate with the budget of its plan; seeded runs share one generator, others draw their own keys."""
        state = None if self.random_state is None else rng
        return clone(self.estimator).set_params(**settings, epsilon=plan.budget, delta=None, random_state=state)

    def _row_score(self) -> RowScore:
        return RowScore.of(self.estimator, "accuracy" if is_classifier(self.estimator) else "neg_mean_absolute_error")

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))

    def _budget(self, rows: int) -> Budget:
        return budget_from(self.epsilon, self.delta, rows)

    def _check(self) -> None:
        """Refuse what the proof does not cover."""
        model = self.estimator
        check_searchable(model, {name for settings in self._candidates() for name in settings}, "param_grid")
        if Relation(model.relation) is Relation.ADD_REMOVE:
            raise ValueError("relation='add_remove': a row more or less would change who is held out; use 'replace'.")
        budget = self._budget(2)
        if budget.is_infinite or budget.kind == "gdp":
            raise ValueError(f"a private search cannot keep the budget {budget}; use a finite epsilon or rho.")
        if not 0.0 < self.search_share < 1.0:
            raise ValueError(f"search_share must lie between 0 and 1; got {self.search_share!r}.")
