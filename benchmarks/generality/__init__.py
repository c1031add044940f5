"""Parts of experiments/generality.py: defaults on several hundred tables that nobody developed against."""
