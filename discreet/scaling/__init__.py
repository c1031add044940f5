"""Private scales: where the values of each column lie and how widely they spread, learned with a share of the budget."""
