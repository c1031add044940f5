"""Privacy-loss distributions: what is computed on a grid of losses, always rounded upwards.

`discretisation` puts one dominating pair on a grid, `window` chooses the grid, `fourier` and `convolution` compose
many pairs by a Fourier transform, `selections` composes adaptive selections backwards.
"""
