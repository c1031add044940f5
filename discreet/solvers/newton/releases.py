"""The releases of a run, in their order: the place of each one's share in the plan's BudgetSplit."""

from __future__ import annotations

RADIUS = 0  # counts of the norms of the rows
MOMENT = 1  # the second-moment matrix of the rows
CLIP = 2  # counts of the norms of the gradients, before the first step
NEW_CLIP = 3  # the same halfway
CURVATURE_RADIUS = 4  # counts of the norms of the rows times their root curvatures, halfway
HESSIAN = 5  # the Hessian, halfway
GRADIENTS = 6  # the first of the gradient steps
