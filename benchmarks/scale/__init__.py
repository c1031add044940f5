"""The parts of experiments/scale.py and experiments/gpu.py. Each measures in a process of its own and prints JSON."""
