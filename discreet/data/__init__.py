"""Where rows come from: the gate for raw input, files, schemas, and the public facts that plans are made from."""

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {"Data": "rows", "Public": "public", "load": "loading"}
__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.data.loading import load as load
    from discreet.data.public import Public as Public
    from discreet.data.rows import Data as Data
