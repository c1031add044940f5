"""Damaged copies of good files: of their bytes, of the values of a JSON text, of the fields of a CSV table.

Every function draws from the `random.Random` that it is given, so an input can be made again from its number.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

DEPTH = 100_000  # of nested lists: more than any parser may follow by recursion
DIGITS = 10_000  # of a whole number: more than Python converts

# Pieces that readers of text stumble over: NUL, invalid UTF-8, byte order marks, separators, quotes, numbers.
PIECES = (
    *(b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\n", b"\n\n", b"\t", b'"'),
    *(b"'", b"\\", b",", b";", b":", b"{", b"}", b"[", b"]", b"-", b"e", b".", b"0", b"9" * 400, b"1e400", b"NaN"),
    *(b"Infinity", b"null", b"true", b"\\ud800", b"\\u0000", b"\x1b[2J", "\u2028\u00e9\U0001f600".encode()),
)

# JSON texts that stand where something else was expected; not all of them can be written by json.dumps.
TOKENS = (
    *("null", "true", "false", "0", "-0.0", "1", "-1", "0.5", "2", "3.7", "1e-320", "1e-9", "1e308", "-1e308"),
    *("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "9007199254740993", "9223372036854775808", "9" * 400),
    *('""', '"x"', '"inf"', '"-inf"', '"nan"', '"0"', '"1e400"', '"\\u0000"', '"\\ud800"', '"a\\nb"', '"\\u001b[2J"'),
    *('"../../etc/passwd"', "\"__import__('os')\"", '"' + "x" * 5_000 + '"', "[]", "{}", "[[]]", "[{}]", "[null]"),
    *(
        '{"": 0}',
        '{"type": "NoOpDpEvent"}',
        '{"__class__": "os"}',
        "[1, [2, 3]]",
        "[0.0, 0.0, 0.0]",
        "[NaN]",
        "[1e400]",
    ),
)
RARE_TOKENS = ("9" * DIGITS, "[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH + "0" + "}" * DEPTH, "[0" + ",0" * 50_000 + "]")

FIELDS = (
    *("", " ", "NA", "nan", "inf", "-inf", "1e400", "-1e308", "1e-320", "0x10", "1_000", "1,5", "true", "abc", "0"),
    *('"', '""', '"a', 'a"b', '"a\nb"', "\x00", "\u00e9", "\u0661", "=1+1", "--1", "9" * 400, "\ufeff", "\x1b[2J"),
)


Damage = Callable[[random.Random, bytes], bytes]


def either(*ways: Damage) -> Damage:
    """One of several ways to damage a file, each as often as the others."""
    return lambda rng, data: rng.choice(ways)(rng, data)


def damaged_bytes(rng: random.Random, data: bytes, most: int = 4) -> bytes:
    """A copy with some bytes changed, removed, repeated or put in."""
    for _ in range(rng.randint(1, most)):
        place, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 64))
        change = rng.randrange(6)
        if change == 0:  # one bit
            data = (
                data[:place] + bytes(b ^ (1 << rng.randrange(8)) for b in data[place : place + 1]) + data[place + 1 :]
            )
        elif change == 1:
            data = data[:place] + rng.randbytes(length) + data[place + length :]
        elif change == 2:
            data = data[:place] + data[place + length :]
        elif change == 3:
            data = data[:place] + data[place : place + length] * 2 + data[place + length :]
        elif change == 4:
            data = data[:place] + rng.choice(PIECES) + data[place:]
        else:  # cut off the end or, rarely, the beginning
            data = data[:place] if rng.random() < 0.8 else data[place:]
    return data


def damaged_json(rng: random.Random, content: Any, most: int = 3) -> bytes:
    """The text of a JSON value in which some places hold something else, are missing, or occur twice."""
    content, raw = copy.deepcopy(content), {}
    for _ in range(rng.randint(1, most)):
        holder, key = rng.choice(_places(content))
        change = rng.randrange(8)
        if change <= 3:
            holder[key] = _placeholder(raw, rng.choice(RARE_TOKENS if rng.random() < 0.01 else TOKENS))
        elif change == 4:
            _change_number(rng, holder, key)
        elif change == 5:
            del holder[key]
        elif change == 6:  # something that stands elsewhere
            other, there = rng.choice(_places(content))
            holder[key] = copy.deepcopy(other[there])
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[rng.choice((f"{key}{key}", "", "\x00", "__class__"))] = holder[key]
        if not _places(content):
            break
    text = json.dumps(content)
    for name, token in raw.items():
        text = text.replace(f'"{name}"', token)
    if rng.random() < 0.05:  # a key that occurs twice
        text = text.replace('"epsilon": ', '"epsilon": 0.001, "epsilon": ', 1)
    return text.encode()


def other_numbers(rng: random.Random, content: Any, most: int = 3) -> bytes:
    """The text of a JSON value in which some numbers are others, of any size; all else is kept."""
    content = copy.deepcopy(content)
    places = [(h, k) for h, k in _places(content) if isinstance(h[k], (int, float)) and not isinstance(h[k], bool)]
    for _ in range(rng.randint(1, most) if places else 0):
        holder, key = rng.choice(places)
        size = 10.0 ** rng.choice((rng.uniform(-3, 3), rng.uniform(-20, 20), rng.uniform(-323, 308)))
        is_whole = isinstance(holder[key], int)
        holder[key] = (
            rng.choice((0, 1, 2, -1, int(size), int(size))) if is_whole else rng.choice((size, size, -size, 0.0))
        )
    return json.dumps(content).encode()


def damaged_csv(rng: random.Random, data: bytes, most: int = 3) -> bytes:
    """A table in which some fields or lines are changed, removed or repeated."""
    lines = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(rng.randint(1, most)):
        row = 0 if rng.random() < 0.3 else rng.randrange(len(lines))
        field, change = rng.randrange(len(lines[row]) or 1), rng.randrange(8)
        if change <= 2 and lines[row]:
            lines[row][field] = rng.choice(FIELDS)
        elif change == 3:
            lines[row] = lines[row][:field]
        elif change == 4:
            lines[row] = lines[row] * rng.choice((2, 2, 100))
        elif change == 5:
            lines.insert(row, list(lines[row]))
        elif change == 6 and len(lines) > 1:
            del lines[row]
        else:
            lines[row] = rng.choice(([], [""], ["", ""], ["#", "comment"], ["x"] * 20_000))
    separator = rng.choice((",", ",", ",", ";", "\t", "|"))
    text = rng.choice(("\n", "\n", "\r\n", "\r")).join(separator.join(line) for line in lines)
    mark = rng.choice((b"", b"", b"", b"\xef\xbb\xbf", b"\xff\xfe"))
    return mark + text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-16")), "surrogatepass")


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Every container inside a JSON value with each of its keys; outer places first."""
    found: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found


def _placeholder(raw: dict[str, str], token: str) -> str:
    """A text that stands for a token until the value has been written."""
    name = f"token {len(raw)} of this input"
    raw[name] = token
    return name


def _change_number(rng: random.Random, holder: Any, key: Any) -> None:
    """Another number of the same kind, or the place's text turned round."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, (int, float)):
        holder[key] = rng.choice((-value, value + 1, value * 2, value * 1_000_000, float(value), value / 1e6))
    elif isinstance(value, (str, list)):
        holder[key] = value[::-1]


def in_json(way: Callable[[random.Random, Any], bytes]) -> Damage:
    """A way to damage the values of a JSON file."""
    return lambda rng, data: way(rng, json.loads(data))


DAMAGED_TEXT = either(in_json(damaged_json), in_json(other_numbers), damaged_bytes)
