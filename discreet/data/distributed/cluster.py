"""A client for a Dask cluster that people name on the command line, or for one of this machine."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

MISSING = "Dask is not installed; pip install 'discreet[dask]'."
TIMEOUT = "10s"  # in which a scheduler must answer
ADDRESS = re.compile(r"(?!local:)((tcp|tls|ucx|wss?)://)?[^/\s]+:\d+")  # as schedulers print theirs, or host:port
NO_ADDRESS = "no Dask scheduler answers at {address!r}; pass --dask tcp://HOST:PORT, local or local:2."


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address such as tcp://10.0.0.1:8786.

    "local" starts a cluster of this machine, with a worker for each core, and "local:2" one with two workers; it ends
    with the block, and listens on the loopback interface alone.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ValueError(MISSING) from error
    own = re.fullmatch(r"local(?::([1-9]\d*))?", address)
    if own is None and not ADDRESS.fullmatch(address):  # Dask would take any word for a host, and wait for it
        raise ValueError(NO_ADDRESS.format(address=address))
    with ExitStack() as stack:
        if own is not None:
            settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
            workers = None if own[1] is None else int(own[1])
            cluster = LocalCluster(n_workers=workers, silence_logs=logging.ERROR, **settings)
            stack.enter_context(cluster)
            address = cluster.scheduler_address
        try:
            client = Client(address, timeout=TIMEOUT)
        except Exception as error:  # also a MemoryError: Dask reads the answer of a web server as a length
            _close_client_of(address)
            raise ValueError(NO_ADDRESS.format(address=address)) from error
        yield stack.enter_context(client)


def _close_client_of(address: str) -> None:
    """Close a client that could not connect: Dask keeps it as the one for all further work of this process."""
    from distributed import Client

    with suppress(ValueError):  # there is none
        client = Client.current()
        if client.scheduler is None or client.scheduler.address == address:
            client.close(timeout=TIMEOUT)
