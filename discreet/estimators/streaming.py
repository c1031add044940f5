"""`partial_fit` for all estimators: what must be declared for a stream, and how a chunk reaches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from discreet.data.validation import refuse_groups
from discreet.estimators.fitting import load_for, public_for
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.relation import Relation, relation_from
from discreet.solvers import ftrl

if TYPE_CHECKING:
    from discreet.solvers import Plan


class StreamLearner:
    """The part of an estimator that learns from streams; the estimator supplies problem, facts and chunks."""

    @property
    def partial_fit(self: Any) -> Callable[..., Any]:
        """Learn from one more chunk of rows: `partial_fit(X, y)`, for classifiers with an optional `classes`.

        The first chunk begins a stream, plans it and books its whole cost; later chunks cost nothing more. There
        is no such method unless the estimator declares what a plan without rows needs: `bounds`, for regressors
        `y_bounds`, and `public_n`, the most rows that will ever come (or, where nobody knows, an explicit `delta`).
        """
        if self.start is not None or self.public_table is not None:
            raise AttributeError("partial_fit takes no public inputs; leave start and public_table out.")
        if self.inference is not False:
            raise AttributeError("no interval can be given: streams are not covered by docs/inference.md.")
        missing = undeclared(self)
        if missing:
            raise AttributeError(
                f"partial_fit plans a whole stream before its rows come and needs to know {', '.join(missing)}; "
                "declare them when the estimator is made."
            )
        chunk: Callable[..., Any] = self._partial_fit
        return chunk

    def _first_chunk(self) -> bool:
        return getattr(self, "stream_", None) is None

    def _advance(self: Any, X: Any, y: Any, metadata: dict[str, Any], declared: Any = None) -> Any:
        """Validate a chunk and feed it to the stream; the first one begins it."""
        refuse_groups(metadata, "partial_fit, to which a person may come again,")
        first = self._first_chunk()
        own = getattr(self, "classes" if first else "classes_", None)
        table = load_for(self, X, y, metadata, reset=first, classes=declared if own is None else own)
        chunk: Any = table.rows
        weighted = self._weighted_with(table.weighted)
        if first:
            plan = stream_plan(self, chunk.columns, table.class_count, chunk.sparse)
            note = f"{type(self).__name__}, stream"
            # Kept before its rows are read: if that fails, nobody begins a second one by accident.
            self.stream_: ftrl.Stream = ftrl.begin_stream(
                plan, is_capped(self), chunk, self.random_state, self.ledger, self.dataset, note
            )
        self.weighted_ = weighted
        self.stream_.read(chunk, show=self._keep)
        return self

    def _weighted_with(self: Any, weighted: bool) -> bool:
        """Whether the stream has weights, as `fit` keeps it, with one more chunk; under zero_out all must agree.

        A null row is one of weight 0. Where only some chunks have weights, no statement about this stream and other
        releases from its rows could say which rows may be null.
        """
        before = weighted if self._first_chunk() else self.weighted_
        if weighted != before and relation_from(self.relation) is Relation.ZERO_OUT:
            raise ValueError(
                "under relation='zero_out' sample_weight goes with all chunks of a stream or with none: a row of "
                "weight 0 is a null row."
            )
        return bool(weighted or before)


def undeclared(model: Any) -> list[str]:
    """What a stream needs to know and the estimator does not say."""
    missing = []
    if model.bounds is None or isinstance(model.bounds, str):
        missing.append("bounds=(low, high)")
    y_bounds = getattr(model, "y_bounds", None)
    if model._regression and (y_bounds is None or isinstance(y_bounds, str)):
        missing.append("y_bounds=(low, high)")
    if model.public_n is None and model.delta is None and not isinstance(model.epsilon, Budget):
        missing.append("public_n (the most rows that may come) or delta")
    return missing


def is_capped(model: Any) -> bool:
    return model.public_n is not None


def stream_plan(model: Any, columns: int, classes: int, sparse: bool) -> Plan:
    """The plan of the stream that an estimator describes; no row is an argument."""
    ftrl.refuse_shifting(relation_from(model.relation))
    rows = model.public_n if is_capped(model) else ftrl.FIRST_ROWS
    public = public_for(model, rows, columns, sparse=sparse)
    budget = budget_from(model.epsilon, model.delta, rows)
    return ftrl.plan_stream(model._problem(classes), public, budget, _solver(model), is_capped(model))


def _solver(model: Any) -> ftrl.FTRL:
    if isinstance(model.solver, ftrl.FTRL):
        return model.solver
    if model.solver in ("auto", "ftrl"):
        return ftrl.FTRL()
    raise ValueError(f'partial_fit needs solver="ftrl", "auto" or an FTRL object; got {model.solver!r}.')
