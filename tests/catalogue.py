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
from discreet.problem.losses import Huber, Logistic, Multinomial, OneVsRest, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS
from discreet.testing.tables import degenerate_tables, name_of, table

__all__ = ["degenerate_tables", "name_of", "table"]  # of the conformance suite, for tests that import them from here

LOSSES = [
    Squared(),
    Logistic(),
    Huber(0.7),
    SmoothedHinge(0.5),
    Multinomial(3),
    OneVsRest(Logistic(), 3),
]
PENALTIES = [Zero(), L1(0.05), L2(0.1), ElasticNet(0.05, 0.5)]
CONSTRAINTS = [L1Ball(0.3), L2Ball(0.3), Simplex(1.0), Box(-0.1, 0.1)]
BUDGET = Budget(1.0, 1e-6)
PLAIN_LOSSES = (Logistic(), Squared())
SOLVER_NAMES = list(SOLVERS)
SIZES = {"exponential": (200, 2)}  # rows and columns of tables for solvers that do not take larger ones
RELATIONS = ["replace", "zero_out", "add_remove"]


def problems():
    """Every loss with every penalty and every bounded set, with an intercept."""
    penalised = [Problem(loss, penalty) for loss in LOSSES for penalty in PENALTIES]
    return penalised + [Problem(loss, constraint=c) for loss in LOSSES if loss.outputs == 1 for c in CONSTRAINTS]


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
    # Slots make a dataclass twice; the class that its module knows by name is the one in use.
    own = [kind for kind in classes if getattr(sys.modules[kind.__module__], kind.__name__, None) is kind]
    own = [kind for kind in own if kind.__module__.startswith(losses.__name__) and not inspect.isabstract(kind)]
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
            choices[parameter.name] = (2, 4)
        elif parameter.name == "loss":
            scalar = [k() for k in known if not {"classes", "loss"} & set(inspect.signature(k).parameters)]
            choices[parameter.name] = [loss for loss in scalar if loss.classification or kind is OneVsRest]
        elif parameter.name == "weights":
            choices[parameter.name] = ((0.2, 1.0), (3.0, 0.0))
        else:
            choices[parameter.name] = tuple(factor * parameter.default for factor in (1.0, 0.1, 30.0))
    return [kind(**dict(zip(choices, values, strict=True))) for values in itertools.product(*choices.values())]
