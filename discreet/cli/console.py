"""How the command line talks: results on stdout, errors and warnings as one line each on stderr; how texts are read."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Option
from typer.core import TyperGroup

from discreet import __version__
from discreet._common.exceptions import DiscreetWarning
from discreet._common.plotting import pyplot
from discreet._common.text import one_line

if TYPE_CHECKING:
    from discreet.data.schema import Schema

ERROR_CODE = 2
INTERRUPTED_CODE = 130
LONGEST_MESSAGE = 2_000
# Raised for things a person can mend; the message says how. Anything else is named by its type.
USER_ERRORS = (ValueError, OSError, RuntimeError)


class OneLineErrors(TyperGroup):
    """A group of commands in which no error shows more than one line, wherever it comes from."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Run a command and leave the process with its exit code."""
        try:
            with tidy_warnings():
                code = super().main(args, prog_name, **extra | {"standalone_mode": False})
        except typer.Abort:
            code = INTERRUPTED_CODE
        except Exception as error:
            if os.environ.get("DISCREET_TRACEBACK"):
                raise
            complain("error", explain(error))
            code = ERROR_CODE
        sys.exit(code if isinstance(code, int) else 0)


def choose(context: typer.Context) -> None:
    """Without a command, show the help."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def start(
    context: typer.Context, version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False
) -> None:
    """Show the version, or what `choose` shows."""
    if version:
        print(__version__)
        raise typer.Exit
    choose(context)


# What the command line and its groups have in common.
COMMON: dict[str, Any] = {"invoke_without_command": True, "rich_markup_mode": "markdown"}
app = typer.Typer(
    cls=OneLineErrors,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train linear models on sensitive tables with differential privacy.",
    epilog="Start with: discreet demo",
    callback=start,
    **COMMON,
)
GROUPS: dict[str, typer.Typer] = {}


def group(help: str, example: str) -> None:
    """Make the group of commands that an example calls; without one of them, its help is shown."""
    name = example.split()[1]
    GROUPS[name] = typer.Typer(help=help, epilog=f"Example: {example}", callback=choose, **COMMON)
    app.add_typer(GROUPS[name], name=name)


def command(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as the command that its example calls: `discreet NAME ...` or `discreet GROUP NAME ...`."""
    first, second = [*example.split(), ""][1:3]
    place, name = (GROUPS[first], second) if first in GROUPS else (app, first)
    return place.command(name, epilog=f"Example: {example}")


def explain(error: Exception) -> str:
    """What went wrong, in one line."""
    if hasattr(error, "format_message"):  # an option or argument that the command line itself refuses
        return str(error.format_message())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'file'}: {error.strerror}"
    if isinstance(error, USER_ERRORS):
        return str(error) or type(error).__name__
    hint = "set DISCREET_TRACEBACK=1 to see where"
    return f"{type(error).__name__}: {str(error) or 'no message'} ({hint})"


def complain(kind: str, message: str) -> None:
    """Write one line to stderr."""
    print(f"{kind}: {one_line(message, LONGEST_MESSAGE)}", file=sys.stderr)


@contextmanager
def tidy_warnings() -> Iterator[None]:
    """Show the warnings of discreet in one line each, once.

    Warnings of other libraries are not shown: they may depend on the rows.
    """
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message)
        if text not in seen:
            seen.add(text)
            complain("warning", text)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DiscreetWarning)
        warnings.showwarning = show
        yield


@contextmanager
def opened(table: Path, header: bool, dask: str | None) -> Iterator[Any]:
    """The table file, or the files that the workers of a cluster read."""
    if dask is None:
        from discreet.data.files import open_table

        with open_table(table, header=header) as file:
            yield file
        return
    from discreet.data.distributed.cluster import connected
    from discreet.data.distributed.rows import ParquetFiles

    with connected(dask) as client:
        yield ParquetFiles(table, client)


def model_and_schema(path: Path, instead: str) -> tuple[Any, Schema]:
    """The estimator of a model file, and what it says about the columns; refused if it was not trained on a file."""
    from discreet.estimators.model_file import read_model

    stored = read_model(path)
    if stored.schema is None or stored.schema.target.name is None:
        raise ValueError(f"{path} was not trained on a table file; use {instead} in Python.")
    return stored.estimator, stored.schema


def answer(json: bool, values: Any, text: Any) -> None:
    """Print what was found as one JSON object for machines, or as text for people; functions are called first."""
    if json:
        print_json(values() if callable(values) else values)
    else:
        print(text() if callable(text) else text)


def print_json(content: Any) -> None:
    """Write one JSON object to stdout, for machines."""
    print(json.dumps(content, indent=2, allow_nan=False))


def check_ledger(ledger: str | None, dataset: str | None) -> None:
    """Refuse half of what a ledger needs: with `--dataset` alone nothing would be paid."""
    if (ledger is None) != (dataset is None):
        raise ValueError("--ledger URL and --dataset NAME belong together.")


def save_paid(path: Path, save: Callable[[], None], content: Callable[[], Any]) -> None:
    """Write what a budget has been spent on; where the file cannot be written, print it, so that it is not lost."""
    try:
        save()
    except OSError as error:
        print_json(content())
        reason = f"{error.strerror or error}; it is paid for, and printed on stdout instead: keep that as the file"
        raise OSError(error.errno, reason, str(path)) from error


def check_free(path: Path | None, force: bool, option: str = "--out") -> None:
    """Refuse a file that exists or cannot be made, before any budget is spent on what goes into it; None: no file."""
    if path is None:
        return
    if path.exists() and not force:
        raise ValueError(f"{path} exists; choose another {option}, or overwrite it with --force.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist.")
    if not os.access(path if path.exists() and not path.is_file() else path.absolute().parent, os.W_OK):
        raise ValueError(f"{option} {path}: nothing can be written there.")
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder.")


def check_plot(path: Path | None, force: bool) -> None:
    """Refuse a picture that cannot be drawn or written, before anything is computed for it."""
    check_free(path, force, "--plot")
    if path is not None:
        pyplot()


def wants_progress(quiet: bool) -> bool:
    """Whether somebody is there to see a progress bar."""
    return not quiet and sys.stderr.isatty()


def parse_pair(option: str, text: str | None) -> tuple[float, float] | None:
    """`LOW,HIGH` as two numbers."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{option} must be two numbers LOW,HIGH such as 0,100; got {text!r}.") from None
    from discreet.data.schema import check_limits

    check_limits(option, low, high)
    return low, high


def parse_labels(text: str | None) -> tuple[str | int | float, ...] | None:
    """`A,B,...` as labels: numbers if all of them are numbers, texts otherwise."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    for kind in (int, float):
        try:
            return tuple(kind(part) for part in parts)
        except ValueError:
            continue
    return tuple(parts)
