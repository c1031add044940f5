"""The folder that `flwr run` submits: it names the library's apps, and where the server finds its settings."""

from __future__ import annotations

import json
from pathlib import Path

import discreet

APP = """[project]
name = "discreet-federated"
version = {version}
description = "Federated training with differential privacy"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "discreet"

[tool.flwr.app.components]
serverapp = "discreet.federated.flower.server_app:app"
clientapp = "discreet.federated.flower.client_app:app"

[tool.flwr.app.config]
settings = {settings}
"""


def write_app(folder: Path, settings_file: Path) -> Path:
    """Write the folder for `flwr run`.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    settings_file : Path
        The server's settings, on the machine of the SuperLink. Clients see this path and nothing more of them.

    Returns
    -------
    Path
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A JSON string is a TOML string too.
    text = APP.format(version=json.dumps(discreet.__version__), settings=json.dumps(str(settings_file)))
    (folder / "pyproject.toml").write_text(text)
    return folder
