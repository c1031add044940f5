"""`check_loss`: the laws that the privacy and the optimality of every solver rely on, for any loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from discreet.problem.losses import Loss
from discreet.testing import compiled_forms, loss_bounds, loss_laws
from discreet.testing.laws import LawResult, OnFail, laws_of, run_laws
from discreet.testing.lines import Kernel, LossCase


def check_loss(
    loss: Loss,
    *,
    kernel: Kernel | Literal["auto"] | None = "auto",
    targets: Sequence[float] | None = None,
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
) -> list[LawResult]:
    """Check a loss: derivatives, convexity, conjugate, bounds on slope and curvature, flags, overflow, compiled forms.

    Noise is in proportion to `loss.lipschitz`, and `loss.smoothness` decides about step lengths: the margins at which
    slope and curvature are largest are searched for, so that a constant that is too small is found.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    kernel : {"auto"}, function or None
        What compiled loops have of the loss, by `loss.code`, is compared with its methods; a function
        kernel(code, parameter, margins, y, slopes) that fills `slopes`, for all rows (one output) or for one row
        (several outputs), is compared in place of their slope; None compares nothing.
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
    laws = laws_of(loss_laws, loss_bounds, compiled_forms)
    return run_laws(laws, LossCase(loss, kernel, targets), repr(loss), on_fail, expected_failures)
