"""How much the noise of a private model can change its fairness and its accuracy, group by group; fairer models.

How to use it: docs/fairness.md, and before there are rows docs/choose_epsilon.md; fairer models: docs/fair_models.md.
Proofs: docs/guarantees/fairness.md, private-evaluation.md, harm.md and fair-models.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "certificate": "certificates.certify",
    "private_certificate": "evaluation.private_certificate",
    "gradient_distance": "evaluation.gradient_distance",
    "FairnessCertificate": "certificates.record",
    "PrivateCertificate": "evaluation.record",
    "linear_classifier": "certificates.classifier",
    "unknown_distance": "certificates.classifier",
    "LinearClassifier": "certificates.classifier",
    "CellTable": "cells",
    "NOTIONS": "notions",
    "Harm": "harm.result",
    "HarmAnswer": "harm.result",
    "MarginDensity": "harm.margin_profiles",
    "MarginSample": "harm.margin_profiles",
    "NormalMargins": "harm.margin_profiles",
    "epsilon_for_harm": "harm.search",
    "harm_of": "harm.at_plan",
    "plot_harm": "harm.plots",
    "rows_for_harm": "harm.search",
    "FairFeatures": "fairer.fair_features",
    "ReleasedDirections": "fairer.directions",
    "mean_differences": "fairer.directions",
    "private_directions": "fairer.directions",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.fairness.cells import CellTable as CellTable
    from discreet.fairness.certificates.certify import certificate as certificate
    from discreet.fairness.certificates.classifier import LinearClassifier as LinearClassifier
    from discreet.fairness.certificates.classifier import linear_classifier as linear_classifier
    from discreet.fairness.certificates.classifier import unknown_distance as unknown_distance
    from discreet.fairness.certificates.record import FairnessCertificate as FairnessCertificate
    from discreet.fairness.evaluation.gradient_distance import gradient_distance as gradient_distance
    from discreet.fairness.evaluation.private_certificate import private_certificate as private_certificate
    from discreet.fairness.evaluation.record import PrivateCertificate as PrivateCertificate
    from discreet.fairness.fairer.directions import ReleasedDirections as ReleasedDirections
    from discreet.fairness.fairer.directions import mean_differences as mean_differences
    from discreet.fairness.fairer.directions import private_directions as private_directions
    from discreet.fairness.fairer.fair_features import FairFeatures as FairFeatures
    from discreet.fairness.harm.at_plan import harm_of as harm_of
    from discreet.fairness.harm.margin_profiles import MarginDensity as MarginDensity
    from discreet.fairness.harm.margin_profiles import MarginSample as MarginSample
    from discreet.fairness.harm.margin_profiles import NormalMargins as NormalMargins
    from discreet.fairness.harm.plots import plot_harm as plot_harm
    from discreet.fairness.harm.result import Harm as Harm
    from discreet.fairness.harm.result import HarmAnswer as HarmAnswer
    from discreet.fairness.harm.search import epsilon_for_harm as epsilon_for_harm
    from discreet.fairness.harm.search import rows_for_harm as rows_for_harm
    from discreet.fairness.notions import NOTIONS as NOTIONS
