"""A grid search whose choice is private: candidates are compared by noisy scores, and everything is paid for."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, train_test_split

from discreet._common.types import FloatArray
from discreet.model_selection.search import (
    PrivateSearch,
    RowScore,
    TableShape,
    check_event,
    check_searchable,
    plan_search,
)
from discreet.privacy.mechanisms import bounded_fractions
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan


@dataclass(eq=False, repr=False)
class PrivateGridSearch(PrivateSearch):
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

    param_grid: Any
    _: KW_ONLY
    search_share: float = 0.5

    def _plan(self, shape: TableShape) -> ReleasePlan:
        models = [clone(self.estimator).set_params(**settings) for settings in self._candidates()]
        return plan_search(models, shape, self._budget(shape.rows), self.search_share)

    def _search(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Any:
        scores = self._scores(plan, X, y, weight, rng)
        # A selection among runs of one place each is the exponential mechanism on the candidates.
        chosen, _ = plan.selection.choose(rng, -scores, np.ones(scores.size, dtype=np.int64), bounded_fractions(1))
        self.best_index_, self.best_params_ = chosen, self._candidates()[chosen]
        passed = {} if weight is None else {"sample_weight": weight}
        return self._fitted(plan.finals[chosen], self.best_params_, rng, X, y, passed)

    def _scores(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> FloatArray:
        """The exact score of every candidate on the held-out rows; a row adds a number in [0, 1] to each."""
        weights = np.ones(len(y)) if weight is None else weight
        seed = int(rng.integers(2**31, 1)[0])
        # By position: no row decides where another row goes.
        X_fit, X_out, y_fit, y_out, w_fit, w_out = train_test_split(
            X, y, weights, test_size=plan.held_out, random_state=seed
        )
        passed = {} if weight is None else {"sample_weight": w_fit}
        score = RowScore.of(self.estimator, "accuracy" if is_classifier(self.estimator) else "neg_mean_absolute_error")
        models = (
            self._fitted(trial, settings, rng, X_fit, y_fit, passed)
            for settings, trial in zip(self._candidates(), plan.trials, strict=True)
        )
        return np.array([score.total(model, X_out, y_out, w_out) for model in models])

    def _fitted(
        self, plan: Any, settings: dict[str, Any], rng: RandomGenerator, X: Any, y: Any, passed: dict[str, Any]
    ) -> Any:
        """A candidate that was fitted by its plan."""
        model = self._model(settings, plan.budget, plan.public.rows, rng).fit(X, y, **passed)
        check_event(model, plan)
        return model

    def _candidates(self) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))

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
