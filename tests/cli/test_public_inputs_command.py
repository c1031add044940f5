"""`discreet fit --start` and `--public-table`."""

from __future__ import annotations

import json

import pytest

from discreet import PublicModel, load_model
from tests.cli_tools import make_table, run

CLASSES = ("--target", "y", "--classes", "0,1")


@pytest.fixture(autouse=True)
def _tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table[:1_200].to_csv("private.csv", index=False)
    table[1_200:].to_csv("public.csv", index=False)
    table[1_200:].drop(columns="y").to_csv("columns.csv", index=False)


def test_a_model_file_and_a_public_table_go_into_a_fit():
    run("fit", "private.csv", *CLASSES, "--public-table", "public.csv", "--out", "first.json", "--seed", 1)
    shown = run("fit", "private.csv", *CLASSES, "--start", "first.json", "--public-table", "columns.csv", "--seed", 1)
    assert "the coefficients from which the fit started; a second table, of 300 rows" in shown.stdout
    first, second = load_model("first.json"), load_model("model.json")
    assert second.start == PublicModel.of(first)
    assert len(second.guarantee_.public_inputs) == 2
    stated = " ".join(run("statement", "model.json").stdout.split())
    assert "The coefficients from which the fit started: taken as public." in stated


def test_json_names_what_was_taken_as_public():
    done = run("fit", "private.csv", *CLASSES, "--public-table", "public.csv", "--seed", 1, "--json")
    told = json.loads(done.stdout)
    assert told["guarantee"]["public_inputs"] == ["a second table, of 300 rows and their targets"]
    assert told["plan"]["scaling"]["method"] == "public"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "y", "--public-table", "public.csv"), "need --task classification or --task regression"),
        ((*CLASSES, "--public-table", "private.csv"), "--public-table is the private table itself"),
        ((*CLASSES, "--public-table", "absent.csv"), "absent.csv"),
        ((*CLASSES, "--start", "private.csv"), "not a model of discreet"),
    ],
)
def test_what_cannot_be_used_is_one_line(options, words):
    assert words in run("fit", "private.csv", *options, code=2).stderr
