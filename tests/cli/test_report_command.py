"""`discreet report`: one page from a model file, with errors of one line, and never over another file."""

import json

import pytest

from discreet import load_model
from tests.cli_tools import make_table, run
from tests.report_tools import check_page, plain_markdown

pytestmark = pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that a ledger paid for, and its evaluation."""
    path = tmp_path_factory.mktemp("report")
    table = make_table(3_000)
    table[:2_000].to_csv(path / "train.csv", index=False)
    table[2_000:].to_csv(path / "test.csv", index=False)
    booked = ("--ledger", path / "budget.db", "--dataset", "patients")
    run("ledger", "open", *booked, "--epsilon", "5", "--delta", "1e-6")
    fit = ("--classes", "0,1", "--bounds", "-100,100", "--epsilon", "2", "--note", "a <study>", "--quiet")
    for name in ("model", "other"):
        run("fit", path / "train.csv", "--target", "y", *fit, *booked, "--out", path / f"{name}.json")
    out = ("--out", path / "evaluation.json")
    run("evaluate", path / "model.json", path / "test.csv", "--epsilon", "0.5", *booked, *out)
    return path


@pytest.fixture(autouse=True)
def _in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_the_page_tells_model_evaluation_and_ledger(tmp_path):
    out = tmp_path / "report.html"
    files = ("--evaluation", "evaluation.json", "--ledger", "budget.db", "--purpose", "plan beds")
    assert run("report", "model.json", *files, "-o", out).stdout == f"report written to {out}\n"
    text = check_page(out.read_text(encoding="utf-8")).text
    for words in ("LogisticRegression for y", "train.csv", "both together", "a <study>", "plan beds", "committed"):
        assert words in text
    assert f"{load_model('model.json').coef_[0, 0]:.4g}" in text
    shown = json.loads(run("report", "model.json", *files, "-o", tmp_path / "again.html", "--json").stdout)
    assert shown["numbers"]["columns"] == "3"
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == out.read_text(encoding="utf-8")


def test_markdown_by_option_or_by_name(tmp_path):
    run("report", "model.json", "--markdown", "-o", tmp_path / "a.txt", "--columns", "1")
    run("report", "model.json", "-o", tmp_path / "a.md", "--columns", "1")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == (tmp_path / "a.md").read_text(encoding="utf-8")
    assert "2 columns that can move it less are not shown" in plain_markdown((tmp_path / "a.md").read_text("utf-8"))


def test_no_file_is_overwritten_by_accident(tmp_path):
    out, before = tmp_path / "report.html", (load_model("model.json").coef_).tolist()
    run("report", "model.json", "-o", out)
    assert "--force" in run("report", "model.json", "-o", out, code=2).stderr
    run("report", "model.json", "-o", out, "--force")
    assert "made from" in run("report", "model.json", "-o", "model.json", "--force", code=2).stderr
    assert load_model("model.json").coef_.tolist() == before
    run("report", "other.json", "--evaluation", "evaluation.json", "-o", tmp_path / "new.html", code=2)
    assert not (tmp_path / "new.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument"),
        (("gone.json",), "gone.json"),
        (("train.csv",), "is not a model of discreet"),
        (("evaluation.json",), "is not a model of discreet"),
        (("model.json", "--evaluation", "model.json"), "is not an evaluation of discreet"),
        (("other.json", "--evaluation", "evaluation.json"), "not one of this model"),
        (("model.json", "--ledger", "none.db"), "there is no ledger"),
        (("model.json", "--ledger", "budget.db", "--dataset", "gone"), "unknown data set"),
        (("model.json", "-o", "nowhere/report.html"), "does not exist"),
        (("model.json", "--columns", "-1"), "--columns"),
    ],
)
def test_errors_are_one_line(arguments, message, tmp_path):
    out = () if "-o" in arguments else ("-o", tmp_path / "report.html")
    assert message in run("report", *arguments, *out, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_is_not_paid_for_if_it_cannot_be_written(tmp_path):
    (tmp_path / "there.json").write_text("keep")
    arguments = ("evaluate", "model.json", "test.csv", "--epsilon", "0.1", "--ledger", "budget.db")
    spent = json.loads(run("ledger", "show", "--ledger", "budget.db", "--json").stdout)
    refused = run(*arguments, "--dataset", "patients", "--out", tmp_path / "there.json", code=2)
    assert "--force" in refused.stderr
    assert json.loads(run("ledger", "show", "--ledger", "budget.db", "--json").stdout) == spent
    assert (tmp_path / "there.json").read_text() == "keep"
