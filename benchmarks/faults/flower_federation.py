"""Faults of a federation on Flower: a SuperLink and two data holders as processes, with TLS, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from faults.found import DAY, Clock, fill, new_ledger, read_only, row, small_disk, waited

AGAIN = "`flwr run` again goes on in the round where it was"
WITHOUT = "the SuperLink turns it away; rounds go on without it"
CLIENTS, ROUNDS, ROWS, TIMEOUT = 2, 3, 60, 20.0
VICTIM = "client 0"


class Federation:
    """A deployment of which the victim has its state and its ledger on a small disk, and perhaps a clock of its own."""

    def __init__(self, folder: Path, disk: Path, clocked: str, state_beside: bool) -> None:
        from discreet.federated import plan_federated, split_evenly
        from discreet.federated.flower.loopback import deployment_of
        from discreet.problem import L2, Logistic, Problem

        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (CLIENTS * ROWS, 3))
        y = np.where(X[:, 0] + 0.2 * rng.normal(size=CLIENTS * ROWS) > 0.0, 1.0, -1.0)
        settings = {"clients": CLIENTS, "rounds": ROUNDS, "epsilon": 3.0, "unit": "record", "rows_per_client": ROWS}
        plan = plan_federated(Problem(Logistic(), L2(0.01)), 3, (-1.0, 1.0), **settings)
        self.made = deployment_of(folder, plan, X, y, split_evenly(CLIENTS * ROWS, CLIENTS), timeout=TIMEOUT)
        self.folder, self.disk, self.url = folder, disk, new_ledger(disk / "budget.db")
        own = self.made.clients[VICTIM]
        self.state_file = (disk if state_beside else folder) / "state"
        own[own.index("--state") + 1] = str(self.state_file)
        own += ["--ledger", self.url, "--dataset", "rows"]
        self.clock = Clock(folder) if clocked else None
        if clocked == "server":
            self.made._environment |= self._clocked()
        elif clocked == "client":
            start, usual = self.made.start_client, dict(self.made._environment)

            def start_client(client: str) -> None:
                self.made._environment = usual | (self._clocked() if client == VICTIM else {})
                start(client)
                self.made._environment = usual

            self.made.start_client = start_client  # type: ignore[method-assign]

    def _clocked(self) -> dict[str, str]:
        return {name: self.clock.environment[name] for name in ("LD_PRELOAD", "DISCREET_CLOCK")} if self.clock else {}

    def start(self) -> None:
        """Start the run."""
        self.made.start_run()

    def state(self, name: str) -> dict[str, Any]:
        """A state, of the server or of the victim; empty before the first."""
        path = self.state_file if name == VICTIM else Path(self.made.server_settings.state)
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def reach(self, number: int) -> None:
        """Wait until the server asks in this round."""
        waited(lambda: self.state("server").get("round", 0) >= number)

    def outcome(self) -> dict[str, Any]:
        """The model and what happened; why there is none, under "error"."""
        path = Path(self.made.server_settings.outcome)
        waited(path.exists)
        found = dict(json.loads(path.read_text()))
        path.unlink()
        return found

    def log(self) -> str:
        """The last line of the victim's log about something that went wrong."""
        lines = (self.folder / "logs" / "client-0.log").read_text(errors="replace").splitlines()
        wrong = [line for line in lines if line.startswith(("no ", "error", "warning")) or "does not accept" in line]
        assert not any("Traceback" in line for line in lines), lines
        return wrong[-1].replace(str(self.disk), "").replace(str(self.folder), "") if wrong else ""


