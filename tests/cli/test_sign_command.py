"""`discreet key`, `sign` and `verify`: an edited file is noticed, and only what the ledger granted is signed."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.privacy.signatures import NOT_SIGNED, signature_of
from tests.cli_tools import make_table, run

pytestmark = pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")
BOOKED = ("--ledger", "budget.db", "--dataset", "patients")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model that a ledger paid for, one that none paid for, an evaluation, and two pairs of keys."""
    path = tmp_path_factory.mktemp("signed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        table = make_table(3_000)
        table[:2_000].to_csv("train.csv", index=False)
        table[2_000:].to_csv("test.csv", index=False)
        run("ledger", "open", *BOOKED, "--epsilon", "5", "--delta", "1e-6")
        fit = ("fit", "train.csv", "--target", "y", "--classes", "0,1", "--epsilon", "2", "--quiet")
        run(*fit, *BOOKED, "--out", "model.json")
        run(*fit, "--out", "free.json")
        run("evaluate", "model.json", "test.csv", "--epsilon", "0.5", *BOOKED, "--out", "evaluation.json")
        run("key", "--out", "steward.key")
        run("key", "--out", "other.key")
    return path


@pytest.fixture(autouse=True)
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def sign(name="model.json", *more, code=0):
    return run("sign", name, "--key", "steward.key", "--ledger", "budget.db", *more, code=code)


def edited(name, **changes):
    """Change numbers in a file as somebody with an editor would."""
    text = Path(name).read_text()
    for field, value in changes.items():
        text, found = re.subn(rf'"{field}": [0-9.e+-]+', f'"{field}": {value}', text)
        assert found
    Path(name).write_text(text)


@pytest.mark.parametrize("name", ["model.json", "evaluation.json"])
def test_a_signed_file_verifies(name):
    sign(name)
    assert "key that you trust" in run("verify", name, "--key", "steward.pub", "--ledger", "budget.db").stdout
    both = ("--key", "other.pub", "--key", "steward.pub")
    assert json.loads(run("verify", name, *both, "--json").stdout) == signature_of(name).to_dict()


def test_whose_noise_was_edited_is_noticed():
    """More noise in the record proves a smaller epsilon: the file alone looks right, and its signature does not fit."""
    sign()
    noise = json.loads(Path("model.json").read_text())["guarantee"]["event"]
    assert "noise_multiplier" in json.dumps(noise)
    edited("model.json", noise_multiplier=100.0)
    for command in ("verify model.json --key steward.pub", "statement model.json", "account --event model.json"):
        assert "was changed after it was signed" in run(*command.split(), code=2).stderr
    assert "was changed" in run("report", "model.json", "-o", "page.html", code=2).stderr
    assert not Path("page.html").exists()
    assert "the digest of another file" in sign("model.json", "--force", code=2).stderr


def test_an_evaluation_that_cost_more_than_it_says_is_not_signed():
    edited("evaluation.json", noise_multiplier=0.5)
    text = Path("evaluation.json").read_text().replace('"epsilon": 0.5', '"epsilon": 20.0', 1)
    Path("evaluation.json").write_text(text)
    assert run("sign", "evaluation.json", "--key", "steward.key", "--ledger", "budget.db", code=2).stderr


def test_statements_begin_with_who_answers():
    first = " ".join(run("statement", "model.json").stdout.split("\n\n")[0].split())
    assert first == NOT_SIGNED
    assert run("account", "--event", "model.json").stdout.startswith("NOT SIGNED")
    run("report", "model.json", "-o", "before.md")
    sign()
    run("report", "model.json", "-o", "after.md")
    assert NOT_SIGNED.split(":")[0] in Path("before.md").read_text()
    assert NOT_SIGNED.split(":")[0] not in Path("after.md").read_text()
    assert run("statement", "model.json").stdout.startswith(f"Signed {signature_of('model.json').date}")
    shown = json.loads(run("statement", "model.json", "--json").stdout)
    assert shown["signature"] == signature_of("model.json").to_dict()


def test_only_what_the_ledger_granted_is_signed():
    key = ("--key", "steward.key")
    assert "pass the ledger" in run("sign", "model.json", *key, code=2).stderr
    run("ledger", "open", "--ledger", "empty.db", "--dataset", "patients", "--epsilon", "5", "--delta", "1e-6")
    assert "is not signed" in run("sign", "model.json", *key, "--ledger", "empty.db", code=2).stderr
    assert "there is no ledger" in run("sign", "model.json", *key, "--ledger", "none.db", code=2).stderr
    assert "leave the ledger out" in sign("free.json", code=2).stderr
    assert not list(Path().glob("*.sig"))
    run("sign", "free.json", *key)
    assert signature_of("free.json").head is None
    wrong = run("verify", "free.json", "--key", "steward.pub", "--ledger", "budget.db", code=2)
    assert "leave the ledger out" in wrong.stderr


def test_a_ledger_that_was_put_back_does_not_fit():
    shutil.copy("budget.db", "old.db")
    run("fit", "train.csv", "--target", "y", "--classes", "0,1", "--epsilon", "1", *BOOKED, "--out", "next.json")
    sign("next.json")
    again = ("verify", "next.json", "--key", "steward.pub", "--ledger")
    run(*again, "budget.db")
    assert "does not fit" in run(*again, "old.db", code=2).stderr


def test_another_key_and_damaged_signatures_are_refused():
    verify = ("verify", "model.json", "--key", "steward.pub")
    assert "is not signed" in run(*verify, code=2).stderr
    sign()
    assert "another key" in run("verify", "model.json", "--key", "other.pub", code=2).stderr
    assert "not the public key" in run("verify", "model.json", "--key", "steward.key", code=2).stderr
    assert "not a private" in run("sign", "free.json", "--key", "steward.pub", code=2).stderr
    good = json.loads(Path("model.json.sig").read_text())
    stranger = json.loads(run("sign", "free.json", "--key", "other.key", "--json").stdout)
    for change in ({"date": "2020-01-01"}, {"head": None}, {"key": stranger["key"]}, {"signature": "0" * 128}):
        Path("model.json.sig").write_text(json.dumps(good | change))
        assert "not a signature" in run(*verify, code=2).stderr
    for change in ({"sha256": stranger["sha256"]}, {"more": 1}, {"key": "zz"}, {"version": 2}, {"signature": ""}):
        Path("model.json.sig").write_text(json.dumps(good | change))
        run(*verify, code=2)


def test_files_are_not_overwritten_and_keys_are_private():
    sign()
    before = Path("model.json.sig").read_bytes()
    assert "exists" in sign(code=2).stderr.lower()
    assert Path("model.json.sig").read_bytes() == before
    sign("model.json", "--force")
    assert Path("steward.key").stat().st_mode & 0o777 == 0o600
    key = Path("steward.key").read_bytes()
    run("key", "--out", "steward.key", code=2)
    run("key", "--out", "x.pub", code=2)
    assert Path("steward.key").read_bytes() == key
    assert not Path("x.pub").exists()


def test_a_key_with_a_passphrase():
    run("key", "--out", "locked.key", "--passphrase", piped="a b c\na b c\n")
    locked = ("sign", "free.json", "--key", "locked.key")
    assert "needs its passphrase" in run(*locked, code=2).stderr
    assert "not its own" in CliRunner().invoke(app, [*locked, "--passphrase"], input="other\n").stderr
    assert not Path("free.json.sig").exists()
    run(*locked, "--passphrase", piped="a b c\n")
    run("verify", "free.json", "--key", "locked.pub")
    unlocked = ("sign", "free.json", "--key", "steward.key", "--passphrase", "--force")
    assert "leave the passphrase out" in CliRunner().invoke(app, unlocked, input="x\n").stderr


def test_what_is_no_release_is_not_signed():
    Path("notes.json").write_text("{}")
    assert "not a model" in run("sign", "notes.json", "--key", "steward.key", code=2).stderr
