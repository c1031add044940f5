"""Numba kernels: arrays in, arrays out, no classes, no generator, no input or output."""
