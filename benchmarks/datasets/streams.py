"""Tables that are read as streams, raw."""

import functools

from framework import Dataset
from stored_tables import load_benchmark

SOURCES = {"adult": "UCI Adult, categories as indicators", "electricity": "Elec2, OpenML 151"}


def load(name):
    X, y = load_benchmark(name)
    return X, 2.0 * y - 1.0


streams = [
    Dataset(f"{name} stream", source, functools.partial(load, name), True, ("regret", "stream-accuracy"), name)
    for name, source in SOURCES.items()
]
