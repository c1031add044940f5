"""What comes next is prepared by another thread while the present one is used."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

BLOCKS_AHEAD = 2  # of a stored table: one that is ready, and one that is being read

FORKED = "a table that is being read cannot be read on in a child process; read it anew there."

Item = TypeVar("Item")
_END: Any = object()


def read_ahead(items: Generator[Item, None, None], ahead: int = BLOCKS_AHEAD) -> Generator[Item, None, None]:
    """The items in their order; at most `ahead` of them are made before they are asked for, by one thread.

    What the maker of the items raises is raised here, at the place of the item. The thread ends with the last item,
    with an error, and when whoever uses the items stops early; `items` is then closed. It serves one process: a child
    that was forked in between cannot go on.
    """
    process = os.getpid()
    reader = ThreadPoolExecutor(1, thread_name_prefix="discreet-reader")
    try:
        waiting = deque(reader.submit(next, items, _END) for _ in range(ahead))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(reader.submit(next, items, _END))
            yield item
            del item  # else it would be held while the next one is waited for
            if os.getpid() != process:
                raise RuntimeError(FORKED)
    finally:
        if os.getpid() == process:  # a child has no such thread that could end
            reader.shutdown(cancel_futures=True)
            items.close()
