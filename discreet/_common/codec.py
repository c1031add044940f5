"""How objects become JSON files, and how they are built from them again: strictly, by the annotations of a dataclass.

Refused, before anything is used, are bytes that are not UTF-8, text that is not JSON, names that occur twice in an
object (readers differ on which value counts), NaN and Infinity, numbers beyond the range of floats, half characters,
and values nested too deep.

A format declares its name, its version and its dataclasses. Fields that are missing or unknown are refused, and values
of another type: true is no number, 1.0 no whole number, "1" neither. Why no library does it: CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from discreet._common.checks import at_least_zero, whole
from discreet._common.text import LONGEST, one_line
from discreet._common.types import FloatArray

T = TypeVar("T")
MOST_CONTAINERS = 500_000  # of a file: each takes a hundred bytes of memory for two in the file
# What code raises that expects another kind of value at some place of a file.
_WRONG_KIND = (TypeError, AttributeError, IndexError, OverflowError, RecursionError, ZeroDivisionError)


def write_json_file(path: str | Path, content: Any, overwrite: bool = True) -> None:
    """Write JSON values for people and programs to read; a file that exists is a FileExistsError unless replaced.

    Whatever fails, such as a full disk, leaves the file that was there, or none.
    """
    place, text = Path(path), json.dumps(content, indent=1, allow_nan=False) + "\n"
    if overwrite and place.exists() and not place.is_file():  # such as a pipe
        place.write_text(text, encoding="utf-8")
        return
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o666  # as any new file, less the umask
    write_durably(place.resolve(), text, mode, overwrite)


def write_durably(path: Path, text: str, mode: int = 0o600, overwrite: bool = True) -> None:
    """Replace a file by one with this text, and wait until the disk has it; by default only its owner may read it.

    Without `overwrite` there may be no such file yet.
    """
    draft = path.with_name(f"{path.name}.new") if overwrite else path
    if overwrite:
        draft.unlink(missing_ok=True)  # left by a crash, perhaps with other permissions
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:  # a full disk names no file
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise OSError(error.errno, f"{error.strerror}; it was not written", str(path)) from error
    if sys.platform == "win32":  # folders cannot be opened there
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


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


OR_INFINITE = "or inf"
Unbounded: TypeAlias = Annotated[float, OR_INFINITE]  # a number that may be infinite: written as "inf" or "-inf"
Count: TypeAlias = Annotated[int, lambda what, value: whole(what, value, least=0)]
Size: TypeAlias = Annotated[int, lambda what, value: whole(what, value, least=1)]
Amount: TypeAlias = Annotated[float, at_least_zero]
LARGEST_USUAL = 1e100  # entry of a saved state: sums and products of larger ones overflow, and nothing comes near
INFINITE = {"inf": math.inf, "-inf": -math.inf}
SCALARS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: "null"}
_NUMBERS = {np.float64: ("iuf", "numbers"), np.int64: ("i", "whole numbers"), np.bool_: ("b", "true and false")}


@dataclass(frozen=True)
class Format:
    """Name and version of a format, and the fields that are written for its readers and never believed."""

    name: str
    version: int
    derived: tuple[str, ...] = ()

    @property
    def head(self) -> dict[str, Any]:
        """The fields with which a file begins."""
        return {"format": self.name, "version": self.version}

    def body(self, content: Any) -> dict[str, Any]:
        """The fields of a file of this format and version, without head and derived ones."""
        if not isinstance(content, Mapping) or content.get("format") != self.name:
            raise ValueError(f'it lacks "format": "{self.name}".')
        version = content["version"]
        if type(version) is not int or version != self.version:
            newer = type(version) is int and version > self.version
            advice = "upgrade discreet" if newer else "read it with the discreet that wrote it"
            raise ValueError(f"it has version {version!r}, this discreet reads version {self.version}; {advice}.")
        return {name: value for name, value in content.items() if name not in ("format", "version", *self.derived)}


def plain(value: Any) -> Any:
    """A value as JSON values: objects by their fields, arrays and tuples as lists, infinities as "inf" and "-inf"."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return written(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def written(value: Any, *seldom: str) -> dict[str, Any]:
    """The fields of a dataclass as JSON values, without the `seldom` ones that are at their default; see `built`."""
    given = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {name: plain(held) for name, (held, usual) in given.items() if name not in seldom or held != usual}


def built(kind: type[T], content: Any, what: str = "") -> T:
    """The dataclass that `written` wrote; fields with a default may be missing, unless `in_every_file` names them."""
    any_kind: Any = kind
    return kind(**checked(*declared(any_kind), content, what))


