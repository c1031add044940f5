"""Damaged files of every kind: refused in one line, or read as something that gives finite numbers.

Two thousand inputs in every run of the tests, 100,000 with `make fuzz`; they are the same in every run. A fault names
the target and the number of the input: `target.content(number)` makes it again.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import pickle
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.data.schema import load_schema
from tests.fuzz_ledger import ledger_files
from tests.fuzz_targets import TARGETS, events, models, schemas, streams
from tests.fuzzing import Outcome, Target, TooSlow, fuzz, limited_time, try_content
from tests.mutations import DEPTH

INPUTS = int(os.environ.get("DISCREET_FUZZ_INPUTS", "2000"))
BY_NAME = {target.name: target for target in TARGETS}


def test_every_input_belongs_to_a_target():
    assert sum(target.share for target in TARGETS) == 1_000


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_files_are_refused_in_one_line_or_give_finite_numbers(target, tmp_path):
    outcome = fuzz(target, INPUTS * target.share // 1_000, tmp_path)
    print(f"{target.name}: {outcome}")
    assert not outcome.faults, f"{target.name}: {outcome}"
    assert min(outcome.accepted, outcome.refused) > 0, f"the damage is too small or too large: {outcome}"


MISSING = object()


def edited(content, place, value):
    """A JSON file with one value changed, or removed."""
    content = copy.deepcopy(content)
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    if value is MISSING:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return json.dumps(content).encode()


def repeated(event, count):
    return json.dumps({"type": "SelfComposedDpEvent", "event": event, "count": count}).encode()


def composed(events):
    return {"type": "ComposedDpEvent", "events": events}


POISSON = {
    "type": "PoissonSampledDpEvent",
    "sampling_probability": 0.01,
    "event": {"type": "GaussianDpEvent", "noise_multiplier": 4.0},
}
MIXTURE = {"type": "MixtureOfGaussiansDpEvent", "standard_deviation": 1.0}
MIXTURE |= {"sensitivities": [1.0] * 50_000, "sampling_probs": [1.0 / 50_000] * 50_000}

MANY = [POISSON | {"sampling_probability": 0.01 + 1e-6 * i} for i in range(2_000)]
MUCH_NOISE = POISSON | {"event": {"type": "GaussianDpEvent", "noise_multiplier": 1e200}}
EVENT, SCALE_SHARE = ["guarantee", "event"], ["parameters", "solver", "solver", "scale_share"]

# Files that were not refused properly before: an error from the inside, a hang, too much memory or a wrong model.
REFUSED = {
    "schema: nested too deep": lambda: b'{"columns": ' + b"[" * DEPTH + b"]" * DEPTH + b"}",
    "schema: a value of 100 kB in the message": lambda: edited(schemas()[0], ["columns", 0, "low"], [0] * 50_000),
    "schema: half a character": lambda: edited(schemas()[0], ["columns", 0, "name"], "\ud800"),
    "schema: a name twice": lambda: b'{"columns": [{"name": "a", "name": "b"}]}',
    "event: nested too deep": lambda: b"[" * DEPTH + b"]" * DEPTH,
    "event: a list": lambda: b"[]",
    "event: more releases than floats can count": lambda: repeated(json.loads(repeated(POISSON, 10**200)), 10**200),
    "event: a mixture of 50,000 parts": lambda: json.dumps(MIXTURE).encode(),
    "model: classes of 3 GB": lambda: edited(models()[0], ["classes", "dtype"], "<U400000000"),
    "model: classes cut to one letter": lambda: edited(models()[0], ["classes", "dtype"], "<U1"),
    "model: equal classes": lambda: edited(models()[0], ["classes", "values"], ["no", "no"]),
    "model: coefficients as texts": lambda: edited(models()[0], ["coef", 0, 0], "1.5"),
    "model: predictions overflow": lambda: edited(models()[0], ["coef", 0, 0], 1e308),
    "model: ranges that hold no number": lambda: edited(models()[2], ["ranges", "high", 0], "-inf"),
    "model: 3.0 columns": lambda: edited(models()[0], ["columns"], 4.0),
    "model: a number beyond floats": lambda: edited(models()[0], ["intercept", 0], 0.5).replace(b"[0.5]", b"[1e400]"),
    "guarantee: epsilon as a text": lambda: edited(models()[0]["guarantee"], ["epsilon"], "1_0"),
    "guarantee: a release of 100 kB": lambda: edited(models()[0]["guarantee"], ["release", "result"], [0] * 50_000),
    "guarantee: 2,000 different releases": lambda: edited(models()[0]["guarantee"], ["event"], composed(MANY)),
    "event: 2,000 different releases": lambda: json.dumps(composed(MANY)).encode(),
    "stream: no tree": lambda: edited(streams()[0], ["state", "tree"], MISSING),
    "stream: a tree of 2^9007199254740993 rows": lambda: edited(streams()[0], ["state", "tree"], 9007199254740993),
    "stream: rows forgotten": lambda: edited(streams()[0], ["state", "position"], 0),
    "stream: an unknown setting": lambda: edited(streams()[0], ["solver", "averageaverage"], True),
    "stream: a plan that is a text": lambda: edited(streams()[0], ["plan"], "x"),
    "stream: a model without an estimator": lambda: edited(streams()[0], ["model", "estimator"], MISSING),
    "stream: sums that overflow": lambda: edited(streams()[0], ["state", "leader", "base", 0], 1e308),
    "stream: a token that is a list": lambda: edited(streams()[0], ["token"], [1]),
    "parquet: a page header that cannot be read": lambda: BY_NAME["parquet"].good()[1].replace(b"\x15", b"\xff", 3),
    "parquet: not a Parquet file": lambda: b"a,b\n1,2\n",
    "ledger: not a database": lambda: b"SQLite format 3\x00" + b"\x00" * 100,
    "ledger: cut off": lambda: ledger_files()[0][:9_000],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_was_read_wrongly_is_refused(name, tmp_path):
    target, outcome = BY_NAME[name.split(":")[0]], Outcome()
    assert try_content(target, REFUSED[name](), tmp_path / f"file{target.ending}", outcome) is None
    assert outcome.refused == 1


ACCEPTED = {
    "schema: a byte order mark": lambda: b"\xef\xbb\xbf" + json.dumps(schemas()[0]).encode(),
    "event: hardly any noise": lambda: json.dumps({"type": "GaussianDpEvent", "noise_multiplier": 1e-200}).encode(),
    "event: hardly any noise, pure": lambda: json.dumps({"type": "PureDpEvent", "epsilon": 1e300}).encode(),
    "event: hardly any cost": lambda: repeated({"type": "BoundedRangeDpEvent", "epsilon": 2.7e-158}, 3),
    "event: a response that is nearly the truth": lambda: edited(events()[6], ["noise_parameter"], 1e-320),
    "model: control characters in a name": lambda: edited(models()[0], ["guarantee", "release", "table"], "\x1b[2J\nb"),
    "model: a share of the budget that is a text": lambda: edited(models()[1], SCALE_SHARE, "inf x"),
    "command: noise that Google's accountant cannot square": lambda: edited(models()[0], EVENT, MUCH_NOISE),
    "model: a plan of more rows than floats can square": lambda: edited(models()[0], ["plan", "rows"], 10**275),
    "model: a constraint that is a number": lambda: edited(models()[0], ["parameters", "constraint"], 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_file_that_was_read_wrongly_is_accepted(name, tmp_path):
    target, outcome = BY_NAME[name.split(":")[0]], Outcome()
    assert try_content(target, ACCEPTED[name](), tmp_path / f"file{target.ending}", outcome) is None
    assert outcome.accepted == 1


def releases(number, count=1):
    """That many different sampled releases, each repeated."""
    each = (POISSON | {"sampling_probability": 0.01 + 1e-7 * i} for i in range(number))
    return composed([{"type": "SelfComposedDpEvent", "event": event, "count": count} for event in each])


def normal_releases(number):
    return composed([{"type": "GaussianDpEvent", "noise_multiplier": 4.0 + 1e-7 * i} for i in range(number)])


def guaranteed(event):
    return edited(models()[0]["guarantee"], ["event"], event)


# Files of up to 10 MB, made to take long or much memory; whether they are refused or not, they may take neither.
HEAVY = {
    "model: three million lists": lambda: b"[" + b"[]," * 3_300_000 + b"[]]",
    "model: an unknown field of three million objects": lambda: (
        json.dumps(models()[0]).encode()[:-1] + b', "x": [' + b"{}," * 3_300_000 + b"{}]}"
    ),
    "model: two million coefficients": lambda: edited(models()[0], ["coef", 0], [1.5] * 1_990_000),
    "model: a text of 10 MB": lambda: edited(models()[0], ["estimator"], "x" * 9_900_000),
    "schema: 700,000 categories": lambda: json.dumps(
        {"columns": [{"name": "c", "type": "category", "categories": [f"v{i}" for i in range(700_000)]}]}
    ).encode(),
    "event: 50,000 different releases": lambda: json.dumps(releases(50_000)).encode(),
    "event: 140,000 normal releases": lambda: json.dumps(normal_releases(140_000)).encode(),
    "guarantee: 140,000 normal releases": lambda: guaranteed(normal_releases(140_000)),
    "guarantee: a release repeated a million times": lambda: guaranteed(releases(1, 10**6)),
    "guarantee: 249 different releases, each 30,000 times": lambda: guaranteed(releases(249, 30_000)),
    "guarantee: a release repeated 10^15 times": lambda: guaranteed(releases(1, 10**15)),
    "guarantee: 39 different releases": lambda: guaranteed(releases(39)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_no_file_of_ten_megabytes_takes_long_or_much_memory(name, tmp_path):
    target, content = BY_NAME[name.split(":")[0]], HEAVY[name]()
    if target.name == "schema":  # its checks read the schema twice
        target = replace(target, read=load_schema)
    assert len(content) <= 10_500_000
    for good in target.good():  # this also compiles and imports what the reader needs
        try_content(target, good, tmp_path / f"good{target.ending}", Outcome())
    assert try_content(target, content, tmp_path / f"file{target.ending}", Outcome()) is None


class Payload:
    """Runs a program when it is unpickled."""

    def __reduce__(self):
        return subprocess.call, (["true"],)


def _raise(error):
    raise error


PLANTED = {
    "KeyError": lambda path: {}["missing"],
    "RecursionError": lambda path: json.loads(b"[" * DEPTH),
    "UnicodeDecodeError": lambda path: b"\xff".decode(),
    "not one printable line": lambda path: _raise(ValueError("two\nlines")),
    "a message of": lambda path: _raise(ValueError("x" * 10_000)),
    "MemoryError": lambda path: np.ones(2**33),
    "ran pickle.find_class": lambda path: pickle.loads(pickle.dumps(Payload())),
    "ran compile": lambda path: eval("1 + 1"),
    "not finite": lambda path: _raise(AssertionError("a prediction that is not finite")),
    "RuntimeWarning": lambda path: np.float64(1e308) * np.float64(10.0),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_reader_that_breaks_a_rule_is_found(kind, tmp_path):
    def read(path: Path) -> None:
        if path.read_bytes() == b"damaged":
            PLANTED[kind](path)

    target = Target("planted", 1_000, lambda: [b"good"], lambda rng, data: b"damaged", read)
    outcome = fuzz(target, 1, tmp_path)
    assert [kind in fault for fault in outcome.faults] == [True]


def test_a_reader_that_takes_much_memory_is_found(tmp_path):
    target = Target("planted", 1_000, lambda: [b"good"], lambda rng, data: data, lambda path: np.ones(2**25))
    assert "MB of memory" in try_content(target, b"", tmp_path / "file", Outcome())


def test_a_reader_that_hangs_is_found():
    with pytest.raises(TooSlow), limited_time(0.05):
        sum(0 for _ in itertools.repeat(0))


def test_inputs_can_be_made_again_from_their_number():
    for target in TARGETS:
        assert target.content(7) == target.content(7)
        assert len({target.content(number) for number in range(20)}) > 15
