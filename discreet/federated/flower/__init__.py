"""Federated training on Flower: the library's server and clients, with Flower to carry their messages.

Importing this package turns Flower's telemetry and its check for updates off, unless their environment
variables say otherwise: a run opens no connection that nobody asked for.
"""

from __future__ import annotations

import importlib.util
import os
import sys

NO_CALLS_HOME = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}

for _name, _value in NO_CALLS_HOME.items():
    os.environ.setdefault(_name, _value)
# Flower reads the first variable once, when it is imported: for a Flower that was imported before, it is set again.
if (_telemetry := sys.modules.get("flwr.supercore.telemetry")) is not None:
    vars(_telemetry)["FLWR_TELEMETRY_ENABLED"] = os.environ["FLWR_TELEMETRY_ENABLED"]


def require_flower() -> None:
    """Raise an ImportError that says what to install, if Flower is not there."""
    if importlib.util.find_spec("flwr") is None:
        raise ImportError("Flower is not installed; install it with: pip install 'discreet[flower]'")
