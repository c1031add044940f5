"""A fitted model as one SELECT statement of standard SQL.

Entries are clipped by CASE, in which a NULL stays a NULL; LEAST and GREATEST would drop it in some databases. Names are
always quoted and columns always named with their table: SQLite reads a quoted name that it does not know as a text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from discreet._common.text import one_line
from discreet.data.arrow_columns import MISSING
from discreet.data.schema import EPOCH, Column, Schema, as_text
from discreet.estimators.reading.linear_form import LARGEST_LOG, LinearForm

FAR = LARGEST_LOG  # EXP of more would be an error of overflow or underflow in some databases


def sql_query(
    form: LinearForm,
    table: str | Sequence[str],
    columns: Iterable[str] | None = None,
    schema: Schema | None = None,
    keep: str | Iterable[str] = (),
    score: bool = False,
    proba: bool = False,
) -> str:
    """The statement; `to_sql` describes its arguments."""
    source = ".".join(_name(part) for part in ([table] if isinstance(table, str) else table))
    if not source:
        raise ValueError("table must be the name of a table, or a sequence such as (schema, table).")
    entries, kept = _entries(form, columns, schema), [keep] if isinstance(keep, str) else list(keep)
    if proba and form.link in ("none", "log"):
        raise ValueError("proba=True: this model has no probabilities; leave it out.")
    answers = _answers(form, score, proba)
    _refuse_same_names([*kept, *answers])
    carried = [f"k{i}" for i in range(len(kept))]
    used = np.flatnonzero(form.coef.any(axis=0)).tolist()
    rows = _select(
        [f"t.{_name(name)} AS {short}" for name, short in zip(kept, carried, strict=True)]
        + [f"{_clipped(form, j, entries[j])} AS x{j}" for j in used],
        f"{source} AS t",
    )
    sums = [f"{_linear(form, k, used)} AS s{k}" for k in range(form.intercept.size)]
    query = _select([*carried, *sums], _inner(rows, "a"))
    layers = _probability_layers(form) if proba else [[f"{_near('s0')} AS d0"]] if form.link == "log" else []
    for layer, alias in zip(layers, "bcd", strict=False):
        query = _select([f"{alias}.*", *layer], _inner(query, alias))
    last = [f"{short} AS {_name(name)}" for name, short in zip(kept, carried, strict=True)]
    return _select([*last, *(f"{text} AS {_name(name)}" for name, text in answers.items())], _inner(query, "z"))


def _select(what: list[str], source: str) -> str:
    listed = ",\n  ".join(what or ["1"])  # a model without coefficients needs no column
    return f"SELECT\n  {listed}\nFROM {source}"


def _inner(query: str, alias: str) -> str:
    return f"(\n{query}\n) AS {alias}"


def _name(name: Any) -> str:
    """A quoted identifier."""
    if not name:
        raise ValueError("names of tables and columns must not be empty.")
    return _quoted(name, '"', "names of tables and columns")


def _quoted(text: Any, mark: str, what: str) -> str:
    """A text between marks; marks inside are doubled, so that no text can end it.

    A backslash is a letter in standard SQL. Some databases read it as an escape, which could undo the mark behind it.
    """
    if not isinstance(text, str) or "\0" in text or "\\" in text:
        shown = one_line(repr(text), 80)
        raise ValueError(f"{what} must be texts without NUL and without backslashes to be written in SQL; got {shown}.")
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"


def _entries(form: LinearForm, columns: Iterable[str] | None, schema: Schema | None) -> list[str]:
    """What the entry of each column is, for a row of the table."""
    if schema is None:
        return [_numeric(name) for name in _columns(form, columns)]
    if columns is not None:
        raise ValueError("pass columns or schema, not both.")
    found = [entry for column in schema.used for entry in _encoded(column)]
    if len(found) != form.columns:
        raise ValueError(f"schema makes {len(found)} columns of numbers, but the model has {form.columns}.")
    return found


def _encoded(column: Column) -> list[str]:
    """A number as it is, a category as one indicator for each of its values; missing ones as the schema says."""
    if column.type == "date":
        raise ValueError(
            f"column {column.name!r} is a date, for which standard SQL has no number of days; add a column with the "
            f"days since {column.epoch or EPOCH} to the table and pass columns=[...] instead of a schema."
        )
    name = f"t.{_name(column.name)}"
    if column.type == "number":
        number = _numeric(column.name)
        filled = number if column.filled is None else f"COALESCE({number}, {_number(column.filled)})"
        return [filled, *([_indicator(f"{name} IS NULL")] if column.has_indicator else [])]
    gap = _gap(name, column)
    filled_by = column.missing is not None and as_text(column.missing)
    tests = [
        f"{name} = {_label(value)}"
        + (f" OR {gap}" if value == filled_by else f" OR {name} IS NULL" if not value else "")
        for value in column.levels
    ]
    return [_indicator(test) for test in [*tests, *([gap] if column.has_indicator else [])]]


def _gap(name: str, column: Column) -> str:
    """Whether a category is missing: NULL, or a word for that which is no category."""
    listed = column.categories or ()
    words = [_label(word) for word in MISSING if word not in listed]
    tests = [f"{name} IS NULL"] if "" not in listed else []
    tests += [f"CAST({name} AS VARCHAR(9)) IN ({', '.join(words)})"] if words else []
    return " OR ".join(tests or ["1 = 0"])


def _indicator(test: str) -> str:
    return f"CASE WHEN {test} THEN 1.0 ELSE 0.0 END"


def _numeric(name: str) -> str:
    return f"CAST(t.{_name(name)} AS DOUBLE PRECISION)"


def _columns(form: LinearForm, columns: Iterable[str] | None) -> list[str]:
    if columns is None:
        if form.names is None:
            raise ValueError("the model was fitted without column names; pass columns=[...], in the order of the fit.")
        return list(form.names)
    names = [columns] if isinstance(columns, str) else list(columns)
    if len(names) != form.columns:
        raise ValueError(f"columns has {len(names)} names, but the model has {form.columns} columns.")
    return names


def _refuse_same_names(names: list[str]) -> None:
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise ValueError(f"two columns of the result would be called {one_line(name, 80)!r}; keep other columns.")


def _number(value: float) -> str:
    """A number that reads back as the same double, in brackets if negative."""
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _quoted(value, "'", "classes and categories")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the class {value} is not a finite number, which SQL has no way to write.")
    return str(value) if isinstance(value, int) else _number(value)


def _clipped(form: LinearForm, column: int, entry: str) -> str:
    """The entry within its range; NULL if it is NULL, since no comparison with NULL is true."""
    cases = [
        f"WHEN {entry} {sign} {_number(ends[column])} THEN {_number(ends[column])}"
        for sign, ends in (("<", form.low), (">", form.high))
        if math.isfinite(ends[column])
    ]
    return f"CASE {' '.join(cases)} ELSE {entry} END" if cases else entry


def _linear(form: LinearForm, output: int, used: list[int]) -> str:
    terms = [f"{_number(form.coef[output, j])} * x{j}" for j in used]
    return _sum([*terms, f"CAST({_number(form.intercept[output])} AS DOUBLE PRECISION)"])


def _sum(terms: list[str]) -> str:
    """A sum in brackets of halves: databases limit how deep an expression may be, and it is rounded less."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_sum(terms[:half])} + {_sum(terms[half:])})"


