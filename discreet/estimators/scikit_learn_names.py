"""What to write here for the parameters of scikit-learn's estimators that do not exist, or mean something else.

docs/from_scikit_learn.md shows the same for readers.
"""

from __future__ import annotations

import functools
import inspect
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

_ITERATIONS = (
    "leave it out: the plan fixes the number of steps before any row is read; to set it, write for example "
    "solver=discreet.solvers.GradientDescent(steps=50)"
)
_STOPPING = "leave it out: stopping when the rows say so would not be private, so the steps are fixed in advance"
_SEARCH = "use discreet.model_selection.PrivateSearchCV, which pays for the choice"
HINTS = {
    "C": "write alpha=1 / (C * n_samples): the penalty here is alpha times a norm beside the mean loss",
    "max_iter": _ITERATIONS,
    "n_iter": _ITERATIONS,
    "tol": _STOPPING,
    "early_stopping": _STOPPING,
    "class_weight": "leave it out and pass fit(X, y, sample_weight=w), one weight between 0 and 1 for each row",
    "multi_class": "leave it out: more than two classes are modelled one against the rest",
    "penalty": "write alpha for the strength, or use LogisticRegression(penalty=...), Ridge, Lasso or ElasticNet",
    "loss": "the loss is that of the class: LogisticRegression, LinearSVC, Ridge, HuberRegressor or PoissonRegressor",
    "dual": 'leave it out, or write solver="dual-cd" for dual coordinate descent',
    "warm_start": "write start=PublicModel.of(model) with a public model; a model of the same rows has its own cost",
    "intercept_scaling": "leave it out: the intercept is never penalised",
    "normalize": "leave it out: the columns are scaled privately",
    "precompute": "leave it out",
    "copy_X": "leave it out: X is never changed",
    "positive": "write constraint=discreet.problem.Box(0.0, float('inf'))",
    "selection": 'write solver=discreet.solvers.CoordinateDescent(sampling="cyclic") or "uniform"',
    "l1_ratio": "use ElasticNet, or LogisticRegression(penalty='elasticnet')",
    "alphas": _SEARCH,
    "Cs": _SEARCH,
    "cv": _SEARCH,
    "seed": "write random_state, for tests only: whoever knows a seed can remove the noise",
    "budget": "write epsilon, which takes a number or a Budget",
    "eps": "write epsilon",
    "data_norm": "write bounds=(low, high): the public limits of the columns",
}


def explains_parameters(cls: T) -> T:
    """Make the constructor of an estimator answer unknown parameters with what to write instead.

    So does `set_params`, which refuses by a ValueError as in scikit-learn. The signature stays that of the constructor,
    which is what `get_params` and `clone` read.
    """
    original: Any = vars(cls)["__init__"]  # made by dataclass
    names = list(inspect.signature(original).parameters)[1:]

    @functools.wraps(original)
    def construct(self: Any, *args: Any, **parameters: Any) -> None:
        if args:
            raise TypeError(f"{cls.__name__} takes its parameters by name, such as epsilon=1.0.")
        for name in parameters:
            if name not in names:
                raise TypeError(unknown_parameter(type(self).__name__, name, names))
        original(self, **parameters)

    inherited: Any = cls.set_params  # type: ignore[attr-defined]

    @functools.wraps(inherited)
    def set_params(self: Any, **parameters: Any) -> Any:
        for name in parameters:
            if "__" not in name and name not in names:
                raise ValueError(unknown_parameter(type(self).__name__, name, names))
        return inherited(self, **parameters)

    setattr(cls, "__init__", construct)  # noqa: B010 - mypy refuses to assign to a method
    setattr(cls, "set_params", set_params)  # noqa: B010
    return cls


def unknown_parameter(estimator: str, name: str, names: list[str]) -> str:
    """One line about a parameter that an estimator does not have."""
    if name in HINTS:
        return f"{estimator} has no parameter {name!r}: {HINTS[name]}."
    close = get_close_matches(name, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(names)}."
    return f"{estimator} has no parameter {name!r}{meant}"
