"""How much the noise of a private model can change its fairness and its accuracy, group by group; fairer models."""

from discreet._common.lazy import lazy_names

_HOMES = {
    "FairFeatures": "fair_features",
    "ReleasedDirections": "directions",
    "mean_differences": "directions",
    "private_directions": "directions",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
