"""Kernels: arrays in, arrays out, no classes, no generator, no input or output; compiled, or with NumPy."""
