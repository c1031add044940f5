"""Parts of the experiment about private and fairer models of incomes."""
