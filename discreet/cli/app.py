"""All commands, in the order of the help; each lives in a file of this folder, which registers it."""

from __future__ import annotations

from importlib import import_module

from discreet.cli.console import app

__all__ = ["app"]

FILES = (
    *("demo", "fit", "models", "plan", "account", "schema", "fairness"),
    *("sign", "ledger", "audit", "federated", "federated_flower"),
)
for name in FILES:
    import_module(f"discreet.cli.{name}")
