"""Private scales: where the values of each column lie and how widely they spread, for a share of the budget."""
