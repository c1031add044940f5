"""What every release here does around its noise: make the budget, book the cost, state the promise."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.exceptions import NotPrivateWarning
from discreet._common.types import FloatArray
from discreet.data.bounds import boolean_columns, names_of
from discreet.data.public import public_facts
from discreet.data.rows import Data, Rows
from discreet.data.validation import load_features
from discreet.distributed import is_elsewhere, table_elsewhere
from discreet.privacy.budget import budget_from
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.meaning import weaknesses
from discreet.privacy.random.generator import generator_from
from discreet.privacy.release import reserve, table_record

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.release_record import ReleaseRecord


# Parts of a budget are rounded when they are turned into noise; their sum must not exceed the whole.
WHOLE = 1.0 - 1e-12


@dataclass(frozen=True, eq=False)
class Released:
    """Numbers that were released, one per column, with their guarantee.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        The released numbers.
    guarantee : Guarantee
        What is promised about them.
    weighted_ : bool
        Whether sample weights were given.
    """

    values: FloatArray
    guarantee: Guarantee
    weighted_: bool = False

    @property
    def event(self) -> Any:
        return self.guarantee.event


@dataclass(frozen=True, eq=False)
class Terms:
    """Under which promise something is released, and where its cost is booked."""

    public: Public
    budget: Budget
    ledger: Ledger | str | None
    dataset: str | None
    made: list[ReleaseRecord] = field(default_factory=list)

    @classmethod
    def of(cls, data: Rows, bounds: Any, feature_names: Any = None, booleans: Any = None, **settings: Any) -> Terms:
        """The terms for validated rows; `settings` are the common parameters of the transformers."""
        facts = {"relation": settings["relation"], "public_n": settings["public_n"], "booleans": booleans}
        public = public_facts(data, bounds=bounds, feature_names=feature_names, **facts)
        budget = budget_from(settings["epsilon"], settings["delta"], public.rows)
        return cls(public, budget, settings["ledger"], settings["dataset"])

    @classmethod
    def for_rows(cls, X: Any, bounds: Any, sample_weight: Any, **settings: Any) -> tuple[Data, Terms]:
        """A raw table with declared bounds, validated, and its terms."""
        if bounds is None:
            raise ValueError("bounds is missing; pass (low, high), for example from PrivateBounds.")
        data, names = load_features(X, sample_weight), names_of(X)
        terms = cls.of(data, bounds, names, boolean_columns(X), **settings)
        terms.public.complete_bounds(names)
        return data, terms

    @classmethod
    def for_sums(cls, X: Any, bounds: Any, sample_weight: Any, **settings: Any) -> tuple[Rows, Terms]:
        """The same for what needs only sums over the rows: X may be a Dask table or a `pyarrow.dataset`."""
        if bounds is None or not is_elsewhere(X):
            return cls.for_rows(X, bounds, sample_weight, **settings)
        if sample_weight is not None:
            raise ValueError("sample_weight is for tables in memory; a table that is read block by block has none.")
        table = table_elsewhere(X)
        rows, names = table.encoded(np.asarray), table.names if table.named else None
        terms = cls.of(rows, bounds, names, table.booleans, **settings)
        terms.public.complete_bounds(names)
        return rows, terms

    @contextmanager
    def booked(self, event: Any, note: str, rng: RandomGenerator) -> Iterator[None]:
        """Reserve the cost, let the block read the rows, commit; a block that dies stays counted.

        Guarantee: the block starts only after the ledger, if there is one, has granted the event.
        """
        if self.budget.is_infinite:
            warnings.warn("epsilon is infinite: the result is not private.", NotPrivateWarning, stacklevel=4)
        promise = self.guarantee(event, rng)  # now: nothing is released that cannot be stated
        for weakness in weaknesses(promise.epsilon, promise.delta, self.public.rows):
            warnings.warn(weakness, NotPrivateWarning, stacklevel=4)
        reservation = None
        if self.ledger is not None:
            relation, unit = self.public.relation, self.public.unit
            reservation = reserve(self.ledger, self.dataset, event, note, relation, unit=unit, seeded=not rng.secure)
        yield
        if reservation is not None:
            reservation.commit()
        self.made.append(table_record(self.public, note, self.dataset, reservation))

    def generator(self, random_state: Any, name: str, plan: Any) -> RandomGenerator:
        """The generator for what `plan` releases; a seeded one is keyed by the plan as well."""
        rng = generator_from(random_state)
        rng.rekey(digest_of(name, plan, replace(self.public, leaks=(), stored=False), self.budget))
        return rng

    def guarantee(self, event: Any, rng: RandomGenerator) -> Guarantee:
        """What is promised, a seed named as a leak; after the release also when it was made and where it was booked."""
        public = self.public
        promise = guarantee_for(event, self.budget, public.relation, public.rows, public.leaks)
        promise = promise if rng.secure else promise.with_seed()
        if not self.made:
            return promise
        return promise.about(self.made[-1])
