"""Fairness of private classifiers: certificates, private evaluations, and what they rest on."""

from discreet._common.lazy import lazy_names

__all__ = ["gradient_distance", "private_certificate"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "gradient_distance": "gradient_certificate",
        "private_certificate": "private_evaluation",
    },
)