@cache
def declared(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the fields of a dataclass may hold, and which of them a file must have."""
    hints, always = get_type_hints(kind, include_extras=True), getattr(kind, "in_every_file", ())
    bare = {field.name for field in fields(kind) if field.default is field.default_factory is MISSING}
    needed = (field.name for field in fields(kind) if field.name in bare or field.name in always)
    return {field.name: hints[field.name] for field in fields(kind)}, tuple(needed)


def checked(hints: Mapping[str, Any], needed: Sequence[str], content: Any, what: str) -> dict[str, Any]:
    """The fields of an object, each of its type; refused if one that is needed is missing, or one is unknown."""
    names, it = ", ".join(hints), what or "it"
    if not isinstance(content, Mapping):
        raise ValueError(f"{it} must be an object with the fields {names}{_shown(content)}.")
    for name in (*needed, *content):
        if name not in content or name not in hints:
            fault = "has no field" if name in content else "lacks its field"
            raise ValueError(f"{it} {fault} {name!r}; its fields are {names}.")
    return {name: read(hints[name], value, f"{name} of {what}" if what else name) for name, value in content.items()}


def read(kind: Any, content: Any, what: str) -> Any:
    """A value of the type of an annotation; anything else is a ValueError that says what `what` must be.

    `Annotated[type, convert]` gives the value to `convert(what, value)`, which may refuse it; a class with `from_dict`
    reads itself. Of several types only one may be other than a number, a text, a truth value or None.
    """
    parts = get_args(kind)
    if kind in SCALARS:
        return _scalar(kind, content, what)
    if parts:
        return _READERS[get_origin(kind)](parts, content, what)
    if kind is Any or isinstance(content, kind):  # made from other fields of the file
        return content
    if issubclass(kind, Enum):
        return _choice(tuple(kind), content, what)
    return kind.from_dict(content) if hasattr(kind, "from_dict") else built(kind, content, what)


def _scalar(kind: Any, content: Any, what: str) -> Any:
    usual = type(content) in ((int, float) if kind is float else (kind,))
    if not usual or (kind in (int, float) and not abs(content) <= sys.float_info.max):  # not true of NaN
        raise ValueError(f"{what} must be {SCALARS[kind]}{_shown(content)}.")
    return float(content) if kind is float else content


def _shown(content: Any) -> str:
    return f"; got {one_line(repr(content), 40)}" if type(content) in SCALARS else ""


def _annotated(parts: Sequence[Any], content: Any, what: str) -> Any:
    if parts[1] == OR_INFINITE:
        return INFINITE[content] if content in ("inf", "-inf") else _scalar(float, content, what)
    content = read(parts[0], content, what)
    for convert in parts[1:]:
        content = convert(what, content)
    return content


def _alternative(parts: Sequence[Any], content: Any, what: str) -> Any:
    """A value of one of several types: of its own, or else of the one that is no scalar."""
    others = [part for part in parts if part not in SCALARS or (part is float and type(content) is int)]
    if type(content) not in parts and not others and len(parts) > 2:
        raise ValueError(f"{what} must be {' or '.join(SCALARS[part] for part in parts)}.")
    return read(type(content) if type(content) in parts else (others or parts)[0], content, what)


def _choice(allowed: Sequence[Any], content: Any, what: str) -> Any:
    for each in allowed:
        if type(content) is str and content == each:
            return each
    raise ValueError(f"{what} must be one of {', '.join(map(str, allowed))}{_shown(content)}.")


def _list(parts: Sequence[Any], content: Any, what: str) -> list[Any]:
    many = len(parts) == 1 or parts[-1] is ...
    if not isinstance(content, list) or not (many or len(content) == len(parts)):
        raise ValueError(f"{what} must be a list{'' if many else f' of {len(parts)} values'}.")
    return [read(parts[0 if many else place], item, f"an entry of {what}") for place, item in enumerate(content)]


def _mapping(parts: Sequence[Any], content: Any, what: str) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        raise ValueError(f"{what} must be an object.")
    return {name: read(parts[1], value, f"{name} of {what}") for name, value in content.items()}


_READERS: dict[Any, Callable[[Any, Any, str], Any]] = {
    Annotated: _annotated,
    Literal: _choice,
    Union: _alternative,
    UnionType: _alternative,
    list: _list,
    tuple: lambda parts, content, what: tuple(_list(parts, content, what)),
    Mapping: _mapping,
    np.ndarray: lambda parts, content, what: array(content, what, get_args(parts[1])[0]),
}


def array(content: Any, what: str, dtype: Any = np.float64, infinite: bool = False) -> Any:
    """An array from nested lists of numbers, or of truth values; texts are no numbers."""
    kinds, name = _NUMBERS[dtype]
    try:
        values = np.array(content)
    except ValueError:
        raise ValueError(f"{what} has lists of different lengths.") from None
    if values.dtype.kind not in kinds or not (infinite or np.isfinite(values).all()):
        raise ValueError(f"{what} is not finite, or holds other values than {name}.")
    return values.astype(dtype)


def _usual(what: str, values: Any) -> Any:
    if not (np.abs(values) <= LARGEST_USUAL).all():
        raise ValueError(f"{what} holds a number beyond {LARGEST_USUAL:g}.")
    return values


UsualArray: TypeAlias = Annotated[FloatArray, _usual]


def ends(what: str, content: Any) -> Any:
    """An array of ends of ranges, which may be "inf" or "-inf"."""
    return array(numbers(content), what, infinite=True)


def numbers(value: Any) -> Any:
    """Nested lists with "inf" and "-inf" as the numbers that they stand for."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return INFINITE[value] if value in ("inf", "-inf") else value


def tuples(value: Any) -> Any:
    """Nested lists as tuples."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def by_name(value: Any, known: Mapping[str, Any], what: str) -> dict[str, Any]:
    """An object of one of a few classes as its name and its settings; one of another package is a ValueError."""
    if known.get(value.name) is not type(value):
        raise ValueError(f"the {what} {value!r} is not one of {', '.join(known)}.")
    return {"name": value.name} | written(value)


def from_name(content: Any, known: Mapping[str, Callable[..., Any]], what: str) -> Any:
    """The object that `by_name` wrote; its class checks the settings."""
    name = content["name"]
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown {what} {name!r}.")
    return known[name](**{key: tuples(numbers(value)) for key, value in content.items() if key != "name"})
