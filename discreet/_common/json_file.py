"""The one way by which JSON files are written and read: strictly, so that a damaged file is refused before it is used.

Refused are bytes that are not UTF-8, text that is not JSON, names that occur twice in an object (readers differ on
which value counts), NaN and Infinity, numbers beyond the range of floats, half characters, values nested too deep, and
more lists and objects than any file needs.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from discreet._common.text import LONGEST, one_line

T = TypeVar("T")
MOST_CONTAINERS = 500_000  # each takes a hundred bytes of memory for two in the file
# What code raises that expects another kind of value at some place of a file.
_WRONG_KIND = (TypeError, AttributeError, IndexError, OverflowError, RecursionError, ZeroDivisionError)


def write_json_file(path: str | Path, content: Any, overwrite: bool = True) -> None:
    """Write JSON values for people and programs to read; a file that exists is a FileExistsError unless replaced."""
    text = json.dumps(content, indent=1, allow_nan=False)
    with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
        file.write(text + "\n")


def read_json_file(path: str | Path, build: Callable[[Any], T], failure: str) -> T:
    """What `build` makes of the content of a JSON file.

    Parameters
    ----------
    path : str or Path
        The file.
    build : callable
        Takes the content; may fail in any of the ways in which code fails that meets an unexpected value.
    failure : str
        How the message begins, such as "model.json is not a model".

    Raises
    ------
    ValueError
        In one line of bounded length, whatever is wrong with the file.
    """
    return described(lambda: build(parse_json(Path(path).read_bytes())), failure)


def described(make: Callable[[], T], failure: str) -> T:
    """What `make` returns; whatever a damaged value makes it raise becomes a ValueError of one line."""
    try:
        return make()
    except ValueError as error:
        reason = str(error)
    except KeyError as error:
        reason = f"{error} is missing."
    except _WRONG_KIND as error:
        reason = f"a value in it is of the wrong kind ({error})."
    raise ValueError(one_line(f"{failure}: {reason}", len(failure) + LONGEST))


def parse_json(data: bytes) -> Any:
    """The value of a JSON text in UTF-8; anything but plain finite values is a ValueError or a RecursionError."""
    if data.count(b"[") + data.count(b"{") > MOST_CONTAINERS:
        raise ValueError(f"it has more than {MOST_CONTAINERS:,} lists and objects.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not a text in UTF-8.") from None
    try:
        content = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}.") from None
    except RecursionError:
        raise ValueError("its values are nested too deep.") from None
    if "\\u" in text:
        _refuse_half_characters(content)
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"{name!r} occurs twice in an object.")
        content[name] = value
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a finite number.")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {one_line(text, 40)} is too large.")
    return value


def _whole(text: str) -> int:
    digits = len(text)
    if digits > 309 or abs(value := int(text)) > sys.float_info.max:  # Python is slow to convert, or refuses, long ones
        raise ValueError(f"a whole number of {digits} digits is too large.")
    return value


def _refuse_half_characters(content: Any) -> None:
    """Refuse halves of surrogate pairs, which no text in UTF-8 can hold; only escapes can put them there."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text in it holds half of a character.") from None
