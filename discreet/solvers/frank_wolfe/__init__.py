"""DP Frank-Wolfe: at every step a vertex of the set is chosen privately and the weights move towards it."""
