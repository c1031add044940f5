"""Fitted models as JSON files: readable, safe to open, and exact to the last bit.

What is written is what was released, nothing else: no rows, no seed (it would remove the noise) and no address of a
ledger (it may hold a password). What a file cannot hold is refused when it is written, never left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet._common.checks import whole
from discreet._common.json_file import read_json_file
from discreet.data.schema import Schema
from discreet.estimators.names import CLASSIFIERS, REGRESSORS
from discreet.estimators.parameters_file import numbers, plain, read_parameters, write_parameters
from discreet.estimators.stored_plan import read_plan, read_scaling, write_plan, write_scaling

if TYPE_CHECKING:
    from discreet.estimators import PrivateLinearModel

LARGEST_CLASSES = 2**26  # bytes
LARGEST_MARGIN = 1e300  # differences of margins must not overflow either
FORMAT = "discreet model"
VERSION = 2  # 1 lacked `weighted`, and parameters that did not fit into it were left out


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
    text = json.dumps(to_dict(estimator, schema), indent=1, allow_nan=False)
    with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text + "\n")


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
    return read_json_file(path, from_dict, f"{path} is not a model of discreet")


def to_dict(estimator: Any, schema: Schema | None = None) -> dict[str, Any]:
    """A fitted estimator as JSON values; infinities become texts."""
    import numpy as np
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "coef_")
    name = type(estimator).__name__
    if name not in CLASSIFIERS + REGRESSORS:
        raise ValueError(f"{name} is not an estimator of discreet, so it cannot be written to a model file.")
    classes = getattr(estimator, "classes_", None)
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "version": VERSION,
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
        "plan": write_plan(estimator),
        "guarantee": estimator.guarantee_.to_dict(),
        "schema": None if schema is None else schema.to_dict(),
    }


def from_dict(content: Any) -> ModelFile:
    """Rebuild what `to_dict` wrote; anything unexpected is a ValueError, KeyError or TypeError."""
    import numpy as np

    from discreet import estimators
    from discreet.privacy.guarantee import Guarantee

    _check_format(content)
    if content["estimator"] not in CLASSIFIERS + REGRESSORS:
        raise ValueError(f"unknown estimator {content['estimator']!r}.")
    kind = getattr(estimators, content["estimator"])
    estimator: Any = kind(**read_parameters(content["parameters"], kind))
    columns = whole("columns", content["columns"], least=1)
    if (content["classes"] is not None) != (content["estimator"] in CLASSIFIERS):
        raise ValueError("classes belong to classifiers, and only to them.")
    if content["classes"] is not None:
        estimator.classes_ = _read_classes(content["classes"])
    estimator.coef_ = _floats("coef", content["coef"])
    intercept = _floats("intercept", content["intercept"])
    estimator.intercept_ = intercept if intercept.ndim else float(intercept)
    estimator.ranges_ = _read_ranges(content["ranges"], columns)
    estimator.n_features_in_, estimator.n_iter_ = columns, whole("iterations", content["iterations"], least=0)
    estimator.weighted_ = content["weighted"]
    if not isinstance(estimator.weighted_, bool):
        raise ValueError(f"weighted must be true or false; got {estimator.weighted_!r}.")
    _read_fit(estimator, content)
    names = content["feature_names"]
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its feature_names are not a list of texts.")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.guarantee_ = Guarantee.from_dict(content["guarantee"])
    _check_shapes(estimator, content["estimator"] in CLASSIFIERS)
    _check_size(estimator)
    schema = None if content["schema"] is None else Schema.from_dict(content["schema"])
    if schema is not None and len(schema.feature_names) != columns:
        raise ValueError(f"its schema has {len(schema.feature_names)} features, its model {columns}.")
    return ModelFile(estimator, schema)


def _read_fit(estimator: Any, content: Any) -> None:
    """What certificates need of the fit; files of earlier versions lack it, and predict all the same."""
    scaling, plan = content.get("scaling"), content.get("plan")
    estimator._scaling = (
        None if scaling is None else read_scaling(scaling, estimator.ranges_, content["estimator"] in CLASSIFIERS)
    )
    estimator._plan_facts = None if plan is None else read_plan(plan)


def _check_format(content: Any) -> None:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f'it lacks "format": "{FORMAT}".')
    version = content["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"its version is {version!r}.")
    if version != VERSION:
        advice = "upgrade discreet" if version > VERSION else "read it with the discreet that wrote it"
        raise ValueError(f"it has version {version}, this discreet reads version {VERSION}; {advice}.")


def _read_classes(content: Any) -> Any:
    import numpy as np

    dtype, values = np.dtype(content["dtype"]), content["values"]
    if dtype.kind not in "biufUO" or not all(isinstance(v, (str, int, float, bool)) for v in values):
        raise ValueError("its classes are neither numbers nor texts.")
    if dtype.itemsize * len(values) > LARGEST_CLASSES:
        raise ValueError(f"its classes would take {dtype.itemsize * len(values)} bytes.")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values or len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
        raise ValueError(f"its classes are not at least two different values of type {dtype} in order.")
    return classes


def _read_ranges(content: Any, columns: int) -> tuple[Any, Any]:
    import numpy as np

    low, high = (_floats("ranges", numbers(content[end]), finite=False) for end in ("low", "high"))
    if low.shape != (columns,) or high.shape != (columns,) or not (low <= high).all():
        raise ValueError("its ranges do not fit its columns.")
    if (low == np.inf).any() or (high == -np.inf).any():
        raise ValueError("its ranges hold no number.")
    return low, high


def _floats(name: str, content: Any, finite: bool = True) -> Any:
    """An array of floats; texts and truth values do not count as numbers."""
    import numpy as np

    values = np.array(content)
    if values.dtype.kind not in "iuf" or (finite and not np.isfinite(values).all()):
        raise ValueError(f"its {name} is not finite, or holds other values than numbers.")
    return values.astype(np.float64)


def _check_size(estimator: Any) -> None:
    """Refuse coefficients with which a prediction from entries within the ranges could overflow."""
    import numpy as np

    reach = np.max(
        [np.abs(end) for end in estimator.ranges_], axis=0, where=np.isfinite(estimator.ranges_), initial=1.0
    )
    with np.errstate(over="ignore"):
        largest = np.abs(estimator.coef_) @ reach + np.abs(estimator.intercept_)
    if not (largest < LARGEST_MARGIN).all():
        raise ValueError(f"its coef or intercept is so large that predictions could exceed {LARGEST_MARGIN:g}.")


def _check_shapes(estimator: Any, classifier: bool) -> None:
    import numpy as np

    columns = estimator.n_features_in_
    outputs = max(len(estimator.classes_), 2) - 1 if classifier else 1
    rows = outputs if outputs == 1 else outputs + 1
    wanted = ((rows, columns), (rows,)) if classifier else ((columns,), ())
    if (np.shape(estimator.coef_), np.shape(estimator.intercept_)) != wanted:
        raise ValueError("its coef, intercept and classes do not fit together.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and len(names) != columns:
        raise ValueError("its feature_names do not fit its columns.")
