"""The parts of experiments/defaults.py, and the register of all numeric constants."""
