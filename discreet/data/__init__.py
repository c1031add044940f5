"""Where rows come from: the gate for raw input, files, schemas, and the public facts that plans are made from."""

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import load

__all__ = ["Data", "Public", "load"]
