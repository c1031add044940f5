"""Federated learning in rounds: ADMM with its defaults, and averaging as Flower ships it, tuned.

`run(table, setting, seed)` takes a `federated.holders.HolderTable`; the setting has clients, rounds and runs. Averaging
gets the best of nine settings, chosen by the held-out log-loss, which is not private and in its favour.
"""

from federated.averaging import averaged
from federated.holders import planned
from framework import Method

from discreet.federated import simulate
from discreet.federated.server import ModelMap

NAME = "federated"
STEPS, CLIPS = (0.3, 1.0, 3.0), (0.1, 0.3, 1.0)  # of averaging: the length of its local steps, and its clipping norm
TUNING_SEED = 1_000


def by_admm(table, setting, seed, **settings):
    """Held-out scores of federated ADMM."""
    plan, parts = planned(table, setting["clients"], setting["rounds"], **settings), table.parts(setting["clients"])
    servers = [simulate(plan, table.X, table.y, parts, seed=seed + k).server for k in range(setting["runs"])]
    return {"scores": [table.judge(*server.to_user(server.averaged_weights)) for server in servers]}


def by_rows(table, setting, seed):
    """The same, protecting single rows from the server too."""
    fewest = min(part.size for part in table.parts(setting["clients"]).values())
    return by_admm(table, setting, seed, unit="record", model="local", rows_per_client=fewest)


def by_averaging(table, setting, seed):
    """Held-out scores of Flower's private averaging, with the best of nine settings."""
    plan, parts = planned(table, setting["clients"], setting["rounds"]), table.parts(setting["clients"])

    def scores(step, clip, seeds):
        models = [averaged(plan, table.X, table.y, parts, step, clip, one) for one in seeds]
        return [table.judge(*ModelMap(plan).to_user(w)) for w in models]

    tried = [(step, clip) for step in STEPS for clip in CLIPS]
    best = min(tried, key=lambda one: scores(*one, seeds=[TUNING_SEED])[0][0])
    return {"scores": scores(*best, seeds=range(seed, seed + setting["runs"])), "step": best[0], "clip": best[1]}


methods = (
    Method(
        "ADMM",
        "federated ADMM, nothing tuned; whole clients, central",
        by_admm,
        (NAME,),
        style={"color": "#08306b", "marker": "o", "ls": "-"},
    ),
    Method(
        "averaging (Flower), tuned",
        "FedAvg with DifferentialPrivacyServerSideFixedClipping, the best of nine settings",
        by_averaging,
        (NAME,),
        style={"color": "#d94801", "marker": "s", "ls": "--"},
        dear=True,
    ),
    Method(
        "ADMM, rows, local",
        "federated ADMM that protects single rows from the server too",
        by_rows,
        (NAME,),
        style={"color": "#238b45", "marker": "D", "ls": ":"},
    ),
)
