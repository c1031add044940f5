"""What people read stays as it is: plans, summaries, statements, tables and reports, character by character.

After a change that is meant, write the texts anew and look at the difference: python -m tests.frozen.test_printed_texts
"""

import math
import re
import warnings
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet import Budget, Ledger, LogisticRegression, Ridge, load_model
from discreet.audit.campaign import NOT_PLACED, Cell, Tally
from discreet.audit.membership import AttackCurve
from discreet.audit.one_run import OneRun
from discreet.audit.page import results_page
from discreet.audit.planted import FaultAudit
from discreet.audit.reconstruction import Reconstruction
from discreet.audit.suite import SolverAudit
from discreet.cli.app import app
from discreet.estimators.reading.html import privacy_line
from discreet.federated import plan_federated
from discreet.federated.decentralised import network_named, plan_network
from discreet.metrics import load_evaluation
from discreet.privacy.relation import Relation
from discreet.problem import L2, Logistic, Problem
from discreet.report import report_of
from tests.vertical_tools import small_plan

FOLDER = Path(__file__).parent / "printed"
MODELS = FOLDER / "models"
NAMES = ("regression", "counts", "softmax", "hinge", "ledger", "no-privacy", "persons")
EVALUATED = ("regression", "ledger")
HARM = ("--columns", "10", "--group", "men=25000", "--group", "women, all=2000", "--solver", "output-perturbation")
GRAPHS = {"tree": {}, "gossip": {"target": "mean"}, "walk": {"way": "random"}, "admm-walk": {"target": "max"}}


@cache
def model(name):
    return load_model(MODELS / f"{name}.json")


def evaluation(name):
    return load_evaluation(MODELS / f"{name}-evaluation.json")


def report(name, form):
    more = {"evaluation": evaluation(name), "purpose": "to <try> | it out"} if name in EVALUATED else {}
    return getattr(report_of(MODELS / f"{name}.json", **more), form)()


def planned(epsilon=1.0, kind=LogisticRegression, theory=False, **parameters):
    plan = kind(epsilon=epsilon, **parameters).plan(45_312, 8)
    return f"{plan}\n\n{plan.theory(1.0)}" if theory else plan


def command(*words):
    """What a command prints on either stream."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def ledger(action):
    """Budgets and entries of a ledger; dates, names and hashes differ from run to run."""
    with TemporaryDirectory() as folder:
        book = Ledger(f"{folder}/budget.db")
        book.open("patients", 3.0, 1e-6)
        book.open("clinics", 1.0, 0.0, "add_remove", "person")
        X = np.linspace(-1.0, 1.0, 2_000).reshape(-1, 2)
        Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), ledger=book, dataset="patients").fit(X, X[:, 0])
        text = command("ledger", action, "--ledger", f"{folder}/budget.db")
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "DATE", re.sub(r"(    who    ) .*", r"\1 NAME", text))


def fairness(name, *options):
    """The table of `discreet fairness` for a stored model."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.uniform(-1.0, 1.0, (400, 3)), columns=["age", "<b>dose</b> | `x`_", "שם"])
    rows["sex"] = np.where(rng.random(400) < 0.4, "a", "b | c")
    rows["target"] = np.where(rows["age"] > 0.0, "yes", "no <i>")
    with TemporaryDirectory() as folder:
        rows.to_csv(f"{folder}/test.csv", index=False)
        text = command(
            "fairness", MODELS / f"fairness-{name}.json", f"{folder}/test.csv", "--sensitive", "sex", *options
        )
    return without_band(text)


def without_band(text):
    """Two columns of the table are from models that are drawn at random; what stands to their right is kept."""
    head = text.partition("\n")[0]
    if "models: from" not in head:
        return text
    at, kept = head.index("models: from"), head.endswith("exact")
    lines = text.splitlines()
    table = [f"{line[:at].rstrip()}{' ' + line.split()[-1] if kept else ''}" for line in lines[: lines.index("")]]
    return "\n".join([*table, *lines[lines.index("") :]])


def federated(epsilon=2.0, **more):
    settings = {"delta": 1e-5, "rounds": 20} | more
    return plan_federated(Problem(Logistic(), L2(1e-3)), 5, (-1.0, 1.0), 40, epsilon=epsilon, **settings)


def network(method):
    graph = network_named("star" if method == "walk" else "expander", 16, 0)
    problem = Problem(Logistic(), L2(1e-3))
    return plan_network(problem, 5, (-1.0, 1.0), graph, method=method, epsilon=1.0, rounds=3, **GRAPHS[method])


