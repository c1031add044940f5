"""Damaged ledger files: bytes, cells of tables, and records whose hashes were computed again after the damage."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from discreet import BudgetExceededError, Ledger
from discreet.privacy import accounting
from discreet.privacy.ledger.chain import digest_of
from discreet.privacy.ledger.records import GENESIS, Record
from discreet.privacy.ledger.statement import as_csv, as_json, ledger_statement
from tests.fuzzing import LONGEST, Target
from tests.mutations import damaged_bytes, damaged_json, either, other_numbers

DATE = "2024-01-01T00:00:00.000000+00:00"
CELLS = (
    *(None, 0, -1, 1, 2**62, 1e308, float("inf"), b"\xff\x00", "", "x", "x" * 5_000, "\x00", "a\nb", "\x1b[2J", "{}"),
    *("[]", "null", '{"epsilon": NaN}', "[" * 100_000, "9" * 10_000, GENESIS, "open", "reserve", "commit", "model"),
)
TABLES = ("discreet_records", "discreet_tip", "discreet_totals")


@cache
def ledger_files() -> list[bytes]:
    """Two ledgers: one with several kinds of noise, one with a pure promise."""
    return [_ledger_file(1e-6), _ledger_file(0.0)]


def _ledger_file(delta: float) -> bytes:
    a = accounting
    with tempfile.TemporaryDirectory() as folder:
        ledger, path = Ledger(Path(folder) / "good.db"), Path(folder) / "good.db"
        ledger.open("visits", epsilon=5.0, delta=delta, relation="zero_out")
        mixed = [a.gaussian_event(20.0), a.gaussian_event(30.0, 3), a.selection_event(0.01), a.poisson_event(0.01, 5.0)]
        for event in [a.laplace_event(20.0, 2), a.pure_event(0.1)] if delta == 0.0 else mixed:
            ledger.reserve("visits", event, "a note", relation="zero_out", target="y").commit()
        with closing(sqlite3.connect(path)) as database:
            _rechain(database, DATE)
            return database.serialize()


def _rechain(database: sqlite3.Connection, date: str | None = None) -> None:
    """Compute the hashes of totals and records again, so that only their contents can give the damage away."""
    totals = dict(database.execute("SELECT number, total FROM discreet_totals").fetchall())
    previous = GENESIS
    for row in database.execute("SELECT * FROM discreet_records ORDER BY number").fetchall():
        record = Record(*row[:4], date or row[4], "")
        if record.number in totals:
            body = json.loads(record.body) | {"total": digest_of(totals[record.number])}
            record = Record(*row[:3], json.dumps(body, sort_keys=True), record.created, "")
        previous = record.digest(previous)
        values = (record.body, record.created, previous, record.number)
        database.execute("UPDATE discreet_records SET body = ?, created = ?, hash = ? WHERE number = ?", values)
    database.execute("UPDATE discreet_tip SET hash = ?", (previous,))
    database.commit()


def damaged_cell(rng: random.Random, data: bytes) -> bytes:
    """Another value in one cell, a row too few, or a table too few."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        table, way = rng.choice(TABLES), rng.random()
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        number = rng.choice(database.execute(f"SELECT rowid FROM {table}").fetchall())[0]
        if way < 0.05:
            database.execute(f"DROP TABLE {table}")
        elif way < 0.1:
            database.execute(f"DELETE FROM {table} WHERE rowid = ?", (number,))
        else:
            change = f"UPDATE OR IGNORE {table} SET {rng.choice(columns)} = ? WHERE rowid = ?"
            try:
                database.execute(change, (rng.choice(CELLS), number))
            except sqlite3.Error:  # the table itself refuses: no cell of it may be empty, say
                return damaged_bytes(rng, data)
        database.commit()
        return database.serialize()


def damaged_body(rng: random.Random, data: bytes) -> bytes:
    """Damage inside a record or a running total, with hashes that fit it."""
    way = rng.choice((damaged_json, other_numbers))
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        rows = database.execute("SELECT number, body FROM discreet_records").fetchall()
        sums = database.execute("SELECT number, total FROM discreet_totals").fetchall()
        number, text = rng.choice([*rows, *sums * 3])
        if (number, text) in sums:
            database.execute("UPDATE discreet_totals SET total = ?", (way(rng, json.loads(text)).decode(),))
        else:
            change = "UPDATE discreet_records SET body = ? WHERE number = ?"
            database.execute(change, (way(rng, json.loads(text)).decode(), number))
        try:
            _rechain(database)
        except (ValueError, TypeError, RecursionError):  # the damaged body cannot take the hash of its total
            return damaged_bytes(rng, data)
        return database.serialize()


def read_ledger(path: Path) -> None:
    """What `verify` finds nothing wrong with can be read and used; the rest is refused and grants nothing."""
    Path(f"{path}-journal").unlink(missing_ok=True)
    ledger = Ledger(path)
    wrong = ledger.verify()
    for line in wrong:
        assert line.isprintable(), f"verify says more than one line: {line[:100]!r}"
        assert len(line) <= LONGEST, f"verify says {len(line)} characters: {line[:100]}"
    try:
        _use(ledger)
    except (ValueError, RuntimeError) as error:
        if not wrong:
            raise AssertionError(f"verify finds nothing wrong, but: {str(error)[:200]}") from error
        raise


def _use(ledger: Ledger) -> None:
    statement = ledger_statement(ledger, ledger.datasets())
    as_json(statement)
    as_csv(statement)
    for budget in statement["datasets"]:
        assert budget["spent"] >= 0.0, "what was spent is no number"
        name, kept = budget["dataset"], budget["relation"]
        try:
            ledger.reserve(name, accounting.laplace_event(1_000.0), relation=kept).commit()
        except BudgetExceededError:
            assert budget["remaining"] < 0.01, "a small event is refused"
        else:
            assert ledger.spent(name) <= budget["epsilon"] * (1.0 + 1e-9), "more was granted than promised"


LEDGER = Target("ledger", 30, ledger_files, either(damaged_bytes, damaged_cell, damaged_body), read_ledger, ".db")
