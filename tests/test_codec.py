"""What the annotations of a dataclass let in, and what is refused, in a message that names the field."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from discreet._common.codec import (
    Amount,
    Count,
    Format,
    Size,
    Unbounded,
    UsualArray,
    built,
    described,
    parse_json,
    written,
)
from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.privacy.accounting import gaussian_event
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee, ReleaseRecord, guarantee_for
from discreet.privacy.relation import Relation


def even(what, value):
    if value % 2:
        raise ValueError(f"{what} must be even.")
    return value


@dataclass(frozen=True)
class Part:
    size: Size
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Everything:
    flag: bool
    whole: int
    number: float
    text: str
    ends: Unbounded
    choice: Literal["a", "b"]
    relation: Relation
    maybe: float | None
    label: str | int | float | bool
    pair: tuple[int, str]
    parts: list[Part]
    named: Mapping[str, Part]
    floats: FloatArray
    places: IntArray
    flags: BoolArray
    state: UsualArray
    even: Annotated[int, even]
    part: Part | None = None
    amount: Amount = 0.0
    count: Count = 0
    anything: Any = None


GOOD = Everything(
    True, 3, 0.5, "x", math.inf, "b", Relation.ZERO_OUT, None, "no", (1, "a"), [Part(2, ("u", "v"))], {"p": Part(1)},
    np.array([[1.0, 2.5]]), np.array([1, 2]), np.array([True]), np.array([0.0, 1e99]), 4, Part(5), 0.1, 7, [{"a": 1}],
)  # fmt: skip
CONTENT = json.loads(json.dumps(written(GOOD), allow_nan=False))


def test_what_is_written_comes_back():
    again = built(Everything, CONTENT)
    assert json.dumps(written(again)) == json.dumps(CONTENT)
    assert (again.ends, again.relation, again.pair, again.part) == (math.inf, Relation.ZERO_OUT, (1, "a"), Part(5))
    assert [again.floats.dtype, again.places.dtype, again.flags.dtype] == [np.float64, np.int64, np.bool_]


def test_fields_at_their_default_can_be_left_out():
    assert written(Part(1), "texts") == {"size": 1}
    assert written(Part(1, ("a",)), "texts") == {"size": 1, "texts": ["a"]}
    assert built(Part, {"size": 1}) == Part(1)


REFUSED = [
    *[("flag", value) for value in (0, 1, "true", None)],
    *[("whole", value) for value in (True, 1.0, "1", None, 10**400, [1])],
    *[("number", value) for value in (True, "0.5", "inf", math.nan, math.inf, None, [])],
    *[("text", value) for value in (1, None, ["x"])],
    *[("ends", value) for value in ("nan", "Infinity", True, math.nan)],
    *[("choice", value) for value in ("c", 1, ["a"])],
    *[("relation", value) for value in ("near", 2, {})],
    *[("maybe", value) for value in ("1", False, [1.0])],
    *[("label", value) for value in (None, [], {})],
    *[("pair", value) for value in ([1], [1, "a", 2], ["a", 1], "ab")],
    *[("parts", value) for value in ({}, [1], [{"size": 0}], [{"size": 1, "texts": [1]}], [{}])],
    *[("named", value) for value in ([], {"p": 1}, {"p": {"size": True}})],
    *[("floats", value) for value in (["1.0"], [[1.0], [1.0, 2.0]], [None], [10**400], "1", [math.inf], [True])],
    *[("places", value) for value in ([1.0], [True], [2**70], ["1"])],
    *[("flags", value) for value in ([0], ["true"])],
    *[("state", value) for value in ([1e101], [math.nan])],
    *[("even", value) for value in (3, 2.0)],
    *[("part", value) for value in (1, [], {"size": 1, "more": 2})],
    *[("amount", value) for value in (-0.1, "inf")],
    *[("count", value) for value in (-1, 1.5)],
]


@pytest.mark.parametrize(("field", "value"), REFUSED, ids=lambda value: str(value)[:20])
def test_another_value_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"damaged: .*{field}") as refused:
        described(lambda: built(Everything, CONTENT | {field: value}), "damaged")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_missing_and_unknown_fields_are_refused_by_name():
    lacking = {name: value for name, value in CONTENT.items() if name != "whole"}
    with pytest.raises(ValueError, match="lacks its field 'whole'"):
        built(Everything, lacking)
    with pytest.raises(ValueError, match="the file has no field 'hole'"):
        built(Everything, CONTENT | {"hole": 1}, "the file")


def test_entries_of_lists_are_not_shown():
    with pytest.raises(ValueError, match="state") as refused:
        built(Everything, CONTENT | {"state": [123.456, "secret"]})
    assert "secret" not in str(refused.value)
    assert "123" not in str(refused.value)


def test_a_format_says_what_to_do_about_another_version():
    form = Format("thing", 3, derived=("shown",))
    assert form.body({"format": "thing", "version": 3, "shown": "x", "kept": 1}) == {"kept": 1}
    for version, word in ((4, "upgrade"), (2, "that wrote it"), (True, "version True"), ("3", "version '3'")):
        with pytest.raises(ValueError, match=word):
            form.body({"format": "thing", "version": version})
    for content in ([], {}, {"format": "else", "version": 3}):
        with pytest.raises(ValueError, match='it lacks "format": "thing"'):
            form.body(content)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', "NaN", "-Infinity", "1e400", "1" + 400 * "0", '"\\ud800"']
)
def test_what_other_readers_take_is_refused(text):
    with pytest.raises(ValueError, match=r"twice|finite|large|half"):
        parse_json(text.encode())


@dataclass(frozen=True)
class Promise:
    size: Size
    leaks: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    in_every_file: ClassVar[tuple[str, ...]] = ("leaks",)


def test_a_field_with_a_default_may_be_one_that_every_file_has():
    assert built(Promise, {"size": 1, "leaks": ["a seed"]}) == Promise(1, ("a seed",))
    with pytest.raises(ValueError, match="lacks its field 'leaks'"):
        built(Promise, {"size": 1})


@pytest.mark.parametrize("path", [("leaks",), ("release",), ("release", "table"), ("release", "ledger")])
def test_a_guarantee_that_does_not_say_what_leaks_or_where_it_was_booked_is_refused(path):
    record = ReleaseRecord("means", 9, "exact", 2, "2026-11-18T00:00:00+00:00", "0.1.0")
    promise = guarantee_for(gaussian_event(30.0), Budget(1.0, 1e-6), Relation.REPLACE, 9).with_seed().about(record)
    content = json.loads(json.dumps(promise.to_dict()))
    assert Guarantee.from_dict(content).leaks == promise.leaks
    part = content["release"] if len(path) == 2 else content
    del part[path[-1]]
    with pytest.raises(ValueError, match=f"lacks its field '{path[-1]}'"):
        Guarantee.from_dict(content)
