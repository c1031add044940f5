"""A whole deployment on one machine: a SuperLink and the clients' SuperNodes as real processes, with TLS."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet._common.types import FloatArray, IndexArray
from discreet.federated.flower.app import ServerSettings, write_app
from discreet.federated.flower.certificates import make_client_key, make_server_certificate
from discreet.federated.flower.processes import LOOPBACK, Program, flower_environment, free_port, stop, tail
from discreet.federated.plan import FederatedPlan

CONNECTION = "discreet"


class LoopbackDeployment:
    """Start a SuperLink and one data holder for each client, train, and stop them all.

    Everything lies under one folder: certificates, keys, Flower's own files, logs, the clients' states. All
    connections are on the loopback interface, with TLS; the SuperLink accepts only the clients that were registered.

    Parameters
    ----------
    folder : Path
        An empty folder.
    clients : dict
        For each client, by its name, what `discreet federated client` is told of its rows, plan and state.
    server_settings : ServerSettings

    Attributes
    ----------
    address : str
        Host and port of the SuperLink.
    """

    def __init__(self, folder: Path, clients: dict[str, list[str]], server_settings: ServerSettings) -> None:
        self.folder, self.clients, self.server_settings = folder, clients, server_settings
        self._environment = flower_environment(folder / "flower")
        self._certificate = make_server_certificate(folder, LOOPBACK)
        self._port = free_port()
        self.address = f"{LOOPBACK}:{self._port}"
        self._programs: dict[str, Program] = {}
        self._keys: dict[str, Path] = {}

    def __enter__(self) -> LoopbackDeployment:
        try:
            self._configure()
            self.start_superlink()
            for number, client in enumerate(self.clients):
                self._keys[client], _ = make_client_key(self.folder, f"client-{number}")
                self.register(client)
                self.start_client(client)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start_superlink(self) -> None:
        """Start the SuperLink, for the first time or again: it then knows no client until `register`."""
        command: list[str | Path] = [
            *("flower-superlink", "--host", LOOPBACK, "--port", str(self._port)),
            *(*self._certificate.options, "--enable-supernode-auth", "--disable-runtime-dependency-installation"),
        ]
        self._programs["superlink"] = Program(command, self._log("superlink"), self._environment)
        self._programs["superlink"].wait_for_port(self._port)

    def register(self, client: str) -> None:
        """Tell the SuperLink the key of a client."""
        public = self._keys[client].with_suffix(".pub")
        self._flwr("supernode", "register", public, CONNECTION, "--name", client)

    def kill(self, name: str) -> None:
        """End a client with its SuperNode, or "superlink", at once, as a power cut would."""
        self._programs.pop(name).kill()

    def start_client(self, client: str) -> None:
        """Start a client, for the first time or again."""
        command: list[str | Path] = [
            *(sys.executable, "-m", "discreet.cli", "federated", "client"),
            *(*self.clients[client], "--name", client),
            *("--superlink", self.address, "--authority", self._certificate.authority),
            *("--key", self._keys[client], "--log", self._log(f"{self._keys[client].stem}-supernode")),
        ]
        self._programs[client] = Program(command, self._log(self._keys[client].stem), self._environment)

    def start_run(self) -> None:
        """Start the training."""
        self.server_settings.write(self.folder / "server.json")
        self._flwr("run", write_app(self.folder / "app", self.folder / "server.json"), CONNECTION)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Wait for the outcome; a RuntimeError that says why, if there is none."""
        path, deadline = Path(self.server_settings.outcome), time.monotonic() + seconds
        while not path.exists():
            if time.monotonic() > deadline or not self._programs["superlink"].running:
                raise RuntimeError(f"the server wrote no model:\n{tail(self._log('superlink'))}")
            time.sleep(0.05)
        outcome: dict[str, Any] = json.loads(path.read_text())
        if "error" in outcome:
            raise RuntimeError(f"the server failed: {outcome['error']}")
        return outcome

    def stop(self) -> None:
        """Stop all processes; clients first, so that they do not look for a server that is gone."""
        superlink = [self._programs.pop("superlink")] if "superlink" in self._programs else []
        stop(self._programs.values())
        stop(superlink)
        self._programs.clear()

    def _configure(self) -> None:
        """Write what Flower's commands ask for: where the SuperLink is."""
        home = self.folder / "flower"
        home.mkdir()
        (self.folder / "logs").mkdir()
        connection = {"address": self.address, "root-certificates": str(self._certificate.authority)}
        lines = [f"[superlink.{CONNECTION}]", *(f"{name} = {json.dumps(value)}" for name, value in connection.items())]
        (home / "config.toml").write_text("\n".join(lines) + "\n")

    def _flwr(self, *arguments: str | Path) -> None:
        """Run one of Flower's own commands; a RuntimeError with what it said, if it fails."""
        command = [sys.executable, "-m", "flwr.cli.app", *(str(argument) for argument in arguments)]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"flwr {' '.join(command[3:])}:\n{done.stdout}{done.stderr}")

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


def deployment_of(
    folder: Path,
    plan: FederatedPlan,
    X: FloatArray,
    y: FloatArray,
    parts: Mapping[str, IndexArray],
    *,
    seed: int | None = None,
    timeout: float = 60.0,
) -> LoopbackDeployment:
    """Write what a deployment needs: the plan, a table for each client, and the settings of the server.

    Parameters
    ----------
    folder : Path
        An empty folder.
    plan : FederatedPlan
    X, y : ndarray
        All rows, and their targets in the coding of the loss.
    parts : mapping of str to ndarray
        Which rows each client holds, from `split_evenly` or `split_by`.
    seed : int, optional
        Makes the run reproducible, for tests.
    timeout : float, default=60
        Seconds after which a round goes on without those who have not answered.

    Returns
    -------
    LoopbackDeployment
    """
    import pandas as pd

    path = folder / "plan.json"
    path.write_text(json.dumps(plan.to_dict()))
    clients = {}
    for number, (client, part) in enumerate(parts.items()):
        table = pd.DataFrame(X[part], columns=[f"x{j}" for j in range(X.shape[1])]).assign(target=y[part])
        table.to_parquet(folder / f"client-{number}.parquet")
        clients[client] = [str(folder / f"client-{number}.parquet"), "--target", "target", "--plan", str(path)]
        clients[client] += ["--state", str(folder / f"client-{number}.state")]
        clients[client] += [] if seed is None else ["--seed", str(seed)]
        clients[client] += [] if plan.is_noisy else ["--max-epsilon", "inf"]
    state, outcome = str(folder / "server.state"), str(folder / "model.json")
    settings = ServerSettings(str(path), tuple(parts), state, outcome, timeout=timeout, seed=seed)
    return LoopbackDeployment(folder, clients, settings)
