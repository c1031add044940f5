"""What people type from habit is answered with what to write instead; notebooks show the budget and the promise."""

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import discreet
from discreet import Budget, LogisticRegression, Ridge
from discreet.estimators.base import HINTS
from discreet.estimators.names import CLASSIFIERS, REGRESSORS
from tests.reading_tools import fitted

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
]
ALL = [getattr(discreet, name) for name in CLASSIFIERS + REGRESSORS]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_names_of_scikit_learn_are_answered_in_one_line(kind):
    unknown = [name for name in HINTS if name not in inspect.signature(kind).parameters]
    assert {"C", "max_iter", "tol"} <= set(unknown)
    for name in unknown:
        with pytest.raises(TypeError) as error:
            kind(**{name: 1})
        message = str(error.value)
        assert message == f"{kind.__name__} has no parameter {name!r}: {HINTS[name]}."
        assert "\n" not in message
        assert len(message) < 250
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
            kind().set_params(**{name: 1})
        assert str(error.value) == message
    assert kind().set_params(epsilon=0.5).epsilon == 0.5


def test_what_the_answers_tell_to_write_exists():
    """Every expression `name=discreet.....(...)` in an answer is a parameter and can be evaluated."""
    import discreet.model_selection
    import discreet.problem
    import discreet.solvers

    known = set().union(*(inspect.signature(kind).parameters for kind in ALL))
    found = 0
    for hint in HINTS.values():
        for name, value in re.findall(r"(\w+)=(discreet\.[\w.]+\((?:[^()]|\([^()]*\))*\))", hint):
            assert name in known
            eval(value, {"discreet": discreet})
            found += 1
    assert found >= 3
    assert discreet.model_selection.PrivateSearchCV
    assert discreet.PublicModel.of


def test_a_penalty_strength_becomes_alpha():
    """scikit-learn's C with alpha = 1 / (C n): without noise both have one optimum."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    theirs = sklearn.linear_model.LogisticRegression(C=0.1, tol=1e-10).fit(X, y)
    with pytest.warns(discreet.NotPrivateWarning):
        ours = LogisticRegression(epsilon=float("inf"), alpha=1 / (0.1 * 300), classes=[0, 1]).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)


def test_other_unknown_names_and_positions():
    with pytest.raises(TypeError, match="did you mean 'epsilon'"):
        Ridge(epsilom=1.0)
    with pytest.raises(TypeError, match=r"it has .*epsilon.*alpha"):
        Ridge(qqq=1.0)
    with pytest.raises(TypeError, match="by name"):
        Ridge(1.0)


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [("none", "None"), ("L2", '"l2"'), ("lasso", '"l1"'), ("elastic_net", '"elasticnet"'), (False, "None")],
)
def test_spellings_of_penalties_are_answered(spelling, meant):
    with pytest.raises(ValueError, match=f"write penalty={meant}"):
        LogisticRegression(penalty=spelling).plan(100, 2)
    with pytest.raises(ValueError, match=r"must be .* got 'nuclear'\.$"):
        LogisticRegression(penalty="nuclear").plan(100, 2)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_the_constructor_is_still_that_of_scikit_learn(kind):
    model = kind(epsilon=0.5)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
    names = list(inspect.signature(kind).parameters)
    assert sorted(names) == sorted(model.get_params())
    assert kind.__init__.__name__ == "__init__"


def test_a_subclass_may_have_parameters_of_its_own():
    from dataclasses import dataclass

    @dataclass(eq=False, repr=False, kw_only=True)
    class Own(Ridge):
        more: int = 3

    assert Own(more=4).get_params()["more"] == 4


@pytest.mark.parametrize("epsilon", [0.25, Budget.zcdp(0.125), "<script>"])
def test_a_notebook_shows_the_budget_before_the_fit(epsilon):
    model = Ridge(epsilon=epsilon, relation="zero_out")
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        line = html[html.index('<p class="discreet-privacy">') :]
        assert "nothing is fitted yet" in line
        assert "zero_out" in line
        assert ("0.25" in line) or ("0.125" in line) or ("&lt;script&gt;" in line)
        assert "<script>" not in line
        assert "Ridge" in html


def test_a_wrong_parameter_does_not_break_the_picture():
    assert "sideways" in Ridge(relation="sideways")._repr_html_()


def test_a_notebook_shows_the_promise_after_the_fit():
    html = fitted("two classes")._repr_mimebundle_()["text/html"]
    assert "epsilon = 5, delta = " in html
    assert "drawn from a seed" in html
    assert html.count("discreet-privacy") == 1


def test_a_model_without_privacy_is_shown_so():
    with pytest.warns(discreet.NotPrivateWarning):
        html = fitted("regression", epsilon=float("inf"))._repr_html_()
    assert "must be guarded as the table is" in html


def test_where_scikit_learn_is_set_to_text_there_is_no_picture():
    with sklearn.config_context(display="text"):
        assert not hasattr(Ridge(), "_repr_html_")
        assert list(Ridge()._repr_mimebundle_()) == ["text/plain"]


def test_pipelines_with_a_model_still_have_a_picture():
    assert "Ridge" in make_pipeline(Ridge())._repr_html_()


def test_text_among_numbers_is_refused_without_showing_it():
    table = pd.DataFrame({"a": ["1", "2", "secret"] * 20, "b": np.arange(60.0)})
    with pytest.raises(ValueError, match="holds text where numbers are expected") as refused:
        LogisticRegression(classes=[0, 1]).fit(table, [0, 1] * 30)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
