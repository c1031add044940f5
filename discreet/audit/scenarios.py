"""The attacks that the command line makes: synthetic tables on which a model without privacy gives its rows away."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from discreet._common.exceptions import DiscreetWarning
from discreet.audit.membership import AttackCurve, membership_attack
from discreet.audit.reconstruction import Reconstruction, distant_records, reconstruction_attack
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.estimators import LogisticRegression
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import GradientDescent

DELTA = 1e-3


def membership_scenario(
    epsilons: Sequence[float], rows: int, columns: int, models: int, rng: RandomGenerator | None = None, seed: int = 0
) -> dict[str, AttackCurve]:
    """Attack logistic regressions on random labels, of which nothing can be learned but the rows themselves."""
    numbers = np.random.default_rng(seed)
    population = Data(numbers.uniform(-1.0, 1.0, (2 * rows, columns)), numbers.choice([-1.0, 1.0], 2 * rows))
    curves = {}
    for epsilon in epsilons:
        model = LogisticRegression(
            epsilon=epsilon, delta=DELTA, alpha=1e-3, solver="gd", bounds=(-1.0, 1.0), classes=[-1, 1]
        )
        label = "no privacy" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            curves[label] = membership_attack(model, population, models, rng=rng)
    return curves


def reconstruction_scenario(
    epsilons: Sequence[float],
    rows: int,
    attributes: int,
    trials: int,
    rng: RandomGenerator | None = None,
    seed: int = 0,
) -> dict[float, Reconstruction]:
    """Look for a record of yes-or-no attributes in the gradients of four steps of gradient descent."""
    numbers = np.random.default_rng(seed)
    candidates = distant_records(attributes)
    others = Data(numbers.choice([-1.0, 1.0], (rows - 1, attributes)), numbers.choice([-1.0, 1.0], rows - 1))
    problem = Problem(Logistic(), fit_intercept=False)
    public = Public.of(rows, attributes, bounds=(-1.0, 1.0))
    # All records have the same norm, so that nothing is lost by clipping; short steps keep the gradients alike.
    clip = 0.5 * math.sqrt(attributes)
    solver = GradientDescent(steps=4, clip=clip, step=1e-9, average=False, scale_share=0.0)
    results = {}
    for epsilon in epsilons:
        budget = Budget(epsilon, DELTA)
        plan = solver.plan(problem, public, budget)
        results[epsilon] = reconstruction_attack(plan, others, candidates, 1.0, trials, rng)
    return results
