"""DP-SkGD: descent that moves a random set of coordinates a step, drawn by any unbiased diagonal sketch."""
