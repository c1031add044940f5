"""Fitted models, their parameters included, as JSON files: readable, safe to open, and exact to the last bit.

What is written is what was released, nothing else: no rows, no seed (it would remove the noise) and no address of a
ledger (it may hold a password). Solvers and constraints of discreet are written by name with their settings. What a
file cannot hold is refused when it is written, never left out: a model that came back with another constraint or solver
would be another model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from discreet import __version__
from discreet._common import codec
from discreet._common.codec import Count, Format, Size, built, by_name, ends, from_name, numbers, plain, tuples, written
from discreet._common.types import FloatArray
from discreet.data.public_inputs import PublicModel
from discreet.data.schema import Schema
from discreet.estimators.names import CLASSIFIERS, REGRESSORS
from discreet.estimators.stored_plan import PlanFacts, plan_facts, read_scaling, write_scaling
from discreet.inference.results import Inference
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee
from discreet.problem.constraints import CONSTRAINTS, Constraint
from discreet.solvers import SOLVERS, Solver

if TYPE_CHECKING:
    from discreet.estimators import PrivateLinearModel

# Not written: a seed removes the noise, the address of a ledger may hold a password, and a public table may be large;
# that there was one is told by the guarantee.
SELDOM_WRITTEN = ("inference", "invalid_rows")  # at their default: earlier versions can read the file then
NEVER_WRITTEN = ("random_state", "ledger", "dataset", "verbose", "public_table")


def _named(kind: type, known: Mapping[str, Any], what: str) -> tuple[type, Any, Any]:
    """How an object of discreet is written and read: its name, and its settings."""
    return kind, partial(by_name, known=known, what=what), partial(from_name, known=known, what=what)


# What is more than numbers and texts: its class, and how its settings are written and read.
_OBJECTS: dict[str, tuple[type, Any, Any]] = {
    "budget": (Budget, Budget.to_dict, Budget.from_dict),
    "public_model": (PublicModel, PublicModel.to_dict, lambda settings: PublicModel(**settings)),
    "solver": _named(Solver, SOLVERS, "solver"),
    "constraint": _named(Constraint, CONSTRAINTS, "constraint"),
}
LARGEST_CLASSES = 2**26  # bytes
LARGEST_MARGIN = 1e300  # differences of margins must not overflow either
FORMAT = Format("discreet model", 2)  # 1 lacked `weighted`, and left out parameters that did not fit into it


def write_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON values; one that a file cannot hold is a ValueError."""
    usual = {field.name: field.default for field in fields(estimator)}
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in NEVER_WRITTEN}
    given = {name: value for name, value in given.items() if name not in SELDOM_WRITTEN or value != usual[name]}
    return {name: _write(name, value) for name, value in given.items()}


def read_parameters(content: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """What `write_parameters` wrote for an estimator of this kind; anything else is a ValueError."""
    unknown = sorted(set(content) - ({field.name for field in fields(kind)} - set(NEVER_WRITTEN)))
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}.")
    # A class may be called "inf"; everywhere else that text is a number.
    return {name: value if name == "classes" else _read(value) for name, value in content.items()}


def _write(name: str, value: Any) -> Any:
    try:
        content = json.loads(json.dumps(_as_json(name, value), allow_nan=False))
        # What is not a plain value must come back as what it was; bounds by name do not, as lists become tuples.
        if isinstance(content, dict) and name != "bounds" and _read(content) != value:
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} = {' '.join(repr(value).split())} cannot be written to a model file, and a model without it would "
            f"be another one; pickle the model, or set_params({name}=...) to a value that numbers and texts can tell."
        ) from None
    return content


def _as_json(name: str, value: Any) -> Any:
    if name == "bounds" and isinstance(value, Mapping):
        if not all(isinstance(column, str) for column in value):
            raise ValueError("bounds by name need names that are texts.")
        return {"columns": {column: _open_as_none(plain(pair)) for column, pair in value.items()}}
    if name == "bounds":
        return _open_as_none(plain(value))
    if name == "class_weight" and isinstance(value, Mapping):
        return {"class_weight": [[plain(label), plain(weight)] for label, weight in value.items()]}
    written = [{what: write(value)} for what, (kind, write, _) in _OBJECTS.items() if isinstance(value, kind)]
    return written[0] if written else plain(value)


