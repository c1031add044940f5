"""How much unfairness planned noise can add, before any row is read."""
