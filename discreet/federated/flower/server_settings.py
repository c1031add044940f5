"""What the server's process is told: a file on its own machine, named in the run configuration."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from discreet.federated.client_state import write_durably
from discreet.federated.plan_file import read_plan
from discreet.federated.server import Server


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
        content = json.loads(path.read_text())
        return cls(**content | {"clients": tuple(content["clients"])})

    def write(self, path: Path) -> None:
        """Write the settings to a file."""
        path.write_text(json.dumps(asdict(self), indent=2))

    def server(self) -> Server:
        """Return the server, new or as an earlier one left it."""
        return Server(read_plan(Path(self.plan)), self.clients, random_state=self.seed, state=self.state)

    def write_outcome(self, outcome: dict[str, Any]) -> None:
        """Write the outcome; who finds the file finds all of it."""
        write_durably(Path(self.outcome), json.dumps(outcome), mode=0o666)  # as any new file, less the umask
