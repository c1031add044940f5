"""Private screening: the columns that go with the target are chosen first, and a model is fitted on these alone."""

from discreet.solvers.screened.solver import Screened

__all__ = ["Screened"]
