"""Whatever happens to the processes, the budget is never passed and no grant is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.privacy.accounting import laplace_event
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.records import ChainError
from tests.ledger_race import DATASET, GRANTS, KILLS
from tests.postgres import postgres_server


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/race.db"
    return new_database(request.getfixturevalue("server"), "race")


def new_database(server: str, name: str) -> str:
    """The address of an empty database."""
    sql(server, f"CREATE DATABASE {name}")
    return server.removesuffix("/postgres") + f"/{name}"


def sql(address: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


@pytest.mark.slow
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


def test_a_ledger_in_postgresql_is_checked_like_a_file(server: str) -> None:
    address = new_database(server, "checked")
    ledger = Ledger(address)
    assert ledger.verify() == ["there is no ledger in this database"]
    assert ledger.datasets() == []
    ledger.open(DATASET, 1.0, 0.0)
    ledger.reserve(DATASET, laplace_event(4.0), note="first", relation="replace").commit()
    assert ledger.verify(head=ledger.head()) == []
    assert [entry.status for entry in ledger.entries(DATASET)] == ["committed"]
    sql(address, "ALTER DATABASE checked SET default_transaction_read_only = on")
    assert ledger.verify() == ["the database is read-only for this user: nothing can be reserved"]
    with pytest.raises(OSError, match="read-only"):
        ledger.reserve(DATASET, laplace_event(4.0), relation="replace")
    sql(server, "ALTER DATABASE checked RESET default_transaction_read_only")
    sql(address, "UPDATE discreet_totals SET total = replace(total, '0.25', '0.05')")
    assert ledger.verify() == [f"the running total of data set {DATASET!r} was altered"]
    with pytest.raises(ChainError, match="running total"):
        ledger.reserve(DATASET, laplace_event(4.0), relation="replace")
    sql(address, "UPDATE discreet_records SET body = replace(body, '4.0', '9.0')")
    assert ledger.verify() == [f"record 2 (reserve {DATASET!r}) was altered"]
    sql(address, "DROP TABLE discreet_records")
    assert "holds no ledger" in ledger.verify()[0]


def test_a_server_that_does_not_answer_grants_nothing() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed (discreet[postgres])")
    absent = Ledger("postgresql://steward:secret@127.0.0.1:1/budgets")
    with pytest.raises(TimeoutError, match="nothing was granted") as error:
        absent.reserve(DATASET, laplace_event(4.0), relation="replace")
    assert "secret" not in str(error.value)
    assert "did not answer" in absent.verify()[0]