def _answers(form: LinearForm, score: bool, proba: bool) -> dict[str, str]:
    """The columns of the result beside the kept ones, each with the expression that gives it."""
    labels = form.labels
    if not labels:
        return {"prediction": "EXP(d0)" if form.link == "log" else "s0"}
    if len(labels) == 2:
        scores = {"score": "s0"}
        label = f"CASE WHEN s0 > 0 THEN {_label(labels[1])} WHEN s0 <= 0 THEN {_label(labels[0])} END"
    else:
        scores = {f"score_{label}": f"s{k}" for k, label in enumerate(labels)}
        label = _at_largest([_label(label) for label in labels])
    columns = {"prediction": label} | (scores if score else {})
    total = _sum([f"p{k}" for k in range(len(labels))])
    return columns | ({f"probability_{label}": f"p{k} / {total}" for k, label in enumerate(labels)} if proba else {})


def _at_largest(values: list[str]) -> str:
    """The value that belongs to the largest score, the first of equals; NULL if a score is."""
    cases = []
    for k, value in enumerate(values):
        wins = " AND ".join(f"s{k} >= s{other}" for other in range(len(values)) if other != k)
        cases.append(f"WHEN {wins} THEN {value}")
    return f"CASE {' '.join(cases)} END"


def _probability_layers(form: LinearForm) -> list[list[str]]:
    """Columns that are added one layer after the other; the last ones, p0, p1, ..., are in proportion."""
    count = len(form.labels)
    if form.link == "softmax":
        far = [f"CASE WHEN s{k} - largest < {_number(-FAR)} THEN {_number(-FAR)} ELSE s{k} - largest END AS d{k}"
               for k in range(count)]  # fmt: skip
        largest = [f"{_at_largest([f's{k}' for k in range(count)])} AS largest"]
        return [largest, far, [f"EXP(d{k}) AS p{k}" for k in range(count)]]
    margins = ["-s0", "s0"] if form.link == "sigmoid" else [f"s{k}" for k in range(count)]
    near = [f"{_near(m)} AS d{k}" for k, m in enumerate(margins)]
    return [near, [f"1.0 / (1.0 + EXP(-d{k})) AS p{k}" for k in range(count)]]


def _near(margin: str) -> str:
    """A margin whose exponential is a number."""
    return (
        f"CASE WHEN {margin} < {_number(-FAR)} THEN {_number(-FAR)} WHEN {margin} > {FAR} THEN {FAR} ELSE {margin} END"
    )
