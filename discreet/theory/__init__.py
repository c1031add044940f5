"""Bounds of the literature as functions of public numbers, with their assumptions checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "Bound": "bound",
    "NoisyContraction": "fixed_point",
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
    from discreet.theory.fixed_point import NoisyContraction as NoisyContraction
    from discreet.theory.fixed_point import fixed_point_bound as fixed_point_bound
    from discreet.theory.gd import gd_bound as gd_bound
    from discreet.theory.lower import coordinate_lower_bound as coordinate_lower_bound
    from discreet.theory.lower import lower_bound as lower_bound
    from discreet.theory.sgd import sgd_bound as sgd_bound
    from discreet.theory.sketched import sketched_bound as sketched_bound
