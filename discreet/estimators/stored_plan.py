"""What a model file keeps of a fit beside the coefficients: the released scaling, and what its plan was made from.

Certificates need both: the scaling says in which columns the solver worked, the plan how much noise it added. All of it
was released or is public: the scaling is covered by the guarantee of the model (docs/guarantees/scales.md), the
rest is the shape of the table and a digest of the plan, which sees no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.codec import Count, Size, checked, declared, plain
from discreet._common.types import FloatArray
from discreet.data.public import Public, declared_bounds
from discreet.estimators.fitting import plan_fit, public_for
from discreet.problem.column_scaling import ColumnScaling

if TYPE_CHECKING:
    from discreet.solvers import Plan

# What decides how long planning takes; a file may hold any number.
COUNTS, MOST_STEPS = ("steps", "passes", "anchors", "inner", "epochs", "rounds"), 10_000
TARGET = ("target_low", "target_high", "target_shift", "target_scale")
VECTORS = ("shift", "scale", "second_moment", "frozen")


@dataclass(frozen=True)
class PlanFacts:
    """The public facts from which the plan of a fit can be made again, and its digest."""

    rows: Size
    sparse: bool
    stored: bool
    digest: str
    booleans: tuple[Count, ...] = ()  # places of the columns whose bounds follow from their type
    persons: bool = False


def write_scaling(estimator: Any, classifier: bool) -> dict[str, Any] | None:
    """The scaling of a fitted model as JSON values, without the ranges, which the file holds already."""
    if not hasattr(estimator, "scaling_") or has_exact_target_bounds(estimator):  # read from a file that lacks it
        return None
    scaling = estimator.scaling_
    names = VECTORS + (() if classifier else TARGET)
    found = {name: plain(getattr(scaling, name)) for name in names}
    if not classifier and np.isfinite(scaling.target_noise):  # infinite: the shift is not a measured mean
        found["target_noise"] = float(scaling.target_noise)
    return found | ({"log_target": True} if scaling.log_target else {})


def read_scaling(content: Any, ranges: tuple[FloatArray, FloatArray], classifier: bool) -> ColumnScaling:
    """What `write_scaling` wrote; anything else is a ValueError."""
    needed = VECTORS + (() if classifier else TARGET)
    hints, _ = declared(ColumnScaling)
    found = checked({name: hints[name] for name in (*needed, "target_noise", "log_target")}, needed, content, "scaling")
    for name in VECTORS:
        if found[name].shape != ranges[0].shape:
            raise ValueError(f"its scaling needs one entry per column as {name}.")
    scaling = ColumnScaling(*ranges, **found)
    with np.errstate(divide="ignore", over="ignore"):
        usable = (scaling.scale > 0.0).all() and np.isfinite(1.0 / scaling.scale).all()
    if not usable or not (scaling.second_moment >= 0.0).all() or not scaling.target_scale > 0.0:
        raise ValueError("its scaling has a scale or a second moment out of range.")
    return scaling


def plan_facts(estimator: Any) -> PlanFacts | None:
    """From which facts the plan of a fit can be made again, and its digest; None where that is not possible."""
    plan = getattr(estimator, "plan_", None)
    if plan is None:
        return getattr(estimator, "_plan_facts", None)
    public = plan.public
    read = isinstance(estimator.bounds, str) or has_exact_target_bounds(estimator)
    if read or public.table is not None:  # the plan depends on what the file does not hold
        return None
    booleans = tuple(_booleans(estimator, public))
    return PlanFacts(public.rows, public.sparse, public.stored, plan.digest.hex(), booleans, bool(public.persons))


def _booleans(estimator: Any, public: Public) -> list[int]:
    """The places of the columns whose bounds follow from their type; the parameters do not tell them."""
    if public.low is None or public.high is None:
        return []
    declared = declared_bounds(estimator.bounds, public.columns, getattr(estimator, "feature_names_in_", None))
    if declared is None:
        return np.flatnonzero(public.declared).tolist()
    return np.flatnonzero(public.declared & ~(np.isfinite(declared[0]) & np.isfinite(declared[1]))).tolist()


def plan_of(estimator: Any) -> Plan:
    """Return the plan of a fitted model; that of a loaded one is made again and compared with the one that was run.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Fitted, or from a model file.

    Returns
    -------
    Plan
        What was decided before any row was read.

    Raises
    ------
    ValueError
        The plan cannot be made again exactly: the file does not say from what, a parameter was changed after the fit,
        or this version of discreet plans differently.
    """
    plan = getattr(estimator, "plan_", None)
    if plan is not None:
        return plan
    facts = getattr(estimator, "_plan_facts", None)
    if facts is None:
        raise ValueError("the model file does not say how its fit was planned; save the fitted model again.")
    classes = len(getattr(estimator, "classes_", (0, 1)))
    try:
        plan = _planned_again(estimator, facts, classes)
    except (ValueError, TypeError, ArithmeticError) as error:  # what a file holds may be of any size and type
        raise ValueError(f"the plan of this model cannot be made again: {error}") from error
    if plan.digest.hex() != facts.digest:
        raise ValueError(
            "the plan of this model cannot be made again exactly: its parameters were changed after the fit, the fit "
            "was a stream, or another version of discreet planned it; fit and save it with this version."
        )
    return plan


def _planned_again(estimator: Any, facts: PlanFacts, classes: int) -> Plan:
    columns, booleans = estimator.n_features_in_, None
    for name in COUNTS:
        count = getattr(estimator.solver, name, None)
        if isinstance(count, (int, float)) and count > MOST_STEPS:
            raise ValueError(f"its solver has {name} = {count:g}; plans of models from files may have {MOST_STEPS:,}.")
    if facts.booleans:
        if max(facts.booleans) >= columns:
            raise ValueError("the booleans of its plan are not columns of the model.")
        booleans = np.zeros(columns, dtype=bool)
        booleans[list(facts.booleans)] = True
    shape: dict[str, Any] = {"sparse": facts.sparse, "stored": facts.stored, "persons": facts.persons}
    public = public_for(estimator, facts.rows, columns, booleans=booleans, **shape)
    return plan_fit(estimator, public, classes)


def has_exact_target_bounds(estimator: Any) -> bool:
    """Whether minimum and maximum of the target were read from the rows; the coefficients can do without them."""
    return isinstance(getattr(estimator, "y_bounds", None), str)
