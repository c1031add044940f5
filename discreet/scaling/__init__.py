"""Private scales: where each column lies and how wide it is, learned with a share of the budget."""
