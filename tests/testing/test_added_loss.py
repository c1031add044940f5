"""A loss that is added as CONTRIBUTING says is right everywhere, and what it lacks is refused by name."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from discreet import Budget, IncompatibleSolverError, Problem, solve
from discreet.data.public import Public
from discreet.federated.plan import check_problem
from discreet.kernels import slopes
from discreet.problem.losses import CompiledForms, Huber, Loss, OneVsRest
from discreet.problem.penalties import L2
from discreet.solvers import SOLVERS
from discreet.testing import LawBrokenError, check_loss
from discreet.testing.tables import table

NO_BUDGET, BUDGET = Budget(math.inf, 1e-6), Budget(1.0, 1e-6)


def slope(parameter, margin, y):
    return math.tanh(margin - y)


def curvature(parameter, margin, y):
    return 1.0 / math.cosh(margin - y) ** 2


def tensor_slope(parameter, margins, y):
    return (margins - y).tanh()


@dataclass(frozen=True, slots=True)
class LogCosh(Loss):
    """log(cosh(m - y)): a parabola near 0, nearly linear far out."""

    name = "log-cosh"
    code = CompiledForms(slope=slope, curvature=curvature, tensor_slope=tensor_slope)
    lipschitz = 1.0
    smoothness = 1.0

    def value(self, margin, y):
        with np.errstate(over="ignore"):
            size = np.abs(np.subtract(margin, y))
            return size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0)

    def slope(self, margin, y):
        with np.errstate(over="ignore"):
            return np.tanh(np.subtract(margin, y, dtype=float))

    def curvature(self, margin, y):
        with np.errstate(over="ignore"):
            less = np.exp(-2.0 * np.abs(np.subtract(margin, y, dtype=float)))
        return 4.0 * less / (1.0 + less) ** 2

    def conjugate(self, dual, y):
        s = np.asarray(dual, dtype=float)
        inside = np.clip(s, -1.0, 1.0)
        with np.errstate(over="ignore"):
            entropy = sum(0.5 * part * np.log(np.maximum(part, 1e-300)) for part in (1.0 + inside, 1.0 - inside))
            return np.where(s == inside, entropy + inside * y, np.inf)


def variant(**forms):
    """The loss with some of its compiled forms replaced or, with None, taken away."""
    complete = {"slope": slope, "curvature": curvature, "tensor_slope": tensor_slope}

    class Variant(LogCosh):
        code = CompiledForms(**(complete | forms))

    return Variant()


def problem_with(loss):
    return Problem(loss, L2(0.01))


def refusals(loss):
    """What each solver that refuses the loss says that its loop does not know."""
    reasons = {name: str(kind().why_incompatible(problem_with(loss), BUDGET)) for name, kind in SOLVERS.items()}
    return {name: text.split(" the ", 1)[1] for name, text in reasons.items() if "compiled loop" in text}


def test_the_complete_loss_keeps_all_laws():
    statuses = {result.law: result.status for result in check_loss(LogCosh())}
    laws = ("kernel_computes_the_same_slope", "kernel_computes_the_same_curvature")
    assert {statuses[law] for law in (*laws, "kernel_solves_for_the_proximal_slope")} == {"passed"}
    check_loss(OneVsRest(LogCosh(), 3))


@pytest.mark.parametrize("solver", ["gd", "newton", "cd", "admm", "svrg", "sgd"])
def test_the_complete_loss_reaches_the_optimum(solver):
    problem = problem_with(LogCosh())
    X, y = table(LogCosh(), rows=200, scales=np.ones(4))
    y[::10] += 5.0  # where a squared loss would lead elsewhere
    with pytest.warns(match="epsilon"):
        solution = solve(problem, X, y, solver, NO_BUDGET)
    best = problem.optimum(X, y).value
    assert problem.objective(X, y, solution.w, solution.intercept) <= best * (1.0 + 1e-6)


def test_several_outputs_of_an_added_loss_reach_the_optimum():
    problem = problem_with(OneVsRest(LogCosh(), 3))
    X, y = table(problem.loss)
    with pytest.warns(match="epsilon"):
        solution = solve(problem, X, y, "cd", NO_BUDGET)
    best = problem.optimum(X, y).value
    assert problem.objective(X, y, solution.w, solution.intercept) <= best * (1.0 + 1e-6)


def test_compiled_loops_refuse_by_name_what_they_do_not_know():
    complete = problem_with(LogCosh())
    compiled = {name for name, kind in SOLVERS.items() if kind().capabilities.compiled}
    without_slope = refusals(variant(slope=None))
    assert set(without_slope) == {n for n in compiled if SOLVERS[n]().why_incompatible(complete, BUDGET) is None}
    assert without_slope.pop("admm") == "proximal slope of the log-cosh loss"
    assert set(without_slope.values()) == {"slope of the log-cosh loss"}
    assert refusals(variant(curvature=None)) == {"admm": "proximal slope of the log-cosh loss"}
    assert refusals(LogCosh()) == refusals(variant(tensor_slope=None)) == {}
    with pytest.raises(IncompatibleSolverError, match=r"'admm' cannot be used: .* does not know the proximal slope"):
        SOLVERS["admm"]().plan(problem_with(variant(curvature=None)), Public(100, 3), BUDGET)


@pytest.mark.parametrize("form", ["slope", "curvature"])
def test_federated_runs_refuse_by_name_what_they_do_not_know(form):
    public = Public(100, 3, low=np.full(3, -1.0), high=np.full(3, 1.0), target_low=-1.0, target_high=1.0)
    check_problem(problem_with(LogCosh()), public)
    with pytest.raises(ValueError, match=f"does not know the {form} of the log-cosh loss"):
        check_problem(problem_with(variant(**{form: None})), public)


@pytest.mark.parametrize("missing", ["slope", "curvature"])
@pytest.mark.parametrize("solver", ["gd", "newton"])
def test_solvers_that_call_the_methods_need_no_form(solver, missing):
    loss = variant(**{missing: None})
    X, y = table(loss, scales=np.ones(4))
    with pytest.warns(match="epsilon"):
        solution = solve(problem_with(loss), X, y, solver, NO_BUDGET)
    best = problem_with(loss).optimum(X, y).value
    assert problem_with(loss).objective(X, y, solution.w, solution.intercept) <= best * (1.0 + 1e-6)


def half(parameter, margin, y):
    return 0.5 * math.tanh(margin - y)


def ones(parameter, margin, y):
    return 1.0


def at_the_margin(parameter, margin, y, stiffness):
    return math.tanh(margin - y)


def half_tensor(parameter, margins, y):
    return 0.5 * (margins - y).tanh()


@pytest.mark.parametrize(
    ("forms", "law"),
    [
        ({"slope": half}, "kernel_computes_the_same_slope"),
        ({"curvature": ones}, "kernel_computes_the_same_curvature"),
        ({"proximal_slope": at_the_margin}, "kernel_solves_for_the_proximal_slope"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_wrong_form_is_named(forms, law):
    with pytest.raises(LawBrokenError, match=f"breaks the law '{law}'"):
        check_loss(variant(**forms))


def test_a_wrong_form_on_tensors_is_named():
    pytest.importorskip("torch", reason="PyTorch is not installed; pip install discreet[gpu]")
    with pytest.raises(LawBrokenError, match="tensors_give_the_same_slope"):
        check_loss(variant(tensor_slope=half_tensor))


def test_a_wrong_form_of_the_fused_kernel_is_named(monkeypatch):
    fused = pytest.importorskip("discreet.kernels.fused_gradient", reason="PyTorch or Triton is not installed")
    if not (fused.INTERPRETED or fused.torch.cuda.is_available()):
        pytest.skip("there is no GPU")
    assert {result.law: result.status for result in check_loss(Huber())}[
        "fused_kernel_gives_the_same_slope"
    ] == "passed"
    factors = fused.row_factors
    monkeypatch.setattr(fused, "row_factors", lambda *arguments: 0.5 * factors(*arguments))
    with pytest.raises(LawBrokenError, match="fused_kernel_gives_the_same_slope"):
        check_loss(Huber())


def test_a_number_that_no_loop_knows_gives_no_slope():
    margins, values = np.linspace(-2.0, 2.0, 5), np.empty(5)
    for kernel in (slopes.fill_slopes, slopes.fill_curvatures, slopes.fill_vector_slope):
        kernel(99, 0.0, margins, margins if kernel is not slopes.fill_vector_slope else 1.0, values)
        assert np.isnan(values).all()
    slopes.fill_proximal_slopes(99, 0.0, margins, margins, np.ones(5), values)
    assert np.isnan(values).all()


def constant(size):
    return CompiledForms(slope=lambda parameter, margin, y: size)


def test_what_changes_a_function_changes_the_name_of_its_loops(tmp_path):
    """Loops compiled for another version of a function must not be taken from the disk."""

    def forms_of(source):
        file = tmp_path / "written.py"
        file.write_text(source)
        space = {}
        exec(compile(source, str(file), "exec"), space)
        return CompiledForms(slope=space["slope"])

    first = forms_of("def slope(parameter, margin, y):\n    return 1.0\n")
    again = CompiledForms(slope=first.slope)
    other = forms_of("def slope(parameter, margin, y):\n    return 10.0\n")
    assert first.key == again.key != other.key
    assert constant(1.0).key != constant(2.0).key
    with pytest.raises(ValueError, match="slope must be a plain function; got 3"):
        CompiledForms(slope=3)


AFTER_CD = """
import math, warnings
import numpy as np
from discreet import Problem, solve
from discreet.kernels import slopes
from tests.testing.test_added_loss import SharesOfCD, huge_slope
warnings.simplefilter("ignore")
{fault}
X = np.random.default_rng(0).normal(size=(20_000, 2))
solve(Problem(SharesOfCD()), X, X[:, 0], "cd", math.inf)
print(huge_slope())
"""


def far_slope(parameter, margin, y):
    return parameter * ((margin - y) / math.hypot(parameter, margin - y))


class SharesOfCD(Huber):
    """The slope of the pseudo-Huber loss, whose products may not be reordered: their bits and their range change."""

    code = CompiledForms(slope=far_slope, curvature=curvature)


def huge_slope():
    found = np.empty(1)
    slopes.fill_slopes(SharesOfCD.code, 30.0, np.array([-1e6]), np.array([1.7e308]), found)
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", "-30.0"),
        (
            "slopes._jitted = slopes.cache(lambda f: slopes.njit(error_model='numpy', fastmath=slopes.ANY_ORDER)(f))",
            "-inf",
        ),
    ],
)
def test_no_loop_hands_its_licence_to_reorder_on_to_a_loss(fault, found, tmp_path):
    """Sums of integers in `cd` may be reordered; the function of a loss that is first compiled there may not."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", AFTER_CD.format(fault=fault)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == found, done.stderr
