"""Every loss of the library keeps all laws, unasked; each planted fault breaks the law that is there for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet.problem.constraints import L2Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2
from discreet.problem.penalties import Box as BoxPenalty
from discreet.testing import LawBrokenError, check_constraint, check_loss, check_penalty
from tests.catalogue import CONSTRAINTS, PENALTIES, every_loss


@pytest.mark.parametrize("loss", every_loss(), ids=repr)
def test_every_loss_keeps_all_laws(loss):
    assert {result.status for result in check_loss(loss)} <= {"passed", "skipped"}


def test_every_class_is_found():
    assert {type(loss).__name__ for loss in every_loss()} >= {
        *("Squared", "Logistic", "Huber", "SmoothedHinge", "Multinomial", "OneVsRest")
    }


class HalvedLipschitz(Logistic):
    lipschitz = 0.5


class HalvedHuberLipschitz(Huber):
    @property
    def lipschitz(self):
        return 0.5 * self.threshold


class HalvedVectorLipschitz(Multinomial):
    lipschitz = 0.5 * math.sqrt(2.0)


class HalvedSmoothness(Logistic):
    smoothness = 0.125


class HalvedVectorSmoothness(Multinomial):
    smoothness = 0.25


class HalvedCurvature(SmoothedHinge):
    """Curvature and bound are wrong together: the slope gives them away."""

    smoothness = 0.5

    def curvature(self, margin, y):
        return 0.5 * super().curvature(margin, y)


class WrongSign(Logistic):
    def slope(self, margin, y):
        return -super().slope(margin, y)


class WrongConjugate(Squared):
    def conjugate(self, dual, y):
        return 2.0 * super().conjugate(dual, y)


class FiniteConjugate(Logistic):
    """Right inside its domain, and 0 instead of infinite outside."""

    def conjugate(self, dual, y):
        found = super().conjugate(dual, y)
        return np.where(np.isinf(found), 0.0, found)


class OtherKernel(Huber):
    code = SmoothedHinge.code


class UnknownCode(Logistic):
    code = 99


class NotOfTheResidual(Squared):
    """Fits the square of the target."""

    def slope(self, margin, y):
        return super().slope(margin, np.square(y))


class LooseLipschitz(Logistic):
    lipschitz = 2.0


class NotMonotone(Huber):
    monotone = True


class NoJump(Logistic):
    discontinuous_curvature = True


class Overflows(Squared):
    def value(self, margin, y):
        with np.errstate(all="ignore"):
            margin, y = np.asarray(margin, dtype=float), np.asarray(y, dtype=float)
            return 0.5 * margin * margin - margin * y + 0.5 * y * y


class NotConvex(Squared):
    def slope(self, margin, y):
        return np.sin(super().slope(margin, y))


class Forgetful(Logistic):
    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


FAULTS = [
    (HalvedLipschitz(), "slope_is_bounded_by_lipschitz"),
    (HalvedHuberLipschitz(100.0), "slope_is_bounded_by_lipschitz"),
    (HalvedVectorLipschitz(3), "slope_is_bounded_by_lipschitz"),
    (HalvedSmoothness(), "curvature_is_bounded_by_smoothness"),
    (HalvedVectorSmoothness(4), "curvature_is_bounded_by_smoothness"),
    (HalvedCurvature(0.5), "curvature_is_the_derivative_of_slope"),
    (HalvedCurvature(0.5), "curvature_is_bounded_by_smoothness"),
    (LooseLipschitz(), "bounds_are_attained"),
    (WrongSign(), "slope_is_the_derivative_of_value"),
    (NotConvex(), "slope_never_decreases"),
    (NotOfTheResidual(), "regression_losses_depend_on_the_residual"),
    (WrongConjugate(), "conjugate_keeps_fenchel_young"),
    (FiniteConjugate(), "conjugate_keeps_fenchel_young"),
    (OtherKernel(), "kernel_computes_the_same_slope"),
    (UnknownCode(), "kernel_computes_the_same_slope"),
    (NotMonotone(), "monotone_losses_have_slopes_of_one_sign"),
    (NoJump(), "discontinuous_curvature_jumps"),
    (Overflows(), "extreme_numbers_give_no_nan"),
    (Forgetful(), "loss_is_a_value"),
]


@pytest.mark.parametrize(("loss", "law"), FAULTS, ids=lambda x: x if isinstance(x, str) else type(x).__name__)
def test_a_planted_fault_is_found_by_its_law(loss, law):
    results = {result.law: result for result in check_loss(loss, on_fail=None)}
    assert results[law].status == "failed"
    assert f"breaks the law {law!r}" in results[law].message


def test_messages_name_the_law_the_margin_and_the_target():
    with pytest.raises(AssertionError) as error:
        check_loss(HalvedLipschitz())
    message = str(error.value)
    assert "breaks the law 'slope_is_bounded_by_lipschitz': at margin" in message
    assert "and target -1 the slope has norm 1, but lipschitz is 0.5" in message


def test_a_kernel_of_ones_own_is_compared():
    def right(code, parameter, margins, y, slopes):
        slopes[:] = Logistic().slope(margins, y)

    def wrong(code, parameter, margins, y, slopes):
        slopes[:] = Logistic().slope(margins, -y)

    def status(kernel):
        results = check_loss(UnknownCode(), kernel=kernel, on_fail=None)
        return next(result.status for result in results if result.law == "kernel_computes_the_same_slope")

    assert (status(right), status(None), status("auto")) == ("passed", "skipped", "failed")
    with pytest.raises(LawBrokenError, match="kernel_computes_the_same_slope"):
        check_loss(UnknownCode(), kernel=wrong)


def test_expected_failures_are_not_raised_and_must_fail():
    reason = {"bounds_are_attained": "the exact bound is not known"}
    statuses = {result.law: result.status for result in check_loss(LooseLipschitz(), expected_failures=reason)}
    assert statuses["bounds_are_attained"] == "expected failure"
    with pytest.raises(LawBrokenError, match="expected to fail"):
        check_loss(Logistic(), expected_failures=reason)
    with pytest.raises(ValueError, match="names no law: 'bounds'"):
        check_loss(Logistic(), expected_failures={"bounds": "?"})


@dataclass(frozen=True)
class WrongProx(L1):
    def prox(self, v, step):
        return np.asarray(v) * 0.5


@dataclass(frozen=True)
class TooConvex(L2):
    @property
    def strong_convexity(self):
        return 2.0 * self.alpha


@dataclass(frozen=True)
class WrongRadius(L2Ball):
    def project(self, v):
        return 0.5 * super().project(v)


@pytest.mark.parametrize("penalty", [*PENALTIES, BoxPenalty(-1.0, 2.0)], ids=repr)
def test_every_penalty_keeps_all_laws(penalty):
    assert {result.status for result in check_penalty(penalty)} == {"passed"}


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_every_constraint_keeps_all_laws(constraint):
    assert {result.status for result in check_constraint(constraint)} == {"passed"}


def test_faults_of_penalties_and_constraints_are_found():
    with pytest.raises(LawBrokenError, match="prox_minimises"):
        check_penalty(WrongProx(0.1))
    with pytest.raises(LawBrokenError, match="value_is_strongly_convex"):
        check_penalty(TooConvex(0.1))
    with pytest.raises(LawBrokenError, match="projection_is_the_nearest_point"):
        check_constraint(WrongRadius(1.0))