def _open_as_none(value: Any) -> Any:
    """Bounds with NaN, which JSON does not have, written as None, which means the same."""
    if isinstance(value, list):
        return [_open_as_none(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _read(content: Any) -> Any:
    if not isinstance(content, dict):
        return numbers(content)
    what, settings = next(iter(content.items())) if len(content) == 1 else ("", {})
    if what == "class_weight":
        return dict(settings)
    if what == "columns" and isinstance(settings, dict):
        return {column: tuples(numbers(pair)) for column, pair in settings.items()}
    if what not in _OBJECTS:
        raise ValueError(
            f"a parameter is no budget, solver, constraint, public model or bounds by name: {sorted(content)}."
        )
    return _OBJECTS[what][2](settings)


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A fitted estimator and, if it was trained on a file, the schema that turns such files into numbers."""

    estimator: PrivateLinearModel
    schema: Schema | None = None


def save_model(
    estimator: PrivateLinearModel, path: str | Path, schema: Schema | None = None, overwrite: bool = True
) -> None:
    """Write a fitted estimator to a JSON file.

    Guarantee: the file holds only what the estimator's guarantee covers and what was declared as public.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Fitted.
    path : str or Path
        Where to write.
    schema : Schema, optional
        What is public about the columns; stored with the model, so that new tables are treated alike.
    overwrite : bool, default=True
        Whether a file that exists may be replaced; else it is a FileExistsError.

    Raises
    ------
    ValueError
        A parameter does not fit into a file: a solver or a constraint of another package, say.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Ridge, load_model, save_model
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0])
    >>> save_model(model, "model.json")
    >>> bool((load_model("model.json").predict(X) == model.predict(X)).all())
    True
    """
    codec.write_json_file(path, to_dict(estimator, schema), overwrite)


def load_model(path: str | Path) -> PrivateLinearModel:
    """Return the fitted estimator of a model file; it predicts what the saved one predicted, bit for bit.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` or `discreet fit` wrote.

    Returns
    -------
    PrivateLinearModel
        The fitted estimator, of the class that was saved.

    Raises
    ------
    ValueError
        The file is not a model written by this version of discreet; the message says what is wrong.

    Examples
    --------
    See `save_model`.
    """
    return read_model(path).estimator


def read_model(path: str | Path) -> ModelFile:
    """The estimator and the schema of a model file."""
    return codec.read_json_file(path, from_dict, f"{path} is not a model of discreet")


def to_dict(estimator: Any, schema: Schema | None = None) -> dict[str, Any]:
    """A fitted estimator as JSON values; infinities become texts."""
    name = type(estimator).__name__
    if hasattr(estimator, "steps"):
        raise ValueError("a model file holds a model alone: pickle the pipeline, or save its last step, pipeline[-1].")
    check_is_fitted(estimator, "coef_")
    if name not in CLASSIFIERS + REGRESSORS:
        raise ValueError(f"{name} is not an estimator of discreet, so it cannot be written to a model file.")
    classes = getattr(estimator, "classes_", None)
    names = getattr(estimator, "feature_names_in_", None)
    facts = plan_facts(estimator)
    return {
        **FORMAT.head,
        "library": __version__,
        "estimator": name,
        "parameters": write_parameters(estimator),
        "coef": plain(np.asarray(estimator.coef_)),
        "intercept": plain(estimator.intercept_),
        "classes": None if classes is None else {"dtype": classes.dtype.str, "values": plain(classes)},
        "columns": int(estimator.n_features_in_),
        "feature_names": None if names is None else [str(n) for n in names],
        "ranges": {"low": plain(estimator.ranges_[0]), "high": plain(estimator.ranges_[1])},
        "iterations": int(estimator.n_iter_),
        "weighted": bool(estimator.weighted_),
        "scaling": write_scaling(estimator, classifier=classes is not None),
        "plan": None if facts is None else written(facts, "booleans", "persons"),
        "guarantee": estimator.guarantee_.to_dict(),
        **({"inference": written(estimator.inference_)} if hasattr(estimator, "inference_") else {}),
        "schema": None if schema is None else schema.to_dict(),
    }


@dataclass(frozen=True)
class _Classes:
    """The labels of a classifier, and their type."""

    dtype: str
    values: list[str | int | float | bool]


@dataclass(frozen=True, eq=False)
class _Ranges:
    """Least and largest entry of each column."""

    low: Annotated[Any, ends]
    high: Annotated[Any, ends]


@dataclass(frozen=True, eq=False)
class _Content:
    """What a model file holds; files of earlier versions lack what has a default."""

    library: str
    estimator: str
    parameters: Mapping[str, Any]
    coef: FloatArray
    intercept: FloatArray
    classes: _Classes | None
    columns: Size
    feature_names: list[str] | None
    ranges: _Ranges
    iterations: Count
    weighted: bool
    guarantee: Guarantee
    schema: Schema | None
    scaling: Any = None
    plan: PlanFacts | None = None
    inference: Inference | None = None


def from_dict(content: Any) -> ModelFile:
    """Rebuild what `to_dict` wrote; anything unexpected is a ValueError, KeyError or TypeError."""
    from discreet import estimators

    found = built(_Content, FORMAT.body(content))
    if found.estimator not in CLASSIFIERS + REGRESSORS:
        raise ValueError(f"unknown estimator {found.estimator!r}.")
    kind, classifier = getattr(estimators, found.estimator), found.estimator in CLASSIFIERS
    estimator: Any = kind(**read_parameters(found.parameters, kind))
    if (found.classes is not None) != classifier:
        raise ValueError("classes belong to classifiers, and only to them.")
    if found.classes is not None:
        estimator.classes_ = _read_classes(found.classes)
    estimator.coef_ = found.coef
    estimator.intercept_ = found.intercept if found.intercept.ndim else float(found.intercept)
    estimator.ranges_ = _checked_ranges(found.ranges, found.columns)
    estimator.n_features_in_, estimator.n_iter_ = found.columns, found.iterations
    estimator.weighted_ = found.weighted
    # What certificates need of the fit.
    estimator._scaling = None if found.scaling is None else read_scaling(found.scaling, estimator.ranges_, classifier)
    estimator._plan_facts = found.plan
    if found.feature_names is not None:
        estimator.feature_names_in_ = np.array(found.feature_names, dtype=object)
    estimator.guarantee_ = found.guarantee
    estimator._inference = found.inference
    _check_shapes(estimator, classifier)
    _check_inference(estimator, found.inference, classifier)
    _check_size(estimator)
    if found.schema is not None and len(found.schema.feature_names) != found.columns:
        raise ValueError(f"its schema has {len(found.schema.feature_names)} features, its model {found.columns}.")
    return ModelFile(estimator, found.schema)


def _read_classes(content: _Classes) -> Any:
    dtype, values = np.dtype(content.dtype), content.values
    if dtype.kind not in "biufUO":
        raise ValueError("its classes are neither numbers nor texts.")
    if dtype.itemsize * len(values) > LARGEST_CLASSES:
        raise ValueError(f"its classes would take {dtype.itemsize * len(values)} bytes.")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values or len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
        raise ValueError(f"its classes are not at least two different values of type {dtype} in order.")
    return classes


def _checked_ranges(ranges: _Ranges, columns: int) -> tuple[Any, Any]:
    low, high = ranges.low, ranges.high
    if low.shape != (columns,) or high.shape != (columns,) or not (low <= high).all():
        raise ValueError("its ranges do not fit its columns.")
    if (low == np.inf).any() or (high == -np.inf).any():
        raise ValueError("its ranges hold no number.")
    return low, high


def _check_inference(estimator: Any, found: Inference | None, classifier: bool) -> None:
    if found is None:
        return
    link = "logit" if classifier else "log" if getattr(estimator, "_log_link", False) else "identity"
    names = len(found.names) - found.has_intercept
    if estimator.inference is False or found.link != link or names != estimator.n_features_in_:
        raise ValueError("its inference does not fit the model.")


def _check_size(estimator: Any) -> None:
    """Refuse coefficients with which a prediction from entries within the ranges could overflow."""
    reach = np.max(
        [np.abs(end) for end in estimator.ranges_], axis=0, where=np.isfinite(estimator.ranges_), initial=1.0
    )
    with np.errstate(over="ignore"):
        largest = np.abs(estimator.coef_) @ reach + np.abs(estimator.intercept_)
    if not (largest < LARGEST_MARGIN).all():
        raise ValueError(f"its coef or intercept is so large that predictions could exceed {LARGEST_MARGIN:g}.")


def _check_shapes(estimator: Any, classifier: bool) -> None:
    columns = estimator.n_features_in_
    outputs = max(len(estimator.classes_), 2) - 1 if classifier else 1
    rows = outputs if outputs == 1 else outputs + 1
    wanted = ((rows, columns), (rows,)) if classifier else ((columns,), ())
    if (np.shape(estimator.coef_), np.shape(estimator.intercept_)) != wanted:
        raise ValueError("its coef, intercept and classes do not fit together.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) != columns:
        raise ValueError("its feature_names do not fit its columns.")
