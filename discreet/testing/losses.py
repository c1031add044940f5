"""`check_loss`: the laws that the privacy and the optimality of every solver rely on, for any loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.losses import Loss
from discreet.problem.losses.base import COMPILED_CODES
from discreet.testing import loss_bounds, loss_laws
from discreet.testing.laws import Law, LawResult, OnFail, broken, run_laws, skipped
from discreet.testing.lines import FAR, Line, grid_of, huge_lines_of, lines_of

Kernel = Callable[..., Any]
MOST_SINGLE_ROWS = 40  # given one by one to kernels that take one row


@dataclass(frozen=True, eq=False)
class LossCase:
    """A loss with the lines of margins on which it is looked at."""

    loss: Loss
    kernel: Kernel | Literal["auto"] | None = "auto"
    targets: Sequence[float] | None = None

    @cached_property
    def lines(self) -> list[tuple[Line, FloatArray]]:
        """Every line, with points that lie close together where the slope changes most."""
        return [(line, grid_of(line)) for line in lines_of(self.loss, self.targets)]

    @cached_property
    def far_lines(self) -> list[tuple[Line, FloatArray]]:
        """The lines with points far out as well, and lines of huge targets: for bounds, which hold everywhere."""
        far = np.concatenate([-FAR[::-1], FAR])
        return [(line, np.concatenate([t, far])) for line, t in self.lines] + [
            (line, np.concatenate([grid_of(line)[::10], far])) for line in huge_lines_of(self.loss, self.targets)
        ]


def check_loss(
    loss: Loss,
    *,
    kernel: Kernel | Literal["auto"] | None = "auto",
    targets: Sequence[float] | None = None,
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
) -> list[LawResult]:
    """Check a loss: derivatives, convexity, conjugate, bounds on slope and curvature, flags, overflow, kernel.

    Noise is in proportion to `loss.lipschitz`, and `loss.smoothness` decides about step lengths: the margins at which
    slope and curvature are largest are searched for, so that a constant that is too small is found.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    kernel : {"auto"}, function or None
        The compiled slope to compare with: by default that of the library under `loss.code`; a function
        kernel(code, parameter, margins, y, slopes) that fills `slopes`, for all rows (one output) or for one row
        (several outputs); None for a loss without one, to be used with solvers that call `loss.slope`.
    targets : sequence of float, optional
        Targets that a regression loss admits, if it does not admit all numbers.
    on_fail : {"raise", None}
        Whether to raise the first failure, or to return all results.
    expected_failures : mapping, optional
        Laws that are known to fail, each with the reason.

    Returns
    -------
    list of LawResult
        One for each law.

    Raises
    ------
    LawBrokenError
        An AssertionError that names the law, the margin and the target.

    Examples
    --------
    >>> from discreet.problem.losses import Logistic
    >>> from discreet.testing import check_loss
    >>> sorted({result.status for result in check_loss(Logistic())})
    ['passed', 'skipped']
    >>> class Halved(Logistic):
    ...     lipschitz = 0.5
    >>> check_loss(Halved())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    discreet.testing.laws.LawBrokenError: ... breaks the law 'slope_is_bounded_by_lipschitz': ...
    """
    return run_laws(LAWS, LossCase(loss, kernel, targets), repr(loss), on_fail, expected_failures)


def kernel_computes_the_same_slope(case: LossCase) -> None:
    """The compiled loops, which know a loss by its code, compute the slope that the loss states."""
    if case.kernel is None or (case.kernel == "auto" and case.loss.code is None):
        skipped("the loss has no compiled slope; use it with solvers that call loss.slope, such as 'gd' and 'newton'")
    kernel = _library_kernel(case.loss) if case.kernel == "auto" else case.kernel
    code, parameter = case.loss.code, float(case.loss.parameter)
    for line, t in case.far_lines:
        points = t if case.loss.outputs == 1 else t[:: max(1, t.size // MOST_SINGLE_ROWS)]
        margins, y, wanted = line.margins(points), line.targets(points), line.gradient(points)
        found = np.empty(wanted.shape)
        if case.loss.outputs == 1:
            kernel(code, parameter, np.ascontiguousarray(margins), y, found[:, 0])
        else:
            for i in range(points.size):
                kernel(code, parameter, np.ascontiguousarray(margins[i]), y[i], found[i])
        _compare(line, points, wanted, found)


def _compare(line: Line, t: FloatArray, wanted: FloatArray, found: FloatArray) -> None:
    """Equal to 12 digits, or as close as an argument that is rounded once allows."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(line.margins(t)).reshape(t.size, -1).max(axis=1) + abs(line.target) + 1.0
        rounding = 8.0 * np.finfo(float).eps * min(line.loss.smoothness, 1e6) * size
        close = np.abs(found - wanted) <= np.maximum(1e-12 * np.abs(wanted), rounding[:, None])
    wrong = ~(close | (found == wanted)).all(axis=1)
    if wrong.any():
        i = int(np.argmax(wrong))
        broken(f"{line.at(t[i])} the kernel computes {found[i]}, and slope() {wanted[i]}")


def _library_kernel(loss: Loss) -> Kernel:
    """The compiled slope of the library under the code of a loss."""
    from discreet.kernels import slopes

    if loss.code not in COMPILED_CODES:
        broken(
            f"code {loss.code} is unknown to the compiled loops; add it to discreet/kernels/slopes.py and to "
            "COMPILED_CODES, or pass kernel=None and let code be None: solvers that call loss.slope take the loss"
        )
    return slopes.fill_slopes if loss.outputs == 1 else slopes.fill_vector_slope


LAWS: list[Law[LossCase]] = [
    loss_laws.loss_is_a_value,
    loss_laws.shapes_follow_the_margins,
    loss_laws.slope_is_the_derivative_of_value,
    loss_laws.curvature_is_the_derivative_of_slope,
    loss_laws.slope_never_decreases,
    loss_laws.regression_losses_depend_on_the_residual,
    loss_laws.log_links_follow_the_unit_of_the_target,
    loss_laws.conjugate_keeps_fenchel_young,
    loss_bounds.slope_is_bounded_by_lipschitz,
    loss_bounds.curvature_is_bounded_by_smoothness,
    loss_bounds.bounds_are_attained,
    loss_bounds.monotone_losses_have_slopes_of_one_sign,
    loss_bounds.discontinuous_curvature_jumps,
    loss_bounds.extreme_numbers_give_no_nan,
    kernel_computes_the_same_slope,
]
