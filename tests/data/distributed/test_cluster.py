"""Fits on a real cluster of two processes: the model of the rows in memory, also when workers are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
from threading import Thread

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import default_client

from discreet import Ledger, LogisticRegression
from discreet.data.distributed import cluster, dask_engine
from discreet.data.distributed.cluster import connected
from discreet.data.distributed.dask_engine import DaskEngine, WorkersLostError
from discreet.solvers import GradientDescent
from tests.cli_tools import run

ROWS, COLUMNS = 45_000, 50  # three blocks, hence two shards
NAMES = [f"c{number}" for number in range(COLUMNS)]
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


def make_frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(ROWS, COLUMNS)), columns=NAMES)
    return table.assign(y=(table.c0 - table.c1 + rng.logistic(size=ROWS) > 0.0).astype(int))


def write_parts(frame, folder):
    folder.mkdir()
    for number, part in enumerate(np.split(np.arange(ROWS), [100, 30_000])):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet", index=False, row_group_size=7_000)
    return dd.read_parquet(folder)


def fitted(X, y, weight=None, **more):
    settings = {"solver": GradientDescent(steps=8, scale_share=0.0), "bounds": (-4, 4), "delta": 1e-6}
    return LogisticRegression(**settings, classes=[0, 1], random_state=1, **more).fit(X, y, sample_weight=weight)


@pytest.mark.slow
def test_a_cluster_gives_the_model_of_the_rows_in_memory(tmp_path):
    """Also when workers are killed. One test, so that one cluster is enough."""
    frame = make_frame()
    table, memory = write_parts(frame, tmp_path / "parts"), fitted(frame[NAMES], frame.y)
    with connected("local:2") as client:
        for each in (table, table.persist()):  # read by the workers, or in their memory already
            np.testing.assert_array_equal(fitted(each, "y").coef_, memory.coef_)
        spoilt, weight = frame.assign(c1=[repr(one) for one in frame.c1.tolist()]), np.ones(ROWS)
        spoilt.loc[5, "c1"], weight[5] = "HIV", 0.0
        spoilt = write_parts(spoilt, tmp_path / "spoilt").persist()
        neutral = fitted(spoilt, "y", invalid_rows="neutral")
        np.testing.assert_array_equal(neutral.coef_, fitted(frame[NAMES], frame.y, weight).coef_)
        out = tmp_path / "model.json"
        fit = ["--target", "y", "--task", "regression", "--solver", "sufficient-statistics", "--seed", 1]
        run("fit", tmp_path / "parts", *fit, "--dask", client.scheduler.address, "--out", out)
        assert out.exists()
        check_that_killed_workers_change_nothing(client, table, memory, tmp_path)
        check_that_rows_that_kill_every_worker_end_the_run(client, table)


def kill_worker(client, engine, shard):
    """Kill the process that holds a shard, and no other."""
    os.kill(client.run(os.getpid)[engine._places[shard]], signal.SIGKILL)


def check_that_killed_workers_change_nothing(client, table, memory, tmp_path):
    """Two die just before a round; the sum is asked again, and booked once."""
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db", allow_seeded=True)
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    rounds, ask = [], DaskEngine._ask

    def killing(self, which, method, *arguments):
        if method == "reduce":
            rounds.append(which)
            if len(rounds) in (3, 6):
                kill_worker(client, self, len(rounds) % 2)
        return ask(self, which, method, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskEngine, "_ask", killing)
        model = fitted(table, "y", ledger=ledger, dataset="clinic")
    np.testing.assert_array_equal(model.coef_, memory.coef_)
    assert any(len(which) == 1 for which in rounds)  # only what was lost is asked again
    assert len(ledger.entries("clinic")) == 1


def check_that_rows_that_kill_every_worker_end_the_run(client, table):
    ask = DaskEngine._ask

    def killing(self, which, method, *arguments):
        if method == "reduce":
            kill_worker(client, self, 0)
        return ask(self, which, method, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_engine, "MOST_REBUILDS", 0)
        patch.setattr(DaskEngine, "_ask", killing)
        with pytest.raises(WorkersLostError, match="nothing of it was released"):
            fitted(table, "y")


@pytest.mark.parametrize("address", ["nonsense://x", "local:0", "local:two", "cluster", "127.0.0.1:1"])
def test_no_scheduler_is_one_line(address, monkeypatch):
    monkeypatch.setattr(cluster, "TIMEOUT", "1s")
    with pytest.raises(ValueError, match="no Dask scheduler answers"), connected(address):
        pass


def test_a_web_server_is_no_scheduler():
    """As the port of the dashboard is; Dask takes the first bytes of its answer for a length."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer_like_the_web, args=(server,), daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ValueError, match="no Dask scheduler answers"), connected(address):
            pass
    with pytest.raises(ValueError, match="No clients found"):  # none is left for further work of this process
        default_client()
    assert dask.config.get("scheduler", None) is None


def answer_like_the_web(server):
    with contextlib.suppress(OSError):  # until the test closes it
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


class Calls:
    """An engine's view of a cluster with more workers than Dask shows unless asked, or of one without a scheduler."""

    def __init__(self, status="running"):
        self.status = status

    def scheduler_info(self, n_workers=5):
        if self.status == "closed":
            return {"type": "Scheduler"}
        return {"workers": dict.fromkeys(range(9 if n_workers == -1 else n_workers))}


def test_all_workers_are_seen():
    engine = object.__new__(DaskEngine)
    engine._client = Calls()
    assert len(engine._workers()) == 9


def test_a_scheduler_that_is_gone_is_one_line():
    """Dask has waited for it before it closes the client; nothing is won by waiting again."""
    engine = object.__new__(DaskEngine)
    engine._client = Calls("closed")
    with pytest.raises(WorkersLostError, match="its scheduler is gone"):
        engine._living(wanted=2, wait=dask_engine.RESTART_WAIT)


def test_a_run_that_is_broken_off_leaves_no_call_behind():
    """asyncio would complain of it on stderr when the loop ends."""

    async def broken_off():
        never = asyncio.get_running_loop().create_future()
        asking = asyncio.ensure_future(dask_engine._settled({0: never}))
        await asyncio.sleep(0)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        await asyncio.sleep(0)
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(broken_off()) == []


DYING = """
import os, signal, sys
import dask.dataframe as dd, numpy as np, pandas as pd
from discreet import Ridge
from discreet.data.distributed.engine import LocalEngine

reduce, asked = LocalEngine.reduce, []

def dying(self, part, how):
    asked.append(how)
    if len(asked) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return reduce(self, part, how)

LocalEngine.reduce = dying
X = np.random.default_rng(0).normal(size=(900, 2))
table = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0]), npartitions=2)
Ridge(epsilon=1.0, delta=1e-6, ledger=sys.argv[1], dataset="clinic").fit(table, "y")
"""


@pytest.mark.slow
def test_a_driver_that_dies_leaves_its_cost_counted(tmp_path):
    """Nothing was released, but nobody can know that: the reservation stays."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    ledger = Ledger(url)
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(DYING), url], check=False)
    assert died.returncode == -signal.SIGKILL
    assert len(ledger.entries("clinic")) == 1
    assert ledger.remaining("clinic") < 2.5
