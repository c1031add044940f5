"""What compiled loops know of a loss: a number, for those that all loops have, or functions of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from types import FunctionType
from typing import Any
from uuid import uuid4

SQUARED, LOGISTIC, HUBER, SMOOTHED_HINGE, MULTINOMIAL = range(5)


@dataclass(frozen=True, eq=False)
class CompiledForms:
    """A loss of one margin as functions of numbers, which Numba compiles into the loops of solvers.

    Each is a plain function of a module, without arguments bound to it. Solvers refuse a loss without the form that
    their loop needs; those which can call the methods of the loss do so.

    Parameters
    ----------
    slope : function
        slope(parameter, margin, y): the derivative of one row's loss.
    curvature : function, optional
        curvature(parameter, margin, y): the second derivative, the larger one at a kink.
    proximal_slope : function, optional
        proximal_slope(parameter, margin, y, stiffness): the solution s of s = slope(margin - stiffness * s). By default
        it is computed from slope and curvature.
    tensor_slope : function, optional
        tensor_slope(parameter, margins, y): the slopes of all rows as PyTorch tensors, for rows on a GPU.
    """

    slope: Callable[..., Any] | None = None
    curvature: Callable[..., Any] | None = None
    proximal_slope: Callable[..., Any] | None = None
    tensor_slope: Callable[..., Any] | None = None
    key: str = field(init=False, repr=False)
    """Compiled loops are kept on disk under this name, which changes whenever a function may have changed."""

    def __post_init__(self) -> None:
        for form in FORMS:
            if not isinstance(getattr(self, form), FunctionType | None):
                raise ValueError(f"{form} must be a plain function; got {getattr(self, form)!r}.")
        compiled = (self.slope, self.curvature, self.proximal_slope)
        object.__setattr__(self, "key", "-".join(_version(function) for function in compiled))

    @property
    def names(self) -> frozenset[str]:
        """The forms that there are."""
        names = {form for form in FORMS if getattr(self, form) is not None}
        return frozenset(names | ({"proximal_slope"} if {"slope", "curvature"} <= names else set()))


FORMS = tuple(form.name for form in fields(CompiledForms) if form.init)


def _version(function: Callable[..., Any] | None) -> str:
    if function is None:
        return ""
    code = function.__code__
    if function.__closure__ or function.__defaults__ or not os.path.exists(code.co_filename):
        return uuid4().hex  # a file does not say what it computes: it is compiled anew in every process
    stat = os.stat(code.co_filename)
    content = (code.co_filename, stat.st_mtime_ns, stat.st_size, code.co_qualname, code.co_firstlineno, code.co_code)
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


# Which forms the loops have of losses with a number.
NUMBERED: dict[object, frozenset[str]] = {MULTINOMIAL: frozenset({"slope"})}
NUMBERED |= dict.fromkeys((SQUARED, LOGISTIC, HUBER, SMOOTHED_HINGE), frozenset(FORMS))