@contextmanager
def federation(clocked: str = "", state_beside: bool = True) -> Iterator[Federation]:
    """A federation in a folder of its own, the run not yet started; all programs are gone afterwards.

    The victim's state lies beside its ledger, or elsewhere: its lock is an open file, which keeps a disk writable.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="discreet-faults-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disk = stack.enter_context(small_disk(folder.with_name(f"{folder.name}-disk")))
        found = Federation(folder, disk, clocked, state_beside)
        stack.enter_context(found.made)
        yield found


def used(outcome: dict[str, Any], client: str = VICTIM) -> int:
    """In how many of the rounds a client was used."""
    return sum(client in each["used"] for each in outcome.get("rounds", []))


def all_done(outcome: dict[str, Any]) -> bool:
    return outcome.get("ended") == "all rounds are done"


def told(found: Federation, name: str, happens: str, said: str, granted: list[str], passed: bool) -> dict[str, Any]:
    """A line of the table; whatever happened, the victim has answered no more often than the plan says."""
    read_only(found.disk, False)
    answers = found.state(VICTIM).get("number", 0)
    return row(name, happens, said, found.url, granted, passed and answers <= ROUNDS)


def client_killed() -> dict[str, Any]:
    happens = "it is asked again in the same round; all rounds are done"
    with federation() as found:
        found.start()
        found.reach(2)
        found.made.kill(VICTIM)
        found.made.start_client(VICTIM)
        outcome = found.outcome()
        passed = all_done(outcome) and used(outcome) >= ROUNDS - 1 and used(outcome, "client 1") == ROUNDS
        return told(found, "a client is killed and started again", happens, "", ["committed"], passed)


def client_gone() -> dict[str, Any]:
    with federation() as found:
        found.start()
        found.reach(2)
        found.made.kill(VICTIM)
        outcome = found.outcome()
        said = f"model.json: missing: {', '.join(outcome['rounds'][-1]['missing'])}"
        passed = all_done(outcome) and used(outcome, "client 1") == ROUNDS
        happens = "rounds go on without it, after their timeout"
        return told(found, "a client is killed for good", happens, said, ["committed"], passed)


def superlink_killed() -> dict[str, Any]:
    happens = "started again, with the keys registered and `flwr run` again, the run goes on where it was"
    with federation() as found:
        found.start()
        found.reach(2)
        found.made.kill("superlink")
        found.made.start_superlink()
        for client in found.made.clients:
            found.made.register(client)
        found.made.start_run()
        outcome = found.outcome()
        return told(found, "the SuperLink is killed", happens, found.log(), ["committed"], all_done(outcome))


def server_apps(found: Federation) -> list[int]:
    """The processes in which Flower runs the server's app."""
    numbers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except OSError:
            continue
        if b"bin/flwr-serverapp" in command and os.fsencode(found.folder) in environment:
            numbers.append(int(folder.name))
    return numbers


def server_killed() -> dict[str, Any]:
    with federation() as found:
        found.start()
        found.reach(2)
        for number in server_apps(found):
            os.kill(number, signal.SIGKILL)
        found.made.start_run()
        outcome = found.outcome()
        return told(found, "the server's app is killed", AGAIN, "", ["committed"], all_done(outcome))


def server_clock() -> dict[str, Any]:
    """A clock that is wrong for a while: Flower ends the app, whose token has expired for it."""
    with federation("server") as found:
        found.start()
        found.reach(2)
        assert found.clock is not None
        found.clock.jump(DAY)
        waited(lambda: not server_apps(found))
        found.clock.jump(0)
        found.made.start_run()
        outcome = found.outcome()
        name, happens = (
            "the clock of the server jumps a day ahead, until it is set right",
            f"Flower ends the app; {AGAIN}",
        )
        return told(found, name, happens, found.log(), ["committed"], all_done(outcome))


def server_disk() -> dict[str, Any]:
    with federation() as found:
        state = str(found.disk / "server.state")
        found.made.server_settings = replace(found.made.server_settings, state=state)
        found.start()
        found.reach(2)
        fill(found.disk)
        outcome = found.outcome()
        said = str(outcome.get("error", "")).replace(str(found.disk), "")
        (found.disk / "rest").unlink()
        found.made.start_run()
        passed = "No space left" in said and all_done(found.outcome())
        happens = f"the run ends; with room again, {AGAIN}"
        return told(
            found, "the disk of the server's state fills up", happens, f"model.json: {said}", ["committed"], passed
        )


def client_disk(name: str, meddle: Callable[[Path], None], before: bool) -> dict[str, Any]:
    """The victim's disk, with its ledger and perhaps its state, before its first answer or after it."""
    with federation(state_beside=meddle is fill) as found:
        if before:
            waited(found.state_file.with_name("state.process").exists)
            meddle(found.disk)
        found.start()
        if not before:
            found.reach(2)
            meddle(found.disk)
        outcome = found.outcome()
        said, granted = found.log(), [] if before else ["committed"]
        fewer = used(outcome) == 0 if before else 0 < used(outcome) < ROUNDS
        happens = f"{'it answers nothing' if before else 'it answers no more'}; rounds go on without it"
        return told(found, name, happens, said, granted, fewer and all_done(outcome) and said.startswith("no "))


def client_clock(seconds: int) -> dict[str, Any]:
    with federation("client") as found:
        found.start()
        found.reach(2)
        assert found.clock is not None
        found.clock.jump(seconds)
        outcome = found.outcome()
        name = f"the clock of a client jumps a day {'ahead' if seconds > 0 else 'back'}"
        passed = all_done(outcome) and 0 < used(outcome) < ROUNDS
        return told(found, name, WITHOUT, found.log(), ["committed"], passed)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "client": client_killed,
    "client-gone": client_gone,
    "superlink": superlink_killed,
    "server": server_killed,
    "server-disk": server_disk,
    "full": lambda: client_disk("the disk of a client's ledger and state is full", fill, True),
    "fills": lambda: client_disk("the disk of a client's ledger and state fills up", fill, False),
    "read-only": lambda: client_disk("a client's ledger is read-only", read_only, True),
    "client-ahead": lambda: client_clock(DAY),
    "client-back": lambda: client_clock(-DAY),
    "server-ahead": server_clock,
}


if __name__ == "__main__":
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    print(json.dumps(CASES[sys.argv[1]]()))
