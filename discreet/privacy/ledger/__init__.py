"""The durable privacy budget of a data set: reserve before the rows are read, commit after.

From what users see down to the disk: `ledger`, which `model_ledger` extends for the training of one model, and the
`reservation` it hands out; `statement`, all of it for people to read; `account`, what is promised to a data set and
spent (`total`); `chain`, `records` that cannot be edited unnoticed; `store`, what a database must do, and `databases`
that do it; `locks`, which keep processes, threads and names of a file from getting in each other's way.
"""

from discreet.privacy.ledger.account import Allowance
from discreet.privacy.ledger.ledger import Entry, Ledger, Reservation
from discreet.privacy.ledger.model_ledger import ModelLedger

__all__ = ["Allowance", "Entry", "Ledger", "ModelLedger", "Reservation"]
