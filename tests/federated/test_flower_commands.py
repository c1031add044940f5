"""`discreet federated app`, `client` and `loopback`: what they write and what they refuse."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'discreet[flower]'")

from discreet.federated.flower import app, data_holder
from discreet.federated.flower.app import ServerSettings
from tests.cli_tools import run


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.json"
    run("federated", "plan", "--clients", 2, "--columns", 2, "--epsilon", 3, "--plan", path)
    return path


@pytest.fixture
def held(monkeypatch):
    """The clients that were made, instead of SuperNodes for them."""
    clients = []
    monkeypatch.setattr(data_holder, "hold_data", lambda client, *_, **__: clients.append(client))
    return clients


def client_command(tmp_path, plan, labels, *more):
    table = pd.DataFrame({"a": [0.5, -0.5, 0.25], "b": [1.0, 0.0, -1.0], "sick": labels})
    table.to_csv(tmp_path / "rows.csv", index=False)
    files = ["--state", tmp_path / "state", "--authority", tmp_path / "ca.pem", "--key", tmp_path / "a.key"]
    where = ["--plan", plan, "--name", "a", "--superlink", "127.0.0.1:1", "--target", "sick"]
    return ["federated", "client", tmp_path / "rows.csv", *where, *files, *more]


def test_app_writes_what_flower_and_the_server_read(tmp_path, plan, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("federated", "app", "server", "--plan", "plan.json", "--client", "a", "--client", "b", "--timeout", 7)
    project = tomllib.loads((tmp_path / "server" / "pyproject.toml").read_text())
    assert project["tool"]["flwr"]["app"]["publisher"] == "discreet"
    settings = ServerSettings.read(Path(project["tool"]["flwr"]["app"]["config"]["settings"]))
    assert settings.server().clients == ("a", "b")
    assert (settings.outcome, settings.timeout) == (str(tmp_path / "model.json"), 7.0)
    settings.write_outcome({"weights": [0.1]})
    assert json.loads((tmp_path / "model.json").read_text()) == {"weights": [0.1]}
    refused = run("federated", "app", "other", "--plan", plan, "--client", "a", code=2)  # the model is there
    assert "model.json" in refused.stderr


def test_app_wants_as_many_names_as_the_plan_has_clients(tmp_path, plan, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = run("federated", "app", "server", "--plan", plan, "--client", "a", "--client", "a", code=2)
    assert "the plan has 2 clients" in refused.stderr


def test_the_folder_for_flower_quotes_any_path(tmp_path):
    path = tmp_path / 'a "strange" \\ name.json'
    app.write_app(tmp_path / "app", path)
    project = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())
    assert project["tool"]["flwr"]["app"]["config"]["settings"] == str(path)


def test_client_takes_the_labels_from_a_schema(tmp_path, plan, held):
    command = client_command(tmp_path, plan, ["yes", "no", "yes"], "--schema", tmp_path / "schema.json")
    number = {"type": "number", "low": -1, "high": 1, "categories": None}
    columns = [number | {"name": name} for name in "ab"]
    for labels, code in ((["no", "yes"], 0), (["no", "perhaps", "yes"], 2)):
        target = {"name": "sick", "classes": labels, "low": None, "high": None}
        content = {"relation": "replace", "target": target, "columns": columns}
        (tmp_path / "schema.json").write_text(json.dumps(content))
        run(*command, code=code)
    assert [client.problem.y.tolist() for client in held] == [[1.0, -1.0, 1.0]]


@pytest.mark.parametrize(
    ("labels", "more"),
    [([1, -1, 1], ()), (["yes", "no", "yes"], ("--classes", "no,yes")), ([1, 0, 1], ("--classes", "0,1"))],
)
def test_client_reads_its_rows_and_says_what_they_cost(tmp_path, plan, held, labels, more):
    shown = run(*client_command(tmp_path, plan, labels, *more)).stdout
    (client,) = held
    assert client.problem.y.tolist() == [1.0, -1.0, 1.0]
    assert np.array_equal(client.problem.X[:, 0], [0.5, -0.5, 0.25])
    assert "at most 20 answers, 0 given" in shown
    assert f"epsilon = {client.plan.guarantees['local', 'client'].epsilon:.6g}" in shown


def test_client_refuses_what_it_has_not_agreed_to(tmp_path, plan, held):
    assert "above its limit" in run(*client_command(tmp_path, plan, [1, -1, 1], "--max-epsilon", 1), code=2).stderr
    assert "labels" in run(*client_command(tmp_path, plan, [1, 2, 1]), code=2).stderr
    others = run(*client_command(tmp_path, plan, ["yes", "no", "perhaps"], "--classes", "no,yes"), code=2).stderr
    assert "perhaps" not in others  # an error shows no value of a row
    with data_holder.only_process(tmp_path / "state"):
        refused = run(*client_command(tmp_path, plan, [1, -1, 1]), code=2).stderr
    assert "another process" in refused
    assert held == []


def test_without_flower_the_commands_say_what_to_install(tmp_path, plan, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for command in (["federated", "loopback"], client_command(tmp_path, plan, [1, -1, 1])):
        assert "pip install 'discreet[flower]'" in run(*command, code=2).stderr
