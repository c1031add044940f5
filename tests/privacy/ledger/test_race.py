"""Whatever happens to the processes, the budget is never passed and no grant is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.privacy.ledger import Ledger
from tests.ledger_race import DATASET, GRANTS, KILLS
from tests.postgres import postgres_server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/race.db"
        return
    with postgres_server() as address:
        yield address


def test_eight_processes_with_forks_threads_and_kills_lose_nothing(url: str, tmp_path: Path) -> None:
    """While threads read the ledger and its file, processes are forked and killed with signal 9.

    A kill may come between a grant and the line about it, in both threads of its process: those grants are counted
    though nobody learned of them. Every other grant has its line, and every line is in the ledger.
    """
    folder = tmp_path / "granted"
    folder.mkdir()
    repository = Path(__file__).parents[3]
    command = [sys.executable, "-W", "ignore", "-m", "tests.ledger_race", url, str(folder)]
    done = subprocess.run(command, cwd=repository, timeout=120, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for log in folder.iterdir() for line in log.read_text().splitlines()]
    granted = {(int(id), hash) for id, hash in lines}
    ledger = Ledger(url)
    stored = {(record.number, record.hash) for record in ledger._chain.read()[0]}
    assert granted <= stored, "a grant was lost"
    assert len(granted) == len(lines), "two processes were given the same reservation"
    assert len(ledger.entries(DATASET)) == GRANTS, "more or less than the budget was granted"
    assert GRANTS - 2 * KILLS <= len(lines) <= GRANTS
    assert ledger.spent(DATASET) == pytest.approx(GRANTS / 1000.0)
    assert ledger.verify() == []
