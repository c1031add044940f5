"""Reports on models of every kind: well formed, complete, and with the numbers of the model."""

import json
import math
import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import Budget, LogisticRegression, PublicModel, Ridge, solvers
from discreet.estimators import model_file
from discreet.estimators.reading.summary_text import lines_of
from discreet.model_selection import PrivateSearchCV
from discreet.report import report_of, write_report
from tests.reading_tools import KINDS, fitted
from tests.report_tools import check_page, numbers, plain_markdown
from tests.stream_tools import classifier, feed, rows_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning"),
]
HOSTILE = [
    "<script>alert(1)</script>",
    "a|b`*_[x](y)",
    "שם העמודה",
    "\u202egnp.exe",
    "x" * 5000,
    "http://evil.example/?a='\"",
    "",
    "line\n\n# break",
    "</svg></title><img src=x onerror=alert(1)>",
]


@cache
def model(kind):
    return fitted(kind)


def both(made):
    """A report as a page that was checked and as the words of its Markdown."""
    page, text = check_page(made.html()), plain_markdown(made.markdown())
    assert numbers(page.text) == numbers(text)
    return page.text, text


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_all_sections_and_the_numbers_of_the_summary(kind):
    summary = model(kind).summary()
    for text in both(report_of(model(kind))):
        for output in range(summary.form.intercept.size):
            for _, *cells in lines_of(summary, output, range(summary.form.columns)):
                assert all(cell in text for cell in cells)
        assert "5" in text
        assert "post-processing" in text
        assert model(kind).plan_.solver.name in text
        assert "By signing I confirm" in text


X, y = rows_of(400)
BOUNDED = {"bounds": (-1.0, 1.0), "classes": [0, 1]}
TOO_FEW = BOUNDED | {"epsilon": 0.05, "solver": "newton"}  # for 60 rows: the plan is a constant


def made(**parameters):
    return LogisticRegression(**BOUNDED | parameters).fit(X, y)


