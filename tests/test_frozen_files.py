"""Files of every format, as version 0.1.0 wrote them: they open, and are written again as they were."""

import json
import re
import warnings
from pathlib import Path

import pytest

from discreet import __version__, save_model
from discreet._common.exceptions import DiscreetWarning
from discreet.data.schema import load_schema
from discreet.estimators import model_file, paused_stream
from discreet.federated.client import StateFile
from discreet.federated.planning import read_plan
from discreet.federated.server import ServerState
from discreet.metrics import load_evaluation, save_evaluation
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee

FOLDER = Path(__file__).with_name("frozen_files")


def files(kind):
    found = sorted(FOLDER.glob(f"{kind}*.json"))
    assert found
    return pytest.mark.parametrize("path", found, ids=lambda path: path.stem)


def lasting(path):
    """The text of a file without what each version words anew: its own number, and the statement for people."""
    text = path.read_text().replace('"library": "0.1.0"', f'"library": "{__version__}"')
    return re.sub(r'"statement": "(\\.|[^"\\])*"', "", text)


@files("model")
def test_a_model_is_written_again_as_it_was(path, tmp_path):
    stored = model_file.read_model(path)
    save_model(stored.estimator, tmp_path / "again.json", stored.schema)
    assert lasting(tmp_path / "again.json") == lasting(path)


@files("model")
def test_a_guarantee_is_written_again_as_it_was(path):
    promise = json.loads(path.read_text())["guarantee"]
    assert Guarantee.from_dict(promise).to_dict() | {"statement": promise["statement"]} == promise


@files("evaluation")
def test_an_evaluation_is_written_again_as_it_was(path, tmp_path):
    save_evaluation(load_evaluation(path), tmp_path / "again.json")
    assert lasting(tmp_path / "again.json") == lasting(path)


@files("schema")
def test_a_schema_is_written_again_as_it_was(path):
    assert json.dumps(load_schema(path).to_dict(), indent=2) + "\n" == path.read_text()


@files("events")
def test_events_are_written_again_as_they_were(path):
    events = json.loads(path.read_text())
    assert json.dumps([accounting.event_to_dict(accounting.event_from_dict(event)) for event in events]) == json.dumps(
        events
    )


@files("stream")
def test_a_paused_stream_is_written_again_as_it_was(path):
    content = json.loads(path.read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        model, token = paused_stream._read(content, 5)
    assert token is None
    again = paused_stream._content(model, model.stream_)
    assert again["plan"].pop("warnings") is not None  # what is said of a plan is no part of it
    content["plan"].pop("warnings")
    for name in ("solver", "problem", "plan", "state"):
        assert json.dumps(again[name]) == json.dumps(content[name])


@files("federated")
def test_a_federated_file_is_written_again_as_it_was(path, tmp_path):
    again, plan = tmp_path / "again.json", read_plan(FOLDER / "federated-plan.json")
    if path.stem == "federated-plan":
        again.write_text(json.dumps(plan.to_dict()))
    elif path.stem == "federated-client":
        StateFile(again).save(StateFile(path).load())
    else:
        ServerState.read(path, plan, ("a", "b", "c", "d")).write(again)
    assert again.read_text() == path.read_text()
