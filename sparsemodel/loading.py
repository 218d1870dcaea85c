"""Packages that are imported when they are first needed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sparsemodel.interfaces import MissingDependencyError


class Numba(Protocol):
    """What is used of Numba."""

    def njit(self, **options: Any) -> Callable[[Any], Any]:
        """Return a decorator that compiles a function when it is first called."""
        ...


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


def numba() -> Numba:
    """Return ``numba``, which compiles kernels.

    Raises
    ------
    MissingDependencyError
        Where it cannot be imported, for example because it does not go with the version of NumPy.
    """
    try:
        with uninterrupted():
            import numba
            from numba.core.registry import cpu_target

            cpu_target.target_context.refresh()  # what it imports when it is first used
    except ImportError as error:
        raise MissingDependencyError(
            f"Numba, which compiles the search of proofs, cannot be imported ({error}): "
            "pip install --upgrade numba. Solutions do without it."
        ) from error
    found: Any = numba
    return found  # type: ignore[no-any-return]
