"""What a notebook shows below the diagram of an estimator: the budget, or after the fit what is guaranteed."""

from __future__ import annotations

from html import escape
from typing import Any

from discreet._common.text import one_line
from discreet.privacy.relation import relation_from
from discreet.privacy.statement import rounded_up

LONGEST = 300  # characters of a parameter that is not a number


def privacy_line(estimator: Any) -> str:
    """One paragraph of HTML; every text that comes from outside is escaped."""
    shown = _guaranteed(estimator) if hasattr(estimator, "coef_") else _budget(estimator)
    return f'<p class="discreet-privacy"><b>privacy</b>: {escape(shown)}</p>'


def _budget(estimator: Any) -> str:
    """The parameters are shown as they are: a repr must not fail on one that `fit` will refuse."""
    try:
        relation = str(relation_from(estimator.relation))
    except ValueError:
        relation = one_line(repr(estimator.relation), LONGEST)
    delta = "" if estimator.delta is None else f", delta = {one_line(str(estimator.delta), LONGEST)}"
    epsilon = one_line(str(estimator.epsilon), LONGEST)
    return f"epsilon = {epsilon}{delta}, relation {relation}; nothing is fitted yet."


def _guaranteed(estimator: Any) -> str:
    own = estimator.guarantee_
    if not own.is_private:
        return "none: epsilon is infinite, and the model must be guarded as the table is."
    shown = (
        f"epsilon = {rounded_up(own.epsilon, 6)}, delta = {rounded_up(own.delta, 4)}, relation "
        f"{own.relation}; print(model.guarantee_) says what that means, print(model.summary()) what the model says."
    )
    leaks = "; ".join(one_line(leak, LONGEST) for leak in own.leaks)
    return f"{shown} ATTENTION, not covered: {leaks}" if leaks else shown