def audits():
    """All tables of the page about audits, from made-up results."""
    private, rates = model("ledger").guarantee_, np.linspace(0.0, 1.0, 11)
    solvers = [
        SolverAudit("gd", "replace", None, 1.0, 0.98, 0.87, 0.5, 0.53, 0.25),
        SolverAudit("cd", "zero_out", None, 1.0, None, 1.2, None, None, None, ("runs show epsilon 1.200",)),
        SolverAudit("admm", "add_remove", "not taken"),
    ]
    faults = {"no noise": FaultAudit("runs", True, True, "epsilon 4"), "half": FaultAudit("replay", False, False, "-")}
    runs = {"right": OneRun(0.5, 1.0, 60, 100, 500, 0.95), "open": OneRun(2.0, None, 90, 100, 500, 0.95)}
    curves = {
        "epsilon 2": AttackCurve(rates, rates**0.7, 60, private),
        "none": AttackCurve(rates, rates**0.1, 60, None),
    }
    records = {math.inf: Reconstruction(290, 300, 16, None), 2.0: Reconstruction(30, 300, 16, private)}
    memory, stored = (Cell("sgd", Relation.REPLACE, place) for place in ("memory", "stored"))
    campaign = [
        Tally(memory, 20, 16_000, 0.97, (), 0.5),
        Tally(stored, 5, 500, 1.0, (), 0.25),
        Tally(Cell("federated, rows", Relation.ZERO_OUT, NOT_PLACED), 10, 200, 1.2, ("it moved by 2, but 1",), None),
    ]
    return results_page(campaign, solvers, faults, runs, curves, records)


TEXTS = {
    **{f"{name}-summary.txt": lambda name=name: model(name).summary().text(2) for name in NAMES},
    **{f"{name}-statement.txt": lambda name=name: model(name).guarantee_.statement() for name in NAMES},
    **{f"{name}-notebook.html": lambda name=name: privacy_line(model(name)) for name in ("ledger", "no-privacy")},
    **{f"{name}-report.html": partial(report, name, "html") for name in NAMES},
    **{f"{name}-report.md": partial(report, name, "markdown") for name in NAMES},
    **{f"{name}-evaluation.txt": partial(evaluation, name) for name in EVALUATED},
    "plan-bounds.txt": partial(planned, bounds=(-1.0, 1.0), theory=True),
    "plan-gd.txt": partial(planned, bounds=(-1.0, 1.0), solver="gd", alpha=1e-2, theory=True),
    "plan-pure.txt": partial(planned, delta=0.0, solver="cd", bounds=(-1.0, 1.0)),
    "plan-learned.txt": partial(planned, kind=Ridge),
    "plan-infinite.txt": partial(planned, math.inf, bounds=(-1.0, 1.0)),
    "plan-weak.txt": partial(planned, 30.0, solver="sgd", bounds=(-1.0, 1.0)),
    "plan-zcdp.txt": partial(planned, Budget.zcdp(0.01), relation="add_remove", public_n=45_312),
    "federated-client.txt": federated,
    "federated-record.txt": partial(federated, unit="record", rows_per_client=12),
    "federated-central.txt": partial(federated, model="central", rounds=12, per_round=10),
    "federated-uniform.txt": partial(federated, model="central", per_round=5, sampling="uniform"),
    "federated-infinite.txt": partial(federated, math.inf),
    **{f"network-{method}.txt": partial(network, method) for method in GRAPHS},
    "vertical.txt": partial(small_plan, 5_000),
    "vertical-infinite.txt": partial(small_plan, 5_000, budget=Budget(math.inf, 1e-6)),
    "fairness-proved.txt": partial(fairness, "proved"),
    "fairness-twin.txt": partial(fairness, "proved", "--twin", MODELS / "fairness-twin.json", "--public-rows"),
    "fairness-values.txt": partial(fairness, "plain", "--public-rows"),
    "harm-epsilon.txt": partial(command, "fairness-plan", "--rows", "45000", *HARM, "--at-most", "0.05"),
    "harm-there.txt": partial(
        command, "fairness-plan", "--rows", "45000", *HARM[:-2], "--epsilon", "1", "--evaluation-epsilon", "1"
    ),
    "account.txt": partial(command, "account", "--gaussian", "5", "--count", "10", "--meaning"),
    "account-promise.txt": partial(command, "account", "--rho", "0.1", "--meaning"),
    "account-nothing.txt": partial(command, "account", "--promise-epsilon", "inf", "--meaning"),
    "ledger-show.txt": partial(ledger, "show"),
    "ledger-entries.txt": partial(ledger, "entries"),
    "audits.md": audits,
}


def text_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(TEXTS[name]())


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_printed_as_it_was(name):
    assert text_of(name) == (FOLDER / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in TEXTS:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")
