"""Paused streams: one state, one continuation, and what the ledger adds."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil

import numpy as np
import pytest
from sklearn.base import clone

import discreet
from discreet import InsecureRandomnessWarning, Ledger, load_model, pause_stream, resume_stream, save_model
from discreet.estimators import paused_stream
from discreet.privacy.ledger.statement import as_csv, ledger_statement
from discreet.problem.constraints import L2Ball
from discreet.solvers import FTRL
from tests.stream_tools import ROWS, classifier, feed, rows_of, weights


@pytest.mark.parametrize("cut", [1, 7, 64, 100, 128, 239])
def test_a_resumed_stream_equals_an_uninterrupted_one(cut, tmp_path):
    X, y = rows_of()
    options = {"random_state": 5, "solver": FTRL(leaves=37), "epsilon": 5.0}
    whole = feed(classifier(**options), X, y)
    first = feed(classifier(**options), X[:cut], y[:cut])
    before = weights(first)
    pause_stream(first, tmp_path / "stream.json")
    with pytest.warns(InsecureRandomnessWarning):
        second = resume_stream(tmp_path / "stream.json", random_state=5)
    np.testing.assert_array_equal(weights(second), before)
    feed(second, X[cut:], y[cut:])
    np.testing.assert_allclose(weights(second), weights(whole), rtol=1e-8, atol=1e-10)
    assert second.guarantee_.about(None).to_dict() == whole.guarantee_.about(None).to_dict()  # up to the date


def test_a_resumed_secure_stream_draws_fresh_noise(tmp_path):
    """Two continuations of one state (a fork, forced here by copying the file) must not share noise to come."""
    X, y = rows_of()
    model = feed(classifier(epsilon=0.5), X[:100], y[:100])
    path, other = tmp_path / "a", tmp_path / "b"
    pause_stream(model, path)
    shutil.copy(path, other)
    forks = [feed(resume_stream(p), X[100:], y[100:]) for p in (path, other)]
    assert not np.allclose(weights(forks[0]), weights(forks[1]))


def test_a_stream_is_in_one_place_only(tmp_path):
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])
    path = tmp_path / "stream.json"
    pause_stream(model, path)
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(ValueError, match="paused"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="closed: it was paused"):
        pause_stream(model, tmp_path / "again.json")
    with pytest.raises(ValueError, match="no stream to pause"):
        pause_stream(classifier(), tmp_path / "again.json")
    resumed = resume_stream(path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        resume_stream(path)
    path.write_text("{}")
    with pytest.raises(FileExistsError):
        pause_stream(resumed, path)
    with pytest.raises(ValueError, match="not a paused stream"):
        resume_stream(path)
    assert path.exists()
    feed(resumed, X[50:], y[50:])  # nothing was written, so the stream is still here


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # other tests may have left threads behind
def test_a_forked_process_cannot_pause_its_copy(tmp_path):
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])
    child = os.fork()
    if child == 0:  # no test tools in here: leave without cleaning up what belongs to the parent
        try:
            pause_stream(model, tmp_path / "stream.json")
        except ValueError:
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert list(tmp_path.iterdir()) == []
    feed(model, X[50:], y[50:])


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_stream_whose_state_cannot_be_written_is_lost_and_not_doubled(error, tmp_path, monkeypatch):
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])

    def fail(descriptor):
        raise error

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(type(error), match="stream is lost.*disk full" if isinstance(error, OSError) else None):
        pause_stream(model, tmp_path / "stream.json")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="lost"):
        model.partial_fit(X[50:], y[50:])


def test_a_full_disk_is_told_apart_from_a_stream_that_is_still_there(tmp_path):
    resource = pytest.importorskip("resource", reason="this system cannot limit the size of files")
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])
    with pytest.raises(FileNotFoundError):
        pause_stream(model, tmp_path / "nowhere" / "stream.json")
    feed(model, X[50:60], y[50:60])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="stream is lost"):
            pause_stream(model, tmp_path / "stream.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="lost"):
        model.partial_fit(X[60:], y[60:])


def test_the_stream_is_closed_before_its_state_is_written(tmp_path, monkeypatch):
    """Whoever looks at the file while it is written finds a stream that takes no more rows."""
    X, y = rows_of()
    model = feed(classifier(), X[:50], y[:50])
    path, seen, sync = tmp_path / "stream.json", [], os.fsync

    def look(descriptor):
        seen.append((path.stat().st_size > 0, model.stream_.closed != ""))
        sync(descriptor)

    monkeypatch.setattr("os.fsync", look)
    pause_stream(model, path)
    assert seen == [(True, True)]


def test_open_streams_cannot_be_copied_but_their_estimators_can_be_cloned_and_their_models_saved(tmp_path):
    X, y = rows_of()
    model = feed(classifier(), X, y)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="spend the budget twice"):
            copied(model)
    assert not hasattr(clone(model), "stream_")
    save_model(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    assert "state" not in json.loads(text)
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))


def test_a_constraint_goes_through_the_file(tmp_path):
    X, y = rows_of()
    model = feed(classifier(constraint=L2Ball(0.1)), X[:50], y[:50])
    pause_stream(model, tmp_path / "stream.json")
    resumed = feed(resume_stream(tmp_path / "stream.json"), X[50:], y[50:])
    assert resumed.plan_.problem.constraint == L2Ball(0.1)
    assert resumed.guarantee_.release == model.guarantee_.release


class StrangeBall(L2Ball):
    """A set of another package, which no file can hold."""


def test_what_a_file_cannot_hold_is_refused_before_the_stream_closes(tmp_path):
    X, y = rows_of()
    model = feed(classifier(constraint=StrangeBall(1.0)), X[:50], y[:50])
    with pytest.raises(ValueError, match="constraint"):
        pause_stream(model, tmp_path / "stream.json")
    feed(model, X[50:], y[50:])
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("visits", epsilon=1.0, delta=1 / ROWS**2)
    return ledger


def test_the_ledger_books_a_stream_once_and_lets_a_pause_be_resumed_once(ledger, tmp_path):
    X, y = rows_of()
    model = classifier(epsilon=0.6, ledger=ledger, dataset="visits")
    feed(model, X[:100], y[:100], [10, 50])
    spent = ledger.spent("visits")
    assert spent == pytest.approx(0.6, rel=1e-3)
    path, copied = tmp_path / "a", tmp_path / "b"
    pause_stream(model, path)
    shutil.copy(path, copied)
    with pytest.raises(ValueError, match="paused under a ledger"):
        resume_stream(path)
    resumed = resume_stream(path, ledger=ledger, dataset="visits")
    with pytest.raises(ValueError, match="resumed before"):
        resume_stream(copied, ledger=ledger, dataset="visits")
    feed(resumed, X[100:], y[100:])
    assert ledger.spent("visits") == spent
    assert resumed.guarantee_.epsilon == 0.6
    with pytest.raises(discreet.BudgetExceededError):
        feed(classifier(epsilon=0.9, ledger=ledger, dataset="visits"), X, y)


def test_a_file_without_its_token_cannot_be_resumed(ledger, tmp_path):
    """Not with the token cut out or exchanged, nor with a word changed, nor as the plain file that it is not."""
    X, y = rows_of()
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        pause_stream(feed(classifier(epsilon=0.2, ledger=ledger, dataset="visits"), X[:50], y[:50]), path)
    first, second = (json.loads(path.read_text()) for path in paths)
    assert "state" not in first
    sealed = first["sealed"]
    wrong = [
        ({name: value for name, value in first.items() if name != "token"}, "lacks its field 'token'"),
        (first | {"token": None}, "the token"),
        (first | {"token": second["token"]}, "altered"),
        (first | {"sealed": sealed[:40] + ("A" if sealed[40] != "A" else "B") + sealed[41:]}, "altered"),
        (first | {"sealed": ""}, "altered"),
        (first | {"format": "discreet stream"}, "version"),
    ]
    for content, message in wrong:
        paths[0].write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            resume_stream(paths[0], ledger=ledger, dataset="visits")
        with pytest.raises(ValueError, match=r"\w"):
            resume_stream(paths[0])
    paths[0].write_text(json.dumps(first))
    assert resume_stream(paths[0], ledger=ledger, dataset="visits").stream_.position == 50
    keys = [record.content["key"] for record in ledger._chain.read()[0] if "key" in record.content]
    shown = repr(ledger.entries("visits")) + as_csv(ledger_statement(ledger, ["visits"]))
    assert len(set(keys)) == 2
    assert not any(key in shown for key in keys)


def test_a_plain_file_of_a_booked_stream_needs_its_token(ledger, tmp_path):
    """As earlier versions wrote it: with its token it can be resumed once, without it never."""
    X, y = rows_of()
    model = feed(classifier(ledger=ledger, dataset="visits"), X[:50], y[:50])
    content = paused_stream._content(model, model.stream_)
    entry = paused_stream._book_token(ledger, "visits", model.stream_.plan.public.relation)
    path = tmp_path / "a"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="token with which it allows one resume was removed"):
        resume_stream(path)
    token = {"id": entry.id, "dataset": "visits", "hash": entry.hash}
    path.write_text(json.dumps(content | {"token": token}))
    assert resume_stream(path, ledger=ledger, dataset="visits").stream_.position == 50
    path.write_text(json.dumps(content | {"token": token}))
    with pytest.raises(ValueError, match="resumed before"):
        resume_stream(path, ledger=ledger, dataset="visits")


def test_no_other_ledger_can_let_a_stream_go_on(ledger, tmp_path):
    """Neither an empty one nor one with the same history, record by record."""
    X, y = rows_of()
    twin = Ledger(tmp_path / "twin.db")
    twin.open("visits", epsilon=1.0, delta=1 / ROWS**2)
    for book in (twin, ledger):
        model = feed(classifier(ledger=book, dataset="visits"), X[:50], y[:50])
        path = tmp_path / f"{book is ledger}"
        pause_stream(model, path)
    assert [e.id for e in twin.entries("visits")] == [e.id for e in ledger.entries("visits")]
    for stranger in (tmp_path / "empty.db", twin):
        with pytest.raises(ValueError, match="another ledger"):
            resume_stream(path, ledger=stranger, dataset="visits")
    feed(resume_stream(path, ledger=ledger, dataset="visits"), X[50:], y[50:])


def test_a_first_chunk_that_is_refused_is_not_booked(ledger):
    X, y = rows_of(ROWS + 1)
    model = classifier(ledger=ledger, dataset="visits")
    with pytest.raises(ValueError, match="at most 240 rows"):
        model.partial_fit(X, y)
    assert ledger.entries("visits") == []
    feed(model, X[:ROWS], y[:ROWS])
    assert [entry.status for entry in ledger.entries("visits")] == ["committed"]


def test_a_stream_keeps_the_ledger_it_was_booked_in(tmp_path):
    """Forgetting the ledger between two chunks does not make a file that can be resumed twice."""
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("rows", epsilon=5.0, delta=1e-3)
    X, y = np.random.default_rng(0).uniform(-1.0, 1.0, (64, 2)), np.arange(64) % 2
    model = discreet.LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], public_n=128, ledger=ledger, dataset="rows")
    model.partial_fit(X, y)
    model.set_params(ledger=None, dataset=None)
    pause_stream(model, tmp_path / "stream.json")
    with pytest.raises(ValueError, match="paused under a ledger"):
        resume_stream(tmp_path / "stream.json")
    assert resume_stream(tmp_path / "stream.json", ledger=ledger, dataset="rows").stream_.position == 64


def test_an_unknown_field_is_refused(tmp_path):
    X, y = rows_of()
    path = tmp_path / "stream.json"
    pause_stream(feed(classifier(), X[:50], y[:50]), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ledgers": []}))
    with pytest.raises(ValueError, match="has no field 'ledgers'"):
        resume_stream(path)
