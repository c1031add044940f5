"""`discreet fairness`: the table says what the library says, and says loudly what is not private."""

import json

import numpy as np
import pytest

from discreet import load_model
from discreet.fairness import certificate
from tests.cli_tools import make_table, run

pytestmark = pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning", "ignore::discreet.NotPrivateWarning")

BOUNDS = ("--bounds", "-100,100")
STRONG = ("--target", "y", "--classes", "0,1", "--solver", "output-perturbation", "--alpha", "0.1", *BOUNDS)


def grouped(rows):
    """A table with a column of groups that no model uses."""
    frame = make_table(rows)
    return frame.assign(group=np.where(np.arange(rows) % 3 == 0, "b", "a"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, its noise-free twin, and the rows that both were trained on and are judged on."""
    path = tmp_path_factory.mktemp("fairness")
    table = grouped(3_000)
    table[:2_000].drop(columns="group").to_csv(path / "train.csv", index=False)
    table[2_000:].to_csv(path / "test.csv", index=False)
    run("fit", path / "train.csv", *STRONG, "--epsilon", "4", "--out", path / "model.json", "--quiet")
    run("fit", path / "train.csv", *STRONG, "--epsilon", "inf", "--out", path / "twin.json", "--quiet")
    run("fit", path / "train.csv", "--target", "y", "--classes", "0,1", "--out", path / "newton.json", "--quiet")
    return path


@pytest.fixture(autouse=True)
def _in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def fairness(*arguments, model="model.json", code=0):
    return run("fairness", model, "test.csv", "--sensitive", "group", *arguments, code=code)


def rows_of(path):
    table = grouped(3_000)[2_000:]
    return table[["a", "b", "c"]], table["y"].to_numpy(), table["group"].to_numpy()


def test_the_table_is_that_of_the_library(folder):
    X, y, group = rows_of(folder)
    wanted = certificate(load_model("model.json"), X, y, group)
    found = json.loads(fairness("--json").stdout)
    assert found["certificate"] == json.loads(json.dumps(wanted.to_dict()))
    assert found["models"] == 100
    text = fairness().stdout
    for statement in wanted.statements:
        assert f"{statement.value:.4f}" in text
        assert f"{statement.value + statement.high:.4f}" in text
        assert f"{statement.printed:.4f}" in text
    assert "mean of |.|" in text


def test_rows_that_are_not_public_are_warned_about_loudly():
    loud = fairness()
    assert "NOT private" in loud.stderr
    assert "NOT PRIVATE" in loud.stdout
    quiet = fairness("--public-rows")
    assert "NOT private" not in quiet.stderr
    assert "NOT PRIVATE" not in quiet.stdout
    owner = fairness("--public-rows", "--train", "train.csv", "--models", "3")
    assert "NOT a release" in owner.stderr
    assert "NOT PRIVATE" in owner.stdout
    assert "fitted again" in owner.stdout


def test_a_twin_adds_the_exact_change(folder):
    X, y, _ = rows_of(folder)
    found = json.loads(fairness("--twin", "twin.json", "--reference", "twin", "--json").stdout)["certificate"]
    accuracy = next(s for s in found["statements"] if s["notion"] == "accuracy")
    private, twin = (np.mean(load_model(f"{name}.json").predict(X) == y) for name in ("model", "twin"))
    np.testing.assert_allclose([accuracy["value"], accuracy["exact"]], [twin, private - twin], atol=1e-12)
    assert accuracy["refined"] >= abs(private - twin) - 1e-12
    assert "exact" in fairness("--twin", "twin.json").stdout.splitlines()[0]


def test_a_paid_evaluation_is_booked_and_private(folder):
    run("ledger", "open", "--dataset", "patients", "--ledger", "budget.db", "--epsilon", "1.6", "--delta", "1e-6")
    paid = ("--epsilon", "1.5", "--delta", "1e-6", "--groups", "a,b", "--ledger", "budget.db", "--dataset", "patients")
    first = fairness(*paid)
    assert "NOT private" not in first.stderr + first.stdout
    assert "epsilon 1.5" in first.stdout
    again = fairness(*paid, code=2)  # the ledger does not grant it twice
    assert "does not cover this" in again.stderr
    found = json.loads(fairness("--epsilon", "20", "--groups", "a,b", "--json").stdout)["certificate"]
    assert found["private"]
    assert {s["group"] for s in found["statements"]} >= {"a", "b"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--reference", "twin"), "--twin FILE"),
        (("--epsilon", "1"), "--groups A,B"),
        (("--groups", "a,b"), "give --epsilon"),
        (("--delta", "1e-6"), "give --epsilon"),
        (("--epsilon", "1", "--groups", "a,a"), "two different groups"),
        (("--epsilon", "1", "--groups", "a,b", "--train", "train.csv"), "--train has no part"),
        (("--train", "absent.csv"), "absent.csv"),
    ],
)
def test_errors_say_what_to_do(arguments, told):
    assert told in fairness(*arguments, code=2).stderr


def test_a_model_without_a_law_has_values_but_no_bounds(folder):
    X, y, _ = rows_of(folder)
    model = load_model("newton.json")
    told = fairness(model="newton.json").stdout
    assert f"{(model.predict(X) == y).mean():.4f}" in told
    assert "--solver output-perturbation" in told
    assert "bound" not in told.splitlines()[0]
    paid = fairness("--epsilon", "20", "--groups", "a,b", "--json", model="newton.json").stdout
    accuracy = next(s for s in json.loads(paid)["certificate"]["statements"] if s["notion"] == "accuracy")
    right = (model.predict(X) == y).mean()
    text = fairness("--epsilon", "20", "--groups", "a,b", model="newton.json").stdout
    assert "The last two columns say nothing" in text
    assert accuracy["value_low"] <= right <= accuracy["value_high"]


def test_the_favourable_label_is_chosen_by_name():
    found = json.loads(fairness("--favourable", "0", "--json").stdout)["certificate"]["statements"]
    assert {str(s["label"]) for s in found if s["notion"] == "equality of opportunity"} == {"0"}
    assert "labels 0, 1" in fairness("--favourable", "2", code=2).stderr


def test_a_missing_column_and_too_many_groups_are_refused():
    assert "no column 'sex'" in run("fairness", "model.json", "test.csv", "--sensitive", "sex", code=2).stderr
    many = run("fairness", "model.json", "test.csv", "--sensitive", "b", code=2).stderr
    assert "more than 50" in many


@pytest.mark.slow
def test_figures_are_drawn_and_never_overwritten():
    pytest.importorskip("matplotlib")
    found = fairness("--public-rows", "--models", "4", "--plot", "figures")
    for name in ("fairness-rows.png", "fairness-epsilon.png"):
        assert f"written: figures/{name}" in found.stdout.replace("\\", "/")
        with open(f"figures/{name}", "rb") as file:
            assert file.read(4) == b"\x89PNG"
    assert "exists" in fairness("--public-rows", "--models", "4", "--plot", "figures", code=2).stderr


def test_figures_of_a_model_without_a_law_need_its_training_rows():
    told = fairness("--public-rows", "--plot", "none", model="newton.json", code=2).stderr
    assert "--train FILE" in told
