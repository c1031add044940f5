"""Every loss, penalty and solver, crossed with small problems: a new solver joins the tests by its table row."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import sys

from discreet.privacy.budget import Budget
from discreet.problem import losses
from discreet.problem.constraints import Box, L1Ball, L2Ball, Simplex
from discreet.problem.losses import Logistic, OneVsRest, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS
from discreet.testing.tables import degenerate_tables, name_of, table

__all__ = ["degenerate_tables", "name_of", "table"]  # of the conformance suite, for tests that import them from here

PENALTIES = [Zero(), L1(0.05), L2(0.1), ElasticNet(0.05, 0.5)]
CONSTRAINTS = [L1Ball(0.3), L2Ball(0.3), Simplex(1.0), Box(-0.1, 0.1)]
BUDGET = Budget(1.0, 1e-6)
PLAIN_LOSSES = (Logistic(), Squared())
SOLVER_NAMES = list(SOLVERS)
SIZES = {"exponential": (200, 2)}  # rows and columns of tables for solvers that do not take larger ones
RELATIONS = ["replace", "zero_out", "add_remove"]


def problems():
    """One loss of each class with every penalty and every bounded set, with an intercept.

    A loss that no loop is written for is seen with one of each. Those with a log link, which solvers minimise in units
    of the target's mean, are left to tests/estimators/test_counts.py.
    """
    examples = {type(loss): loss for loss in reversed(every_loss()) if not loss.log_link}
    crossed = [
        (loss, PENALTIES if loss.forms else [L2(0.1)], CONSTRAINTS if loss.forms else [L2Ball(0.3)])
        for loss in examples.values()
    ]
    penalised = [Problem(loss, penalty) for loss, penalties, _ in crossed for penalty in penalties]
    return penalised + [Problem(loss, constraint=c) for loss, _, sets in crossed if loss.outputs == 1 for c in sets]


def suits(solver, problem, budget=BUDGET):
    """Whether a solver (by name) takes this problem; refusals are tested on their own."""
    return SOLVERS[solver]().why_incompatible(problem, budget) is None


def problem_for(solver, choices=PLAIN_LOSSES):
    """A problem that the solver takes, as close to plain logistic regression as possible; None if there is none."""
    forms = [{"penalty": L2(0.01)}, {"constraint": Box(-2.0, 2.0)}, {"constraint": L1Ball(2.0)}]
    fitting = (Problem(loss, **form) for loss in choices for form in forms)
    return next((problem for problem in fitting if suits(solver, problem)), None)


def every_loss():
    """Every class of loss in the package, with its defaults, other parameters, and every loss inside."""
    for module in pkgutil.iter_modules(losses.__path__):
        importlib.import_module(f"{losses.__name__}.{module.name}")
    classes = sorted(_subclasses(losses.Loss), key=lambda kind: kind.__name__)
    own = [kind for kind in classes if kind.__module__.startswith(losses.__name__) and not inspect.isabstract(kind)]
    # Slots make a dataclass twice; the class that its module knows by name is the one in use.
    own = [kind for kind in own if getattr(sys.modules[kind.__module__], kind.__name__, None) is kind]
    return [loss for kind in own for loss in _examples(kind, own)]


def _subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _subclasses(child)


def _examples(kind, known):
    """Objects of a class: numbers at, below and above their defaults; two numbers of classes; each scalar loss."""
    parameters = inspect.signature(kind).parameters.values()
    choices = {}
    for parameter in parameters:
        if parameter.name == "classes":
            choices[parameter.name] = (3, 2)
        elif parameter.name == "loss":
            scalar = [k() for k in known if not {"classes", "loss"} & set(inspect.signature(k).parameters)]
            scalar.sort(key=lambda loss: not loss.classification)
            choices[parameter.name] = [loss for loss in scalar if loss.classification or kind is OneVsRest]
        elif parameter.name == "weights":
            choices[parameter.name] = ((0.2, 1.0), (3.0, 0.0))
        else:
            choices[parameter.name] = tuple(factor * parameter.default for factor in (1.0, 0.1, 30.0))
    return [kind(**dict(zip(choices, values, strict=True))) for values in itertools.product(*choices.values())]
