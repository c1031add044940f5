"""What every loss offers, so that a solver need not know which one it minimises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from discreet.kernels.forms import NUMBERED, CompiledForms
from discreet.problem.arrays import Array, Values


class Loss(ABC):
    """A convex function of a margin and a target; it never sees the features.

    A value too large for a float is returned as infinity, never as NaN. A loss for real targets depends on
    margin - target alone: solvers centre the target and give the shift back to the intercept. One with a log link is
    told targets in units of their mean, whose logarithm is given back.

    Attributes
    ----------
    classification : bool
        Whether targets are labels: -1 or +1 with one margin per row, 0 to outputs - 1 with several.
    monotone : bool
        Whether, for a given target, the slope has the same sign at every margin. Objective perturbation then needs less
        noise for the same budget.
    discontinuous_curvature : bool
        Whether the second derivative jumps, so that its value at one point says little about nearby points. `newton`
        then learns no Hessian.
    log_link : bool
        Whether the prediction is exp(margin): solvers then divide the target by its mean instead of centring it.
    target_power : int
        With a log link, what a target and a mean that are both c times as large do to the loss: it is multiplied by c
        to this power.
    """

    __slots__ = ()
    classification: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    discontinuous_curvature: ClassVar[bool] = False
    log_link: ClassVar[bool] = False
    target_power: ClassVar[int] = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name, for tables and messages."""

    @property
    def code(self) -> int | CompiledForms | None:
        """By what compiled loops know the loss, a number or its functions; None if they do not."""
        return None

    @property
    def forms(self) -> frozenset[str]:
        """What compiled loops know of the loss; a solver whose loop needs more refuses it."""
        code = self.code
        return code.names if isinstance(code, CompiledForms) else NUMBERED.get(code, frozenset())

    @property
    def parameter(self) -> float:
        """Number that compiled kernels need besides the code."""
        return 0.0

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Bound on the slope (its Euclidean norm, with several margins), infinite if there is none."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Bound on the second derivative (the largest eigenvalue, with several margins); finite, as steps need it."""

    @property
    def usual_curvature(self) -> float:
        """The mean curvature to be expected of the rows of a table, where its bound is far larger."""
        return self.smoothness

    @property
    def outputs(self) -> int:
        """Margins per row."""
        return 1

    @abstractmethod
    def value(self, margin: Values, y: Values) -> Array:
        """Loss of each row."""

    @abstractmethod
    def slope(self, margin: Values, y: Values) -> Array:
        """Derivative in the margin; same shape as the margins."""

    @abstractmethod
    def curvature(self, margin: Values, y: Values) -> Array:
        """Second derivative in the margin, the larger one-sided value at a kink; the Hessian's diagonal."""

    @abstractmethod
    def conjugate(self, dual: Values, y: Values) -> Array:
        """Supremum over margins m of <dual, m> - value(m, y), one per row; infinite outside its domain."""
