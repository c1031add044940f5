"""A random search whose cost hardly grows with the number of trials: only the best of them is released."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.model_selection.candidates import Candidates
from discreet.model_selection.row_scores import RowScore
from discreet.model_selection.search import PrivateSearch, check_searchable
from discreet.model_selection.search_plan import TableShape
from discreet.model_selection.trials import Parts, Split, Trial, TrialsTerms, check_fit, plan_trials
from discreet.privacy.mechanisms import RandomTrials, bounded_fractions
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import ReleasePlan


@dataclass(eq=False, repr=False)
class PrivateSearchCV(PrivateSearch):
    """Random search over settings with differential privacy, by scikit-learn's interface of `RandomizedSearchCV`.

    Some rows are held out. A trial draws settings at random, fits them privately on the other rows and scores the model
    on the rows held out, with noise. The number of trials is random as well, and only the trial with the best noisy
    score is released: its settings, its score and its model. Twenty trials then cost little more than one.

    Guarantee: `best_estimator_`, `best_params_`, `best_score_` and `cv_results_` are differentially private together,
    as `guarantee_` states. Who learns how many trials there were, for example from the time that `fit` took or from the
    times in a ledger, is outside the guarantee. Trials show no progress, whatever `verbose` is.

    Parameters
    ----------
    estimator : estimator of discreet
        A classifier with `classes=[...]`, or a regressor with `y_bounds=(low, high)`. Its own `epsilon` and `delta` are
        replaced.
    param_distributions : dict or list of dict
        Lists of settings, or distributions with a method `rvs`, by parameter. Every trial draws anew, so that settings
        may repeat.
    n_iter : int, default=10
        Expected number of trials, at least 2.
    scoring : str, optional
        "neg_brier_score" (the default where there are probabilities) or "accuracy"; for regressors
        "neg_mean_absolute_error" (the default) or "neg_mean_squared_error", with errors limited to the width of
        `y_bounds`.
    refit : bool, default=False
        False keeps the model of the best trial, which costs nothing more. True fits the best settings again on all
        rows, with what the search leaves of the budget.
    search_share : float, default=0.2
        With `refit=True`: the share of the budget for the search.
    held_out : float, default=0.2
        Share of the rows that the trials are scored on.
    trials_law : {"geometric", "logarithmic"}, default="geometric"
        The law of the number of trials. The logarithmic law costs a little less and has one trial more often.
    epsilon : float or Budget, default=1.0
        Privacy budget of the whole, in (epsilon, delta) or pure epsilon. Other budgets are refused: the best of
        several trials has no useful cost in Gaussian or zero-concentrated DP.
    delta : float, optional
        Failure probability of the promise; None means 1/n^2, 0 asks for pure epsilon-DP.
    ledger : Ledger or str, optional
        Where the cost of the whole is booked, once, before any row is used. Needs `dataset`.
    dataset : str, optional
        The name under which the data set's budget was opened in the ledger.
    random_state : int, optional
        None draws cryptographically secure noise. A seed makes the run reproducible, and whoever knows it can
        remove the noise: for tests only, with a warning. `guarantee_.leaks` then names it, and a ledger refuses the
        search unless it was made with `allow_seeded=True`.

    Attributes
    ----------
    best_params_ : dict
        The settings of the best trial.
    best_score_ : float
        Its noisy score, in the unit of `scoring`; larger is better. The best of several noisy scores is somewhat too
        good.
    best_estimator_ : estimator
        Its model, or with `refit=True` that of its settings on all rows; its `guarantee_` is that of the search, and
        the only promise to quote: `best_estimator_.plan_` is the plan of this one fit and promises too much.
    best_index_ : int
        0: the only trial that is released.
    cv_results_ : dict
        The released trial alone, in scikit-learn's form.
    plan_ : ReleasePlan
        What was fixed before any row was read.
    guarantee_ : Guarantee
        What is promised for the winner, its settings and its score together.
    weighted_ : bool
        Whether `fit` was given `sample_weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression
    >>> from discreet.model_selection import PrivateSearchCV
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
    >>> model = LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1])
    >>> search = PrivateSearchCV(model, {"alpha": [1e-5, 1.0, 100.0]}, n_iter=20, epsilon=1.0, random_state=0)
    >>> search = search.fit(X, (X[:, 0] > 0.0).astype(int))  # a seed, so that this example repeats; leave it out
    >>> search.best_params_, search.guarantee_.epsilon
    ({'alpha': 1e-05}, 1.0)
    """

    param_distributions: Any
    _: KW_ONLY
    n_iter: int = 10
    scoring: str | None = None
    refit: bool = False
    search_share: float = 0.2
    trials_law: str = "geometric"

    def _plan(self, shape: TableShape) -> ReleasePlan:
        candidates = Candidates.of(self.param_distributions)
        listed = candidates.listed()
        models = [clone(self.estimator).set_params(**settings) for settings in listed or [{}]]
        inputs = [clone(self.estimator).set_params(**settings) for settings in candidates.public_inputs()]
        trials, budget = RandomTrials.expecting(self.n_iter, self.trials_law), self._budget(shape.rows)
        share, stated = self.search_share if self.refit else None, shape.public_inputs(inputs)
        return plan_trials(models, shape, TrialsTerms(budget, trials, share, listed is not None, stated))

    def _search(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Any:
        best = self._best_trial(plan, X, y, weight, rng)
        for warning in best.warnings:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.best_params_, self.best_score_, self.best_index_ = best.settings, best.score, 0
        self.cv_results_ = _results(best.settings, best.score)
        if plan.final is None:
            return best.model
        passed = {} if weight is None else {"sample_weight": weight}
        model = self._model(best.settings, plan.final, plan.rows, rng).fit(X, y, **passed)
        check_fit(plan, model, plan.final, plan.final_events)
        return model

    def _best_trial(self, plan: ReleasePlan, X: Any, y: Any, weight: Any, rng: RandomGenerator) -> Trial:
        """The trial with the best noisy score; ties go to the first. Nothing of the others is kept."""
        split = Split.draw(plan, len(y), Relation(self.estimator.relation), rng)
        parts = split.parts(X, y, np.ones(len(y)) if weight is None else weight)
        best: Trial | None = None
        for _ in range(plan.trials.draw(rng)):
            trial = self._trial(plan, parts, weight is not None, rng)
            best = trial if best is None or trial.score > best.score else best
        assert best is not None  # there is at least one trial
        return best

    def _trial(self, plan: ReleasePlan, parts: Parts, weighted: bool, rng: RandomGenerator) -> Trial:
        """Draw settings, fit them, score the model with noise: costs one of `plan.trial_events`."""
        settings = Candidates.of(self.param_distributions).draw(rng)
        # The number of progress bars or of warnings would tell that of the trials.
        model = self._model(settings, plan.trial, plan.rows - plan.held_out, rng).set_params(verbose=0)
        passed = {"sample_weight": parts.weight_fit} if weighted else {}
        score = RowScore.of(self.estimator, self.scoring)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(parts.X_fit, parts.y_fit, **passed)
        check_fit(plan, model, plan.trial, plan.trial_events)
        with warnings.catch_warnings():  # never shown: such a warning would come from the exact rows held out
            warnings.simplefilter("ignore")
            exact = np.array([score.total(model, parts.X_out, parts.y_out, parts.weight_out)])
        noisy = float(plan.score.release(rng, exact, bounded_fractions(1))[0])
        return Trial(settings, model, score.in_units(noisy / plan.held_out), tuple(caught))

    def _check(self) -> None:
        """Refuse what the proof does not cover."""
        check_searchable(self.estimator, Candidates.of(self.param_distributions).varied, "param_distributions")
        RowScore.of(self.estimator, self.scoring)
        budget = self._budget(2)
        if budget.is_infinite or budget.kind in ("gdp", "zcdp"):
            raise ValueError(
                f"a private search cannot keep the budget {budget}; use a finite epsilon with delta, or pure epsilon. "
                "The best of a random number of trials has no useful cost in Gaussian or zero-concentrated DP."
            )
        if isinstance(self.n_iter, bool) or not isinstance(self.n_iter, int | np.integer) or self.n_iter < 2:
            raise ValueError(f"n_iter must be a whole number of at least 2; got {self.n_iter!r}.")
        if self.refit and not 0.0 < self.search_share < 1.0:
            raise ValueError(f"search_share must lie between 0 and 1; got {self.search_share!r}.")


def _results(settings: dict[str, Any], score: float) -> dict[str, Any]:
    """The released trial as scikit-learn's `cv_results_`."""
    columns = {f"param_{name}": np.array([value], dtype=object) for name, value in settings.items()}
    return columns | {
        "params": [settings],
        "mean_test_score": np.array([score]),
        "rank_test_score": np.array([1], dtype=np.int32),
    }