VARIANTS = {
    "pure": (lambda: made(delta=0.0, solver="gd"), "part of epsilon"),
    "zcdp": (lambda: made(epsilon=Budget.zcdp(0.1)), "rho = 0.1"),
    "gdp": (lambda: made(epsilon=Budget.gdp(0.5)), "mu = 0.5"),
    "infinite": (lambda: made(epsilon=math.inf), "NOT PRIVATE"),
    "weak": (lambda: made(epsilon=20.0), "protects little"),
    "zero_out": (lambda: made(relation="zero_out"), "null row"),
    "add_remove": (lambda: made(relation="add_remove", public_n=400), "a public estimate"),
    "seed": (lambda: made(random_state=0), "The promise has gaps"),
    "classes read": (lambda: made(classes=None), "The promise has gaps"),
    "start": (lambda: made(start=PublicModel([1.0, 0.0, 0.0], 0.0), epsilon=5.0), "taken as public"),
    "constant": (lambda: LogisticRegression(**TOO_FEW).fit(X[:60], y[:60]), "constant"),
    "sampled": (lambda: made(solver=solvers.StochasticGradientDescent()), "sgd"),
    "no penalty": (lambda: discreet.LinearRegression(bounds=(-1.0, 1.0), y_bounds=(0.0, 1.0)).fit(X, y), "Linear"),
    "stream": (lambda: feed(classifier(epsilon=5.0), *rows_of()), "a stream"),
    "endless stream": (
        lambda: feed(classifier(epsilon=5.0, public_n=None, delta=1e-6), *rows_of()),
        "a stream without end",
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_promise_and_every_way_to_train_has_a_page(name, tmp_path):
    make, told = VARIANTS[name]
    fit = make()
    for text in both(report_of(fit)):
        assert told in text
        assert ("NOT PRIVATE" in text) == (name == "infinite")
        assert ("The promise has gaps" in text) == bool(fit.guarantee_.leaks)
        assert ("The trade-off curve in numbers" in text) == (name != "infinite")
    discreet.save_model(fit, tmp_path / "model.json")
    loaded = both(report_of(tmp_path / "model.json"))[0]
    assert "one fit within" not in text + loaded
    assert "SHA-256" in loaded
    assert told in loaded or "plan is not known" in loaded


@pytest.mark.parametrize("refit", [False, True])
def test_the_page_of_a_searched_model_states_one_epsilon_and_says_what_the_other_is(refit, tmp_path):
    search = PrivateSearchCV(
        made(), {"alpha": [1e-4, 0.1]}, n_iter=2, epsilon=1.0, delta=1e-6, refit=refit, random_state=0
    )
    discreet.save_model(search.fit(X, y).best_estimator_, tmp_path / "model.json")
    for source in (search.best_estimator_, tmp_path / "model.json"):
        for text in both(report_of(source)):
            assert "one fit within PrivateSearchCV. For the model holds what is promised above, epsilon 1 " in text
            assert "budget of this fit alone" in text


def test_nothing_in_a_name_becomes_a_tag_a_link_or_a_line():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(-1.0, 1.0, (500, len(HOSTILE))), columns=HOSTILE)
    labels = np.where(rows.iloc[:, 0] > 0.0, "<b>&yes</b>", "*no*")
    made = LogisticRegression(bounds=(-1.0, 1.0), classes=["*no*", "<b>&yes</b>"], epsilon=5.0).fit(rows, labels)
    report = report_of(made, purpose="<img src=x onerror=alert(1)> [a](http://b) \x1b[2J")
    text, _ = both(report)
    assert "<script>alert(1)</script>" in text  # the words are there, as words
    assert "\\u202egnp.exe" in text
    assert "(no name)" in text
    assert report.html().replace("\n", " ").replace("\u00a0", " ").isprintable()
    assert max(map(len, re.findall(r"[^<>\s]+", text))) < 200
    written = report.markdown()
    assert "<" not in written
    assert "://" not in written
    assert not re.search(r"(?<!\\)[]`*_[]", re.sub(r"\*\*(.*?)\*\*", r"\1", written))
    assert "\n# break" not in written
    lines = [line for line in written.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} <= {3, 4, 5, 6, 7}


def test_names_of_any_length_and_classes_of_any_number_make_a_page_of_bounded_length(tmp_path):
    content = model_file.to_dict(model("softmax"))
    labels = sorted(f"{k:03}{'y' * 3_000}" for k in range(300))
    content |= {"coef": [[1.0, -2.0, 3.0]] * 300, "intercept": [0.5] * 300, "scaling": None, "plan": None}
    content["classes"] = {"dtype": "<U3003", "values": labels}
    content["guarantee"]["release"]["table"] = "z" * 1_000_000
    (tmp_path / "model.json").write_text(json.dumps(content))
    report = report_of(tmp_path / "model.json")
    page, _ = both(report)
    assert len(report.html()) < 150_000
    assert "270 more" in page
    assert "The coefficients of 288 more classes" in page


def test_the_largest_of_many_columns_are_shown_and_an_old_file_says_what_it_lacks(tmp_path):
    content, columns = model_file.to_dict(model("two classes")), 10_000
    coef = np.random.default_rng(0).normal(size=columns)
    content |= {"columns": columns, "coef": [coef.tolist()], "feature_names": None, "scaling": None, "plan": None}
    content["ranges"] = {"low": [-1.0] * columns, "high": [1.0] * columns}
    (tmp_path / "model.json").write_text(json.dumps(content))
    report = report_of(tmp_path / "model.json", columns=7)
    page, _ = both(report)
    assert len(report.html()) < 60_000
    assert "9,993 columns that can move it less are not shown" in page
    assert all(f"x{j} " in page for j in np.argsort(-np.abs(coef))[:7])
    assert f"x{np.argsort(-np.abs(coef))[7]} " not in page
    assert "The plan is not known" in page


def test_numbers_of_any_size_can_be_drawn(tmp_path):
    content = model_file.to_dict(model("no intercept"))
    for coef in ([0.0, 0.0, 0.0], [1e290, -1e-320, 0.0], [5e-324, 0.0, 0.0]):
        (tmp_path / "model.json").write_text(json.dumps(content | {"coef": coef, "scaling": None, "plan": None}))
        check_page(report_of(tmp_path / "model.json").html())


def test_a_seed_a_ledger_address_and_a_generator_are_not_shown():
    secret = Ridge(
        bounds=(-1.0, 1.0), y_bounds=(0.0, 1.0), random_state=987_654, ledger=None, dataset=None, epsilon=2.0
    ).fit(X, y)
    secret.ledger = "postgresql://me:password@host/db"
    for text in both(report_of(secret)):
        assert "987654" not in text
        assert "password" not in text


def test_the_same_model_gives_the_same_page_and_files_are_not_overwritten(tmp_path):
    path = tmp_path / "report.html"
    write_report(model("regression"), path)
    assert path.read_text(encoding="utf-8") == report_of(model("regression")).html()
    with pytest.raises(FileExistsError):
        write_report(model("regression"), path)
    write_report(model("regression"), path, overwrite=True)
    write_report(model("regression"), tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# Ridge")


@pytest.mark.parametrize("wrong", [None, 3.0, "estimator", Ridge()])
def test_what_is_no_fitted_model_is_refused(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, OSError)):
        report_of(wrong)


STYLE = re.compile(r"--([\w-]+): (#[0-9a-f]{6})\b")


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_texts_have_enough_contrast_in_every_scheme():
    style = re.search(r"<style>(.*?)</style>", report_of(model("regression")).html(), re.DOTALL)[1]
    schemes = [dict(STYLE.findall(part)) for part in re.findall(r":root \{(.*?)\}", style, re.DOTALL)]
    assert len(schemes) == 3  # light, dark, print
    pairs = [("ink", "page"), ("quiet", "page"), ("ink", "panel"), ("quiet", "panel"), ("first", "page")]
    pairs += [(name, f"{name}-panel") for name in ("danger", "caution")]
    pairs += [("ink", "danger-panel"), ("ink", "caution-panel"), ("second", "page")]
    for scheme in schemes:
        for text, ground in pairs:
            assert contrast(scheme[text], scheme[ground]) >= 4.5, (text, ground)
    assert contrast("#777777", "#888888") < 4.5  # the test can fail
