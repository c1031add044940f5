"""Gradient steps whose budget follows what has been released: docs/guarantees/adaptive.md."""
