"""The ServerApp: the library's own rounds, with Flower's grid to reach the clients."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from discreet.federated.flower.app import ServerSettings
from discreet.federated.flower.sender import GridSender
from discreet.federated.rounds import Request, run_rounds
from discreet.federated.server import Server

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train by the settings that the run configuration names, and write the outcome where they say.

    The outcome is written also if something fails: whoever waits for the file then reads why there is no model.
    """
    settings = ServerSettings.read(Path(str(context.run_config["settings"])))
    try:
        settings.write_outcome(_train(grid, settings))
    except Exception as error:
        settings.write_outcome({"error": f"{type(error).__name__}: {error}"})
        raise


def make_server_app(server: Server, *, timeout: float, poll: float = 0.25) -> ServerApp:
    """Make a ServerApp that runs all rounds that a server has left; afterwards the server holds the model.

    Parameters
    ----------
    server : Server
    timeout : float
        Seconds after which a round goes on without those who have not answered.
    poll : float, default=0.25
        Seconds between two looks for answers.

    Returns
    -------
    flwr.serverapp.ServerApp
    """
    made = ServerApp()

    @made.main()
    def run(grid: Grid, context: Context) -> None:
        run_rounds(server, GridSender(grid, server.plan.digest, timeout=timeout, poll=poll))

    return made


def _train(grid: Grid, server_settings: ServerSettings) -> dict[str, Any]:
    """Run all rounds; returns the model and what happened, as JSON values."""
    server = server_settings.server()
    sender = GridSender(grid, server.plan.digest, timeout=server_settings.timeout)
    sender.wait_for(server.clients, server_settings.wait)
    seconds: list[float] = []

    def timed(requests: dict[str, Request]) -> list[Any]:
        begin = time.monotonic()
        answers = sender(requests)
        seconds.append(time.monotonic() - begin)
        return list(answers)

    reports = run_rounds(server, timed)
    coefficients, intercept = server.to_user(server.averaged_weights)
    return {
        "coef": coefficients.tolist(),
        "intercept": intercept,
        "weights": server.weights.tolist(),
        "averaged_weights": server.averaged_weights.tolist(),
        "plan": server.plan.to_dict(),
        "ended": server.ended,
        "rounds": [vars(report) | {"seconds": took} for report, took in zip(reports, seconds, strict=True)],
    }
