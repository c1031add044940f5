"""How much the noise of a private model can change its fairness and its accuracy, group by group; fairer models.

How to use it: docs/fairness.md, and before there are rows docs/choose_epsilon.md; fairer models: docs/fair_models.md.
Proofs: docs/guarantees/fairness.md, private-evaluation.md, harm.md and fair-models.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "certificate": "certificates",
    "private_certificate": "private_evaluation",
    "gradient_distance": "gradient_certificate",
    "FairnessCertificate": "certificate_record",
    "PrivateCertificate": "private_record",
    "linear_classifier": "parameters",
    "unknown_distance": "parameters",
    "LinearClassifier": "parameters",
    "CellTable": "cells",
    "NOTIONS": "notions",
    "Harm": "harm_result",
    "HarmAnswer": "harm_result",
    "MarginDensity": "margin_profiles",
    "MarginSample": "margin_profiles",
    "NormalMargins": "margin_profiles",
    "epsilon_for_harm": "harm_search",
    "harm_of": "harm",
    "plot_harm": "harm_plots",
    "rows_for_harm": "harm_search",
    "FairFeatures": "fair_features",
    "ReleasedDirections": "directions",
    "mean_differences": "directions",
    "private_directions": "directions",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.fairness.cells import CellTable as CellTable
    from discreet.fairness.certificate_record import FairnessCertificate as FairnessCertificate
    from discreet.fairness.certificates import certificate as certificate
    from discreet.fairness.directions import ReleasedDirections as ReleasedDirections
    from discreet.fairness.directions import mean_differences as mean_differences
    from discreet.fairness.directions import private_directions as private_directions
    from discreet.fairness.fair_features import FairFeatures as FairFeatures
    from discreet.fairness.gradient_certificate import gradient_distance as gradient_distance
    from discreet.fairness.harm import harm_of as harm_of
    from discreet.fairness.harm_plots import plot_harm as plot_harm
    from discreet.fairness.harm_result import Harm as Harm
    from discreet.fairness.harm_result import HarmAnswer as HarmAnswer
    from discreet.fairness.harm_search import epsilon_for_harm as epsilon_for_harm
    from discreet.fairness.harm_search import rows_for_harm as rows_for_harm
    from discreet.fairness.margin_profiles import MarginDensity as MarginDensity
    from discreet.fairness.margin_profiles import MarginSample as MarginSample
    from discreet.fairness.margin_profiles import NormalMargins as NormalMargins
    from discreet.fairness.notions import NOTIONS as NOTIONS
    from discreet.fairness.parameters import LinearClassifier as LinearClassifier
    from discreet.fairness.parameters import linear_classifier as linear_classifier
    from discreet.fairness.parameters import unknown_distance as unknown_distance
    from discreet.fairness.private_evaluation import private_certificate as private_certificate
    from discreet.fairness.private_record import PrivateCertificate as PrivateCertificate
