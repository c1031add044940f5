"""The app that `flwr run` submits: a folder that names the library's apps, and the settings of the server's process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discreet
from discreet._common.codec import built, read_json_file, write_durably, write_json_file, written
from discreet.federated.planning import read_plan
from discreet.federated.server import Server

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


@dataclass(frozen=True)
class ServerSettings:
    """Settings of the server of a run on Flower.

    Attributes
    ----------
    plan : str
        Path of the plan.
    clients : tuple of str
        Names of the clients, as their keys were registered at the SuperLink.
    state : str
        Path of the server's state: a server that is started again goes on where it stopped.
    outcome : str
        Path of the file that receives the model.
    timeout : float
        Seconds after which a round goes on without those who have not answered.
    wait : float
        Seconds that the first round waits for all clients to connect.
    seed : int, optional
        For the choice of clients; no privacy rests on it.
    """

    plan: str
    clients: tuple[str, ...]
    state: str
    outcome: str
    timeout: float = 60.0
    wait: float = 60.0
    seed: int | None = None

    @classmethod
    def read(cls, path: Path) -> ServerSettings:
        """Return what `write` wrote."""
        return read_json_file(path, lambda content: built(cls, content), f"{path} holds no settings of a server")

    def write(self, path: Path) -> None:
        """Write the settings to a file on the server's machine, which the run configuration names."""
        write_json_file(path, written(self))

    def server(self) -> Server:
        """Return the server, new or as an earlier one left it."""
        return Server(read_plan(Path(self.plan)), self.clients, random_state=self.seed, state=self.state)

    def write_outcome(self, outcome: dict[str, Any]) -> None:
        """Write the outcome; who finds the file finds all of it."""
        write_durably(Path(self.outcome), json.dumps(outcome), mode=0o666)  # as any new file, less the umask
