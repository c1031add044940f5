"""Children that send an answer back: what tests of forks share."""

from __future__ import annotations

import ctypes
import os


def in_child(task, fork=os.fork):
    """Run `task` in a forked child and return the bytes that it sends back; a RuntimeError is sent as its text."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.write(writer, task())
        except RuntimeError as error:
            os.write(writer, b"RuntimeError: " + str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        received = pipe.read()
    os.waitpid(child, 0)
    return received


def fork_below_python():
    """A fork by C code, of which Python's hooks learn nothing."""
    return ctypes.PyDLL(None).fork()
