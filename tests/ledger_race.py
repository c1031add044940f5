"""A race for the budget of one data set: forks, threads, kills and careless copies, as a program of its own.

`python -m tests.ledger_race URL FOLDER`: processes write what they were granted to files in the folder, one line
each, as soon as `reserve` has returned. What a file names must be in the ledger afterwards.
"""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from discreet._common.exceptions import BudgetExceededError
from discreet.privacy.accounting import laplace_event
from discreet.privacy.ledger import Ledger

DATASET = "t"
GRANTS = 160  # how many events the budget covers
EVENT = laplace_event(1000.0)  # epsilon 0.001 at delta 0
PROCESSES, KILLS = 8, 16


def grab(ledger, log):
    """Take as much as there is."""
    while True:
        try:
            reservation = ledger.reserve(DATASET, EVENT, relation="replace")
        except BudgetExceededError:
            return
        os.write(log, f"{reservation.id} {reservation.hash}\n".encode())


def watch(ledger):
    """Read the ledger again and again."""
    while True:
        ledger.spent(DATASET)
        time.sleep(0.002)


def copy(path):
    """Copy the file again and again, as a careless colleague would: SQLite's locks end when the file is closed."""
    while True:
        path.read_bytes()
        time.sleep(0.002)


def start(task, *arguments):
    thread = threading.Thread(target=task, args=arguments, daemon=True)
    thread.start()
    return thread


def work(ledger, folder, path):
    """One process: two threads that reserve, one that copies the file if there is one."""
    log = os.open(folder / f"{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if path is not None:
        start(copy, path)
    grabbing = [start(grab, ledger, log) for _ in range(2)]
    for thread in grabbing:
        thread.join()


def fork_worker(ledger, folder, path):
    child = os.fork()
    if child:
        return child
    try:
        work(ledger, folder, path)
    finally:
        os._exit(0)
    return 0


def main(url, folder):
    """Keep eight processes running, kill some, and wait until all have found the budget empty."""
    ledger, chance = Ledger(url), random.Random(0)
    path = Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else None
    ledger.open(DATASET, GRANTS / 1000.0, 0.0)
    start(watch, ledger)
    running = [fork_worker(ledger, folder, path) for _ in range(PROCESSES)]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.0, 0.1))
        victim = running.pop(chance.randrange(PROCESSES))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        running.append(fork_worker(ledger, folder, path))
    for child in running:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
