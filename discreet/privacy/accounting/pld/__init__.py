"""Privacy-loss distributions: what is computed on a grid of losses, always rounded upwards.

`discretisation` puts one dominating pair on a grid and chooses the grid, `convolution` composes many pairs by a Fourier
transform, `selections` composes adaptive selections backwards.
"""
