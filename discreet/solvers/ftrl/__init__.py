"""DP-FTRL: follow the regularised leader of noisy running sums of gradients; every pass reads each row once."""

from discreet._common.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
