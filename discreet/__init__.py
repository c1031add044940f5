"""discreet: linear and generalised linear models on sensitive tables, with differential privacy.

Names are loaded on first use, so that `import discreet` and `discreet --help` stay cheap.
"""

from discreet._common.lazy import lazy_names

__version__ = "0.1.0"

_names, __getattr__, __dir__ = lazy_names(__name__, __file__)
__all__ = ["__version__", *_names]  # noqa: PLE0604 - every entry is a string
