"""Packages that are imported when they are first needed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, an import that takes tenths of a second.

    A package that is left half imported fails ever after in the same process. Ctrl-C concerns the
    main thread alone; its handler is put back, and called if it was wanted.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *given: came.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[-1])


def networkx() -> Any:
    """Return ``networkx``."""
    with uninterrupted():
        import networkx
    return networkx
