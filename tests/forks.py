"""Children that send an answer back: what tests of forks share."""

from __future__ import annotations

import ctypes
import os
import sys
import time


def in_child(task, fork=os.fork):
    """Run `task` in a forked child and return the bytes that it sends back; a RuntimeError is sent as its text."""
    reader, writer = os.pipe()
    interval = sys.getswitchinterval()
    # A child of a fork below Python has one thread. If another one of the parent had asked for the interpreter's lock,
    # the child would wait for that thread to take it, without end.
    sys.setswitchinterval(1e3)
    time.sleep(0.02)
    child = fork()
    if child != 0:
        sys.setswitchinterval(interval)
    else:
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
