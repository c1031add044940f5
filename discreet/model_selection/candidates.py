"""The settings that a random search draws from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

from discreet.privacy.random.generator import RandomGenerator

MOST_LISTED = 200  # candidates that are planned one by one before the search
PUBLIC_INPUTS = ("start", "public_table")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Lists of settings, or distributions with a method `rvs`, by parameter; several such dicts are alternatives."""

    options: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, given: Any) -> Candidates:
        return cls((given,) if isinstance(given, Mapping) else tuple(given))

    @property
    def varied(self) -> set[str]:
        return {name for option in self.options for name in option}

    def listed(self) -> list[dict[str, Any]] | None:
        """All candidates, if there are not too many; None if they are drawn from distributions."""
        if any(hasattr(values, "rvs") for option in self.options for values in option.values()):
            return None
        grid = ParameterGrid(list(self.options))
        return list(grid) if len(grid) <= MOST_LISTED else None

    def public_inputs(self) -> list[dict[str, Any]]:
        """The different public inputs of all candidates, as settings; they are stated, so they must be lists."""
        inputs = [{name: option[name] for name in PUBLIC_INPUTS if name in option} for option in self.options]
        for name, values in (pair for option in inputs for pair in option.items()):
            if hasattr(values, "rvs"):
                raise ValueError(f"{name} must be a list: the guarantee names the public inputs of all candidates.")
        return list(ParameterGrid(inputs))

    def draw(self, rng: RandomGenerator) -> dict[str, Any]:
        """Settings for one trial, whatever the trials before it were."""
        seed = int(rng.integers(2**31, 1)[0])
        settings: dict[str, Any] = next(iter(ParameterSampler(list(self.options), 1, random_state=seed)))
        return settings
