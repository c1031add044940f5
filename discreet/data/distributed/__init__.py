"""Rows that lie on the workers of a cluster: sums of blocks are computed there, and the driver adds the noise."""
