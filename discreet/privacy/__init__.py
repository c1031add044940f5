"""Everything that makes a release private: relations, budgets, mechanisms, accounting, randomness, the ledger."""
