"""What a run costs in privacy, and how much noise a budget needs.

Events are those of dp_accounting, built by the constructors here; every question about them is answered by
the least of several proved upper bounds. The theorems are in docs/guarantees/accounting.md.
"""

from __future__ import annotations

from typing import Any

from discreet.privacy.accounting.calibration import calibrate
from discreet.privacy.accounting.certificates import (
    Certificate,
    amount_of,
    certify,
    delta_of,
    epsilon_of,
    fits,
    mu_of,
    pure_epsilon_of,
    rho_of,
)
from discreet.privacy.accounting.composition import check_distinct, flatten, has_best_of_trials
from discreet.privacy.accounting.events import (
    best_of_trials_event,
    compose,
    fixed_size_event,
    gaussian_event,
    laplace_event,
    mixture_event,
    no_event,
    non_private_event,
    objective_event,
    poisson_event,
    pure_event,
    randomised_response_event,
    selection_event,
)
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from discreet.privacy.accounting.google import google_epsilon
from discreet.privacy.accounting.serialise import event_from_dict, event_to_dict
from discreet.privacy.accounting.tradeoff_curve import excess_probability, guess_accuracy, tradeoff
from discreet.privacy.accounting.trials_law import TrialsLaw
from discreet.privacy.budget import Budget

__all__ = [
    "BoundedRangeDpEvent",
    "Budget",
    "Certificate",
    "TrialsLaw",
    "amount_of",
    "best_of_trials_event",
    "calibrate",
    "certify",
    "check_distinct",
    "compose",
    "delta_of",
    "epsilon_of",
    "event_from_dict",
    "event_to_dict",
    "excess_probability",
    "fits",
    "fixed_size_event",
    "flatten",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_event",
    "gaussian_mu",
    "google_epsilon",
    "guess_accuracy",
    "has_best_of_trials",
    "laplace_event",
    "mixture_event",
    "mu_of",
    "no_event",
    "non_private_event",
    "objective_event",
    "poisson_event",
    "pure_epsilon_of",
    "pure_event",
    "randomised_response_event",
    "rho_of",
    "selection_event",
    "tradeoff",
]


def __getattr__(name: str) -> Any:
    """Import the event class on first use: it needs dp_accounting, which is slow to load."""
    if name == "BoundedRangeDpEvent":
        from discreet.privacy.accounting.custom_events import BoundedRangeDpEvent

        return BoundedRangeDpEvent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
