"""Bounds of the literature as functions of public numbers, with their assumptions checked.

Every function returns a `Bound`, which says what it is about and whether its constants are proved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "Bound": "bound",
    "NoisyContraction": "fixed_point",
    "exponential_bound": "exponential",
    "frank_wolfe_bound": "frank_wolfe",
    "ftrl_bound": "ftrl",
    "greedy_cd_bound": "greedy_cd",
    "objective_perturbation_bound": "objective_perturbation",
    "output_perturbation_bound": "output_perturbation",
    "population_bound": "population",
    "proximal_coordinate_descent_bound": "non_private",
    "proximal_gradient_bound": "non_private",
    "proximal_sgd_bound": "non_private",
    "greedy_coordinate_descent_bound": "non_private",
    "quasi_sparsity": "greedy_cd",
    "admm_bound": "admm",
    "cd_bound": "cd",
    "coordinate_lower_bound": "lower",
    "fixed_point_bound": "fixed_point",
    "gd_bound": "gd",
    "lower_bound": "lower",
    "sgd_bound": "sgd",
    "sketched_bound": "sketched",
}

__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.theory.admm import admm_bound as admm_bound
    from discreet.theory.bound import Bound as Bound
    from discreet.theory.cd import cd_bound as cd_bound
    from discreet.theory.exponential import exponential_bound as exponential_bound
    from discreet.theory.fixed_point import NoisyContraction as NoisyContraction
    from discreet.theory.fixed_point import fixed_point_bound as fixed_point_bound
    from discreet.theory.frank_wolfe import frank_wolfe_bound as frank_wolfe_bound
    from discreet.theory.ftrl import ftrl_bound as ftrl_bound
    from discreet.theory.gd import gd_bound as gd_bound
    from discreet.theory.greedy_cd import greedy_cd_bound as greedy_cd_bound
    from discreet.theory.greedy_cd import quasi_sparsity as quasi_sparsity
    from discreet.theory.lower import coordinate_lower_bound as coordinate_lower_bound
    from discreet.theory.lower import lower_bound as lower_bound
    from discreet.theory.non_private import greedy_coordinate_descent_bound as greedy_coordinate_descent_bound
    from discreet.theory.non_private import proximal_coordinate_descent_bound as proximal_coordinate_descent_bound
    from discreet.theory.non_private import proximal_gradient_bound as proximal_gradient_bound
    from discreet.theory.non_private import proximal_sgd_bound as proximal_sgd_bound
    from discreet.theory.objective_perturbation import objective_perturbation_bound as objective_perturbation_bound
    from discreet.theory.output_perturbation import output_perturbation_bound as output_perturbation_bound
    from discreet.theory.population import population_bound as population_bound
    from discreet.theory.sgd import sgd_bound as sgd_bound
    from discreet.theory.sketched import sketched_bound as sketched_bound
