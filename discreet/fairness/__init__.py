"""How much the noise of a private model can change its fairness and its accuracy, group by group.

How to use it: docs/fairness.md; proofs: docs/guarantees/fairness.md.
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
    "LinearClassifier": "parameters",
    "CellTable": "cells",
    "NOTIONS": "notions",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.fairness.cells import CellTable as CellTable
    from discreet.fairness.certificate_record import FairnessCertificate as FairnessCertificate
    from discreet.fairness.certificates import certificate as certificate
    from discreet.fairness.gradient_certificate import gradient_distance as gradient_distance
    from discreet.fairness.notions import NOTIONS as NOTIONS
    from discreet.fairness.parameters import LinearClassifier as LinearClassifier
    from discreet.fairness.parameters import linear_classifier as linear_classifier
    from discreet.fairness.private_evaluation import private_certificate as private_certificate
    from discreet.fairness.private_record import PrivateCertificate as PrivateCertificate
