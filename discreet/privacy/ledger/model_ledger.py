"""A ledger while one model is trained: it adds why and what for, and remembers which entries belong to the model."""

from __future__ import annotations

import os
from typing import Any

from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.ledger.locks import FORKS
from discreet.privacy.ledger.reservation import Reservation
from discreet.privacy.ledger.total import Event
from discreet.privacy.relation import Relation


class ModelLedger(Ledger):
    """The ledger at an address, for everything that is released for one model.

    Parameters
    ----------
    url : str or path
        As for `Ledger`.
    note : str, default=""
        Why the model is trained. What `reserve` is told comes after it, in brackets.
    target : str, default=""
        The column that is predicted.

    Attributes
    ----------
    granted : list of Reservation
        What was reserved through this object, oldest first.

    Examples
    --------
    >>> from discreet.privacy.accounting import gaussian_event
    >>> from discreet.privacy.ledger import ModelLedger
    >>> ledger = ModelLedger("sqlite://", note="weekly report", target="readmitted")
    >>> ledger.open("patients", epsilon=1.0, delta=1e-6)
    >>> with ledger.reserve("patients", gaussian_event(20.0), note="LogisticRegression", relation="replace"):
    ...     pass
    >>> ledger.record_model("0" * 64)  # the SHA-256 of the file of the model
    >>> [(entry.note, entry.target, entry.model[:4]) for entry in ledger.entries("patients")]
    [('weekly report (LogisticRegression)', 'readmitted', '0000')]
    """

    def __init__(self, url: str | os.PathLike[str], note: str = "", target: str = "") -> None:
        super().__init__(url)
        self.note = note
        self.target = target
        self.granted: list[Reservation] = []

    def reserve(
        self,
        dataset: str,
        event: Event,
        note: str = "",
        relation: Relation | str | None = None,
        target: str = "",
        **settings: Any,
    ) -> Reservation:
        """Count `event` against the budget, as `Ledger.reserve` does, with the note and target of the model.

        Guarantee: as for `Ledger.reserve`.
        """
        why = f"{self.note} ({note})" if self.note and note else self.note or note
        reservation = super().reserve(dataset, event, why, relation, target or self.target, **settings)
        self.granted.append(reservation)
        return reservation

    @FORKS.using()
    def record_model(self, sha256: str) -> None:
        """Write the SHA-256 of the model's file beside everything that was reserved for it."""
        with self._chain.writing() as writer:
            for reservation in self.granted:
                writer.append("model", reservation.dataset, {"entry": reservation.id, "sha256": sha256})

    def __reduce__(self) -> tuple[type[Ledger], tuple[str, ...], dict[str, bool]]:
        made, (url, *_), state = super().__reduce__()
        return made, (url, self.note, self.target), state
