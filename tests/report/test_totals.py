"""A report with an evaluation states one total promise, or says why there is none; the ledger has its say."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Ledger, LogisticRegression, save_model
from discreet.metrics import evaluate
from discreet.privacy.accounting import best_of_trials_event, compose, epsilon_of, pure_event
from discreet.privacy.ledger import ModelLedger
from discreet.privacy.statement import rounded_up
from discreet.report import report_of
from discreet.report.write import Material
from tests.report_tools import check_page, numbers, plain_markdown

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning"),
]
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (1_000, 2))
y = (X[:, 0] > 0.0).astype(int)


def trained(**more):
    return LogisticRegression(**{"bounds": (-1.0, 1.0), "classes": [0, 1], "epsilon": 2.0} | more).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return trained()


def told(made):
    text, written = check_page(made.html()).text, plain_markdown(made.markdown())
    assert numbers(text) == numbers(written)
    return text


def total_of(fit, found):
    return Material(fit, None, "", (), found, None, None, "", 5).total_or_reason


def test_the_total_is_that_of_both_releases_composed(model):
    found = evaluate(model, X, y, 0.7)
    total = total_of(model, found)[0]
    event = compose([model.guarantee_.event, found.guarantee.event])
    assert total.epsilon == epsilon_of(event, total.delta, "replace")
    assert total.delta == max(model.guarantee_.delta, found.guarantee.delta)
    assert max(2.0, 0.7) < total.epsilon <= 2.7
    text = told(report_of(model, evaluation=found))
    assert text.index(f"both together replace {rounded_up(total.epsilon, 6)}") > 0
    assert f"({rounded_up(total.epsilon, 6)}, {rounded_up(total.delta, 4)})-differentially private" in text
    for limits in found.figures.values():
        assert all(cell in text for cell in limits.texts())
    assert "predicted probability of the second label" in report_of(model, evaluation=found).html()


@pytest.mark.parametrize(
    ("fit", "more", "why"),
    [
        ({}, {"relation": "zero_out"}, "do not compose"),
        ({"relation": "add_remove", "public_n": 1_000}, {}, "do not compose"),
    ],
)
def test_promises_under_different_relations_are_not_added_up(fit, more, why):
    made = trained(**fit)
    found = evaluate(made, X, y, 0.7, **more)
    text = told(report_of(made, evaluation=found))
    assert "No total can be stated" in text
    assert why in text
    assert "both together" not in text
    assert "epsilon of the model" in text


def test_weights_in_one_of_both_only_are_not_added_up_where_null_rows_count():
    made = trained(relation="zero_out")
    plain = evaluate(made, X, y, 0.7, relation="zero_out")
    weighted = evaluate(made, X, y, 0.7, relation="zero_out", sample_weight=np.ones(len(y)))
    assert total_of(made, plain)[0] is not None
    assert total_of(made, weighted)[0] is None
    assert "weighted" in total_of(made, weighted)[1]


def test_one_result_without_privacy_makes_the_page_not_private(model):
    open_evaluation = evaluate(model, X, y, math.inf)
    text = told(report_of(model, evaluation=open_evaluation))
    assert "NOT PRIVATE" in text
    assert "The evaluation on this page was computed without" in text
    assert "both together replace infinite" in text
    without = trained(epsilon=math.inf)
    text = told(report_of(without, evaluation=evaluate(without, X, y, 0.5)))
    assert "The model on this page was computed without" in text


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
def test_gaps_of_the_evaluation_are_told(model):
    text = told(report_of(model, evaluation=evaluate(model, X, y, 0.7, random_state=1)))
    assert "The promise has gaps" in text
    assert "I have read what the promise does not cover" in text


def test_an_evaluation_of_another_model_is_refused(model):
    with pytest.raises(ValueError, match="not one of this model"):
        report_of(trained(), evaluation=evaluate(model, X, y, 0.7))
    found = evaluate(model, X, y, 0.7)
    with pytest.raises(ValueError, match="not one of this model"):
        report_of(model, evaluation=replace(found, model=""))


@pytest.fixture
def book(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=5.0, delta=1e-6)
    return ledger


def test_the_ledger_tells_its_entries_and_that_it_is_intact(book):
    made = trained(ledger=book, dataset="clinic")
    found = evaluate(made, X, y, 0.7, ledger=book, dataset="clinic")
    text = told(report_of(made, evaluation=found, ledger=book))
    assert "records of the ledger are intact" in text
    assert f"{book.spent('clinic'):.6g}" in text
    entries = [made.guarantee_.release.ledger.entries[0], found.guarantee.release.ledger.entries[0]]
    assert all(f" {entry} 20" in text for entry in entries)
    assert "Entries of this model among the 2" in text


def test_a_ledger_without_the_model_or_with_other_records_is_told(book, model, tmp_path):
    assert "Not booked" in told(report_of(model, ledger=book, dataset="clinic"))
    with pytest.raises(ValueError, match="--dataset"):
        report_of(model, ledger=book)
    with pytest.raises(ValueError, match="there is no ledger"):
        report_of(model, ledger=str(tmp_path / "none.db"), dataset="clinic")
    with pytest.raises(ValueError, match="unknown data set"):
        report_of(model, ledger=book, dataset="other")
    made = trained(ledger=book, dataset="clinic")
    other = Ledger(tmp_path / "other.db")
    other.open("clinic", epsilon=5.0, delta=1e-6)
    assert "is not the one that was used" in told(report_of(made, ledger=other))


def test_an_entry_that_belongs_to_another_file_is_told(tmp_path, book):
    clerk = ModelLedger(tmp_path / "budget.db")
    made = trained(ledger=clerk, dataset="clinic")
    clerk.record_model("0" * 64)
    save_model(made, tmp_path / "model.json")
    assert "no: another file" in told(report_of(tmp_path / "model.json", ledger=book))


def test_a_file_that_names_the_entry_of_a_cheaper_model_is_found_out(book):
    cheap = trained(ledger=book, dataset="clinic", epsilon=0.2)
    dear = trained(ledger=book, dataset="clinic")
    assert "are intact" in told(report_of(dear, ledger=book))
    forged = replace(dear.guarantee_.release, ledger=cheap.guarantee_.release.ledger)
    dear.guarantee_ = dear.guarantee_.about(forged)
    assert "cost less than the result that names them" in told(report_of(dear, ledger=book))
    assert "The ledger itself was not asked" in told(report_of(dear))


def test_results_from_two_data_sets_are_both_shown(book):
    book.open("other clinic", epsilon=1.0, delta=1e-6)
    made = trained(ledger=book, dataset="clinic")
    found = evaluate(made, X, y, 0.5, ledger=book, dataset="other clinic")
    text = told(report_of(made, evaluation=found, ledger=book))
    assert "of data set 'clinic'" in text
    assert "of data set 'other clinic'" in text


def test_the_times_of_a_search_are_not_shown(book):
    made = trained(ledger=book, dataset="clinic")
    shown = told(report_of(made, ledger=book))
    event = best_of_trials_event([pure_event(0.01)], eta=1.0, gamma=0.5)
    made.guarantee_ = replace(made.guarantee_, event=event, epsilon=epsilon_of(event, 1e-6, "replace"))
    hidden = told(report_of(made, ledger=book))
    year = made.guarantee_.release.date[:4]
    assert f" {year}-" in shown[shown.index("Entries of this model") :]
    assert f" {year}-" not in hidden[hidden.index("Entries of this model") :]


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_a_promise_for_persons_is_told_as_such_and_does_not_compose_with_an_evaluation_of_rows(relation, tmp_path):
    book, ids = Ledger(tmp_path / "budget.db"), rng.integers(0, 400, 1_000)
    persons = np.unique(ids).size
    book.open("clinic", 3.0, 1e-5, relation, unit="person")
    settings = {"bounds": (-1.0, 1.0), "classes": [0, 1], "epsilon": 2.0, "delta": 1e-6, "relation": relation}
    settings |= {"public_n": persons} if relation == "add_remove" else {}
    fit = LogisticRegression(**settings, ledger=book, dataset="clinic").fit(X, y, groups=ids)
    made = report_of(fit, ledger=book)
    text, shown = told(made), dict(made.numbers)
    assert "protects one person" in shown
    assert shown["persons"].endswith(str(persons))
    assert not {"rows", "protects one row"} & set(shown)
    for wrong in ("single rows", "more than one row", "all other rows", "a certain row", "this row", "1,000"):
        assert wrong not in made.html()
    assert f"relation {relation}, for whole persons" in text
    assert "more than one id" in text
    found = evaluate(fit, X, y, 0.7, relation=relation, public_n=1_000 if relation == "add_remove" else None)
    both = report_of(fit, evaluation=found)
    assert total_of(fit, found)[0] is None
    assert dict(both.numbers)["epsilon of the model"] == "2"
    text = told(both)
    assert "No total can be stated" in text
    assert "a person with several rows in the table of the evaluation is protected less" in text
    assert "more than one row in the table, or" in text


def test_a_data_set_for_rows_has_not_paid_for_persons(model, tmp_path):
    book = Ledger(tmp_path / "budget.db")
    book.open("clinic", 3.0, 1e-5)
    fit = trained(ledger=book, dataset="clinic", delta=1e-6)
    assert "is not kept for" not in told(report_of(fit, ledger=book))
    fit.guarantee_ = replace(fit.guarantee_, unit="person")
    assert "'clinic' is not kept for persons" in told(report_of(fit, ledger=book))
