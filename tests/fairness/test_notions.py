"""Quantities of the notions equal their definitions, and the metrics those of fairlearn, on the same predictions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fairlearn import metrics as fairlearn_metrics
from fairlearn.metrics import MetricFrame
from sklearn.metrics import accuracy_score

from discreet.fairness import metrics
from discreet.fairness.cells import CellTable, quantities
from discreet.fairness.evaluation.private_certificate import Bins, questions_of, states_of
from discreet.fairness.fairer.directions import Cells
from discreet.fairness.harm.at_plan import harm_of
from discreet.fairness.notions import NOTIONS, Notion
from tests.cli_tools import run
from tests.fairness_tools import direct_values


def random_table(seed, classes=2, groups=2, rows=200):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    predicted = np.where(rng.uniform(size=rows) < 0.6, y, rng.integers(classes, size=rows))
    return y, predicted, rng.choice([f"g{k}" for k in range(groups)], size=rows)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("classes", "favourable"), [(2, 1), (2, 0), (4, 2)])
def test_values_are_those_of_the_definitions(seed, classes, favourable):
    y, predicted, group = random_table(seed, classes, groups=2 + seed % 3)
    cells = CellTable.from_predictions(y, predicted, group)
    found = {(q.notion, q.label, q.group): q.value(cells) for q in quantities(cells, favourable=favourable)}
    wanted = direct_values(y, predicted, group, favourable)
    assert found.keys() == wanted.keys()
    assert all(found[about] == pytest.approx(wanted[about], abs=1e-12) for about in wanted)


def test_the_weights_of_the_corrected_formula_sum_to_the_exact_change():
    """With one error bound E for all cells, the sum of |weights| is E_cell + E_label - 2 P(group | label) E_cell."""
    y, predicted, group = random_table(3, groups=3)
    cells = CellTable.from_predictions(y, predicted, group)
    bound = np.random.default_rng(0).uniform(size=cells.counts.shape)
    overall = (bound * cells.counts).sum() / cells.total
    of_label = (bound * cells.counts).sum(axis=1) / cells.counts.sum(axis=1)
    of_group = (bound * cells.counts).sum(axis=0) / cells.counts.sum(axis=0)
    for quantity in quantities(cells):
        i = None if quantity.label is None else cells.labels.tolist().index(quantity.label)
        k = None if quantity.group is None else cells.groups.tolist().index(quantity.group)
        if quantity.notion in ("equalised odds", "equality of opportunity"):
            share = cells.counts[i, k] / cells.counts[i].sum()
            wanted = bound[i, k] + of_label[i] - 2.0 * share * bound[i, k]
        elif quantity.notion == "accuracy":
            wanted = overall
        else:
            wanted = of_group[k] + overall - 2.0 * cells.counts[:, k].sum() / cells.total * of_group[k]
        assert quantity.absolute_change(bound) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_metrics_agree_with_fairlearn(seed):
    y, predicted, group = random_table(seed, groups=2 + seed % 4)
    cells = CellTable.from_predictions(y, predicted, group)
    names = [name for name in metrics.METRICS if name != "accuracy_difference"]
    assert len(names) == 4
    for name in names:
        wanted = getattr(fairlearn_metrics, name)(y, predicted, sensitive_features=group)
        assert metrics.METRICS[name](cells) == pytest.approx(wanted, abs=1e-12)
    frame = MetricFrame(metrics=accuracy_score, y_true=y, y_pred=predicted, sensitive_features=group)
    assert metrics.accuracy_difference(cells) == pytest.approx(frame.difference(), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_quantities_of_groups_agree_with_the_metric_frames_of_fairlearn(seed):
    y, predicted, group = random_table(seed, groups=3)
    cells = CellTable.from_predictions(y, predicted, group)
    for notion, metric in [
        ("accuracy parity", accuracy_score),
        ("demographic parity", fairlearn_metrics.selection_rate),
    ]:
        frame = MetricFrame(metrics=metric, y_true=y, y_pred=predicted, sensitive_features=group)
        for quantity in quantities(cells, [notion]):
            wanted = frame.by_group[quantity.group] - frame.overall
            assert quantity.value(cells) == pytest.approx(wanted, abs=1e-12)


def test_an_empty_cell_has_no_value_and_leaves_the_others_alone():
    y, predicted, group = [0, 0, 1, 1, 1], [0, 1, 1, 0, 1], ["a", "b", "a", "a", "a"]
    cells = CellTable.from_predictions(y, predicted, group)
    found = {(q.notion, q.label, q.group): q.value(cells) for q in quantities(cells)}
    undefined = [about for about, value in found.items() if math.isnan(value)]
    assert undefined == [("equalised odds", 1, "b"), ("equality of opportunity", 1, "b")]
    assert found["accuracy parity", None, "b"] == pytest.approx(0.0 - 0.6)
    assert metrics.equalized_odds_difference(cells) == pytest.approx(1.0)  # group b has no true positive rate


def test_one_spelling_and_unknown_names():
    cells = CellTable.from_predictions([0, 1, 2], [0, 1, 2], ["a", "a", "b"])
    assert {q.notion for q in quantities(cells, "equalized odds")} == {"equalised odds"} <= set(NOTIONS)
    assert {q.notion for q in quantities(cells)} == {"equalised odds", "accuracy parity", "accuracy"}
    with pytest.raises(ValueError, match="notions must be among"):
        quantities(cells, ["fairness"])
    with pytest.raises(ValueError, match="two labels only"):
        quantities(cells, "demographic parity", favourable=1)
    with pytest.raises(ValueError, match="needs favourable"):
        quantities(cells, "equality of opportunity")
    with pytest.raises(ValueError, match="favourable must be among"):
        quantities(cells, favourable=7)
    with pytest.raises(ValueError, match="two labels"):
        metrics.demographic_parity_ratio(cells)


@pytest.mark.parametrize(
    ("y", "group", "message"),
    [
        ([0, 1], ["a"], "one of each per row"),
        ([], [], "no rows"),
        ([0, 1], ["a", None], "missing"),
        ([0.0, math.nan], ["a", "b"], "missing"),
        ([[0], [1]], ["a", "b"], "one value per row"),
        ([0, 3], ["a", "b"], "none of"),
    ],
)
def test_tables_that_make_no_sense_are_refused(y, group, message):
    with pytest.raises(ValueError, match=message):
        CellTable.from_predictions(y, y, group, labels=None if message != "none of" else [0, 1])


ADDED = Notion("accuracy of labels", labels="each", groups=False)


@pytest.mark.parametrize("notion", [*NOTIONS.values(), ADDED], ids=lambda notion: notion.name)
def test_private_questions_ask_for_the_same_numbers(notion, monkeypatch):
    """What noisy counts are asked for follows from the same declaration, also for a notion that is added."""
    monkeypatch.setitem(NOTIONS, notion.name, notion)
    y, predicted, group = random_table(5, groups=3)
    cells = CellTable.from_predictions(y, predicted, group)
    asked = quantities(cells, notion.name)
    names = tuple(cells.groups.tolist())
    questions = questions_of(cells.labels, names, notion.name, None)
    bins = Bins(len(cells.labels), len(names))
    places = (np.searchsorted(values, column) for values, column in ((cells.labels, y), (cells.groups, group)))
    counts = np.bincount(bins.of(*places, states_of(y == predicted, np.zeros(y.size, bool))), minlength=bins.size)

    def share(event, rows):
        return counts[event & rows].sum() / counts[rows].sum()

    assert len(questions) == len(asked) > 0
    for question, quantity in zip(questions, asked, strict=True):
        value = share(question.event, question.whole if question.part is None else question.part)
        value -= 0.0 if question.part is None else share(question.event, question.whole)
        assert (question.notion, question.label, question.group) == (notion.name, quantity.label, quantity.group)
        assert value == pytest.approx(quantity.value(cells), abs=1e-12)


def test_unknown_notions_are_refused_wherever_they_are_named():
    with pytest.raises(ValueError, match=r"notions must be among 'equalised odds', .*; got 'kindness'"):
        questions_of([0, 1], ("a", "b"), "kindness", None)
    with pytest.raises(ValueError, match="notion must be one of 'equalised odds', 'equality"):
        Cells.of("accuracy parity", ["a", "b"], None, None)  # which compares no mean rows
    assert Cells.of("equalized odds", ["a", "b"], None, [0, 1]).labels == (0, 1)


def test_help_and_docstrings_name_every_notion():
    shown = " ".join(run("fairness-plan", "--help").stdout.replace("│", " ").split())
    assert all(name in shown and f'"{name}"' in harm_of.__doc__ for name in NOTIONS)
