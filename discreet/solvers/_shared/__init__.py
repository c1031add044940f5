"""What several solvers use; nothing here is a solver."""
