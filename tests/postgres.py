"""A PostgreSQL server that a test starts for itself and stops again, where its programs are installed."""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs() -> Path:
    """The folder of `initdb` and `postgres`; skips the test, with a reason, where they are missing."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed (discreet[postgres])")
    known = shutil.which("initdb")
    found = [Path(known).resolve().parent] if known else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found or not (found[-1] / "postgres").exists():
        pytest.skip("no PostgreSQL server is installed: initdb and postgres were not found")
    return found[-1]


def server_user() -> str | None:
    """Whom to run the server as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody'")


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a database on a new server, which is gone afterwards."""
    bin, user = programs(), server_user()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    run = {"user": user, "cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    data = folder / "data"
    try:
        setup = [bin / "initdb", "-D", data, "-U", "steward", "--auth=trust", "--no-sync", "--no-locale", "-E", "UTF8"]
        subprocess.run(setup, check=True, **run)
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        control = [bin / "pg_ctl", "-D", data, "-w"]
        subprocess.run([*control, "-l", folder / "log", "-o", options, "start"], check=True, **run)
        try:
            yield f"postgresql://steward@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, **run)
    finally:
        shutil.rmtree(folder)
