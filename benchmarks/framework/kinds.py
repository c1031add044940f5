"""What the files of `datasets/`, `methods/` and `experiments/` define: instances of these three classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stored_tables import is_stand_in

from framework.cells import Cell, Numbers


@dataclass(frozen=True)
class Dataset:
    """A table: where it comes from and how it is loaded.

    Parameters
    ----------
    name : str
        Unique; the row of a table of results.
    source : str
        Where it comes from, for `--list`.
    load : callable
        Returns X and y; labels are -1 and +1.
    classification : bool
        Whether the target is a label.
    experiments : tuple of str
        In which experiments it takes part: a new file with the name of an experiment here gets a row there.
    stored : str, optional
        The stored table behind it (`stored_tables.SOURCES`), which may be absent and then has a stand-in.
    facts : mapping
        What experiments ask of it: for the papers `loss`, `penalty`, `epsilon` and printed numbers. `shown` is its name
        on a page; `elsewhere` another stored table that it needs.
    dear : bool
        Whether runs on it take long: its cells come last.
    """

    name: str
    source: str
    load: Callable[[], tuple[Any, Any]]
    classification: bool
    experiments: tuple[str, ...] = ()
    stored: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    dear: bool = False
    version: int = 1

    @property
    def is_stand_in(self) -> bool:
        return any(is_stand_in(name) for name in (self.stored, self.facts.get("elsewhere")) if name is not None)

    @property
    def label(self) -> str:
        """The name for results, `facts["shown"]` where a page has another; one that a stand-in made says so."""
        name = str(self.facts.get("shown", self.name))
        return f"{name} (STAND-IN)" if self.is_stand_in else name


@dataclass(frozen=True)
class Method:
    """A solver or a rival.

    Parameters
    ----------
    name : str
        Unique; as the tables call it.
    about : str
        One line for `--list`.
    run : callable
        `run(problem, setting, seed)` gives numbers. What `problem` is, the experiment says: for the papers a
        `framework.problems.PaperProblem`.
    experiments : tuple of str
        In which experiments it takes part.
    grid : mapping
        Name of a setting -> values, for experiments that tune.
    refuses : callable, optional
        `refuses(problem)` says why it cannot take a problem; None: it can.
    style : mapping
        How it is drawn: arguments of matplotlib's `plot`.
    dear : bool
        Whether a run takes long: its cells come last, and it is tuned on fewer settings.
    """

    name: str
    about: str
    run: Callable[[Any, Mapping[str, Any], int], Numbers]
    experiments: tuple[str, ...] = ()
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    refuses: Callable[[Any], str | None] = lambda problem: None
    style: Mapping[str, Any] = field(default_factory=dict)
    dear: bool = False
    version: int = 1


@dataclass(frozen=True)
class Experiment:
    """A table or a figure.

    Parameters
    ----------
    name, suite : str
        `run.py SUITE --only NAME`.
    title : str
        One line for `--list`.
    cells : callable
        `cells(quick)` gives the cells, all of them before anything is measured; `quick` asks for a few cheap ones.
    measure : callable
        `measure(cell)` gives the numbers of one; runs in a process of its own.
    page : callable, optional
        `page(results, folder)` gives Markdown and draws plots into the folder; a dictionary gives several sections by
        the names of their markers. None: nothing is written.
    file : str
        Name of the page in docs/benchmarks/; experiments of one file are its sections, ordered by `order`. Empty: the
        table is printed alone.
    stored : tuple of str
        Stored tables that it uses: pages are not written while one of them is a stand-in.
    alone : bool
        Whether it measures time: its cells then run one at a time, after those of all others, with one thread each. A
        cell that is to use more threads starts a process of its own (`framework.timing.in_new_process`).
    kept_back : bool
        Whether its tables are kept for the end of a development: it is run where `--final` asks for it alone.
    version : int
        Raise it when its cells mean something else than before.
    """

    name: str
    suite: str
    title: str
    cells: Callable[[bool], Iterable[Cell]]
    measure: Callable[[Cell], Numbers]
    page: Callable[[Any, Any], str | dict[str, str]] | None = None
    file: str = ""
    order: int = 0
    stored: tuple[str, ...] = ()
    alone: bool = False
    kept_back: bool = False
    version: int = 1
