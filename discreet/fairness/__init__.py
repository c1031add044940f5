"""How much the noise of a private model can change its fairness and its accuracy, group by group."""
