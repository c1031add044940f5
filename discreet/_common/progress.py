"""A progress bar for long runs: in a terminal, and in a notebook without any extension."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

OFTEN = 0.1  # seconds between two pictures of a notebook's bar


@contextmanager
def progress_bar(title: str, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback(done, total) that draws a bar, or None: silent unless asked for."""
    if not shown:
        yield None
        return
    if in_notebook():
        with _notebook_bar(title) as step:
            yield step
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this, so that what is shown is HTML."""
    module = sys.modules.get("IPython")
    return module is not None and type(module.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextmanager
def _notebook_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that the browser draws; Rich would ask for ipywidgets, with a warning. It is gone at the end."""
    from IPython.display import HTML, display

    handle: Any = display(HTML(_bar(title, 0, 0)), display_id=True)
    last = 0.0

    def step(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN:
            last = time.monotonic()
            handle.update(HTML(_bar(title, done, total)))

    try:
        yield step
    finally:
        handle.update(HTML(""))


def _bar(title: str, done: int, total: int) -> str:
    ends = f' value="{done}" max="{total}"' if total else ""
    percent = f" {done / total:.0%}" if total else ""
    return f"<label>{escape(title)} <progress{ends}></progress>{percent}</label>"
