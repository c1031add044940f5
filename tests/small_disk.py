"""A disk of a few kilobytes, to be filled and made read-only: what a full or failing disk does cannot be made up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class SmallDisk:
    """A file system in memory, at the path of a new folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rest = path / "rest"

    def fill(self) -> None:
        """Leave no byte free."""
        with suppress(OSError), open(self._rest, "ab", buffering=0) as file:
            while True:
                file.write(bytes(512))

    def empty(self) -> None:
        """Give back what `fill` took."""
        self._rest.unlink()

    def read_only(self, is_so: bool = True) -> None:
        """Let nobody write, root included."""
        subprocess.run(["mount", "-o", f"remount,{'ro' if is_so else 'rw'}", self.path], check=True)


@contextmanager
def small_disk(path: Path, kilobytes: int = 96) -> Iterator[SmallDisk]:
    """A small disk at a new folder; a PermissionError where this user may not mount one."""
    path.mkdir()
    options = f"size={kilobytes}k,mode=700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PermissionError(f"no permission to mount a disk: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
