"""What theorems say of planned runs: looked up by the type of the solver, so that no solver knows them.

A theorem about a solver is registered in the file of its family; for a solver of your own, `distance_of.register` and
`bound_of.register` do the same. Proofs: docs/guarantees/utility.md.
"""

from discreet.solvers.theory import selections, steps
from discreet.solvers.theory.plan_theory import bound_of, distance_of

__all__ = ["bound_of", "distance_of", "selections", "steps"]
