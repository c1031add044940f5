"""The durable privacy budget of a data set: reserve before the rows are read, commit after.

`book` is the ledger that users see, `reservation` what it hands out, `allowance` decides whether events keep a
promise, `chain` stores records that cannot be edited unnoticed.
"""

from discreet.privacy.ledger.allowance import Allowance
from discreet.privacy.ledger.ledger import Entry, Ledger, Reservation

__all__ = ["Allowance", "Entry", "Ledger", "Reservation"]
