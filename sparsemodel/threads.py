"""How many threads linear algebra takes: all of them for large products, one for the rest.

The wheels of NumPy and SciPy bring a BLAS each, with a pool of threads each. A pool that has
finished keeps spinning for some milliseconds, on the cores that the other one asks for next: a
factorisation of 250 x 250 then takes a hundred times as long as on one thread. So a run takes one
thread, and the factorisations that are worth more take them all, one at a time. Products that read
much are divided here, among threads of Python: these wait without taking any time of a core, and
one that shares its core with another process takes fewer of the parts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial, reduce
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces import ModelError

_READ = 2.0**22
"""Numbers that a product reads from which threads are worth waking: some milliseconds."""

_PART, _PARTS = 2.0**20, 16
"""Numbers that a part of such a product reads at least, and parts at most."""

_THICK = 8
"""Rows (or columns) of a part at least: sums that are kept for each part take little beside it."""

_DONE = 2.0**28
"""Operations of a matrix product or a factorisation from which threads are worth waking."""

_NOTHING: AbstractContextManager[None] = nullcontext()


@final
class Config:
    """Settings of this process; ``sm.config`` is the only one.

    Attributes
    ----------
    threads
        Threads that a large product may take; None is what the BLAS was started with, usually all
        cores or what ``OPENBLAS_NUM_THREADS`` says.
    progress
        Whether calls that take more than a second show on terminals and in notebooks what they are
        doing; True from the start. Nothing is shown elsewhere.

    Raises
    ------
    ModelError
        When they are set to anything else: None or a positive integer, True or False.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> sm.config.threads = 1
    >>> sm.config.threads = None
    >>> sm.config.progress
    True
    """

    __slots__ = ("_progress", "_threads")

    def __init__(self) -> None:
        self._threads: int | None = None
        self._progress = True

    @property
    def progress(self) -> bool:
        return self._progress

    @progress.setter
    def progress(self, shown: bool) -> None:
        if not isinstance(shown, bool):
            raise ModelError(f"config.progress must be True or False, not {shown!r}.")
        self._progress = shown

    @property
    def threads(self) -> int | None:
        return self._threads

    @threads.setter
    def threads(self, number: int | None) -> None:
        whole = isinstance(number, int) and not isinstance(number, bool) and number > 0
        if number is not None and not whole:
            raise ModelError(
                f"config.threads must be None or a positive integer, not {number!r}. "
                "Write config.threads = 1 for one thread, None for as many as there are."
            )
        self._threads = number


config = Config()


@final
class _Pools:
    """The BLAS libraries of this process, and how many runs keep them to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._found: list[Any] = []
        self._before: list[int] = []
        self._complete = False  # whether SciPy's library is among those found

    def enter(self) -> None:
        """Switch to one thread, unless another run has done so."""
        with self._lock:
            self._runs += 1
            if not self._found or self.outdated:
                self._find()
            elif self._runs == 1:
                self._before = [pool.get_num_threads() for pool in self._found]
                self._set([1] * len(self._found))

    def leave(self) -> None:
        """Give back what was there, when the last run leaves."""
        with self._lock:
            self._runs -= 1
            if self._runs == 0:
                self._set(self._before)
                self._before = []

    @contextmanager
    def wide(self) -> Iterator[None]:
        """Take all threads for one product of a run."""
        most = config.threads
        wanted = [before if most is None else most for before in self._before]
        if all(number == 1 for number in wanted):
            yield
            return
        self._set(wanted)
        try:
            yield
        finally:
            with self._lock:
                if self._runs:  # else another thread has left for good meanwhile
                    self._set([1] * len(wanted))

    def refresh(self) -> None:
        """Find libraries that were loaded during a run, and keep them to one thread as well."""
        with self._lock:
            if self._runs and self.outdated:
                self._find()

    def _find(self) -> None:
        from threadpoolctl import ThreadpoolController

        self._complete = "scipy.linalg" in sys.modules
        before = {pool.filepath: n for pool, n in zip(self._found, self._before, strict=False)}
        self._found = list(ThreadpoolController().select(user_api="blas").lib_controllers)
        now = [(pool.filepath, pool.get_num_threads()) for pool in self._found]
        self._before = [before.get(path, number) for path, number in now]
        self._set([1] * len(self._found))

    def _set(self, numbers: list[int]) -> None:
        for pool, number in zip(self._found, numbers, strict=False):
            if pool.get_num_threads() != number:
                pool.set_num_threads(number)

    @property
    def outdated(self) -> bool:
        """Return whether SciPy, which is loaded when it is needed, came after the last look."""
        return not self._complete and "scipy.linalg" in sys.modules

    @property
    def threads(self) -> int:
        """Return how many threads large work takes."""
        return config.threads or max(self._before, default=1)

    @property
    def one_thread(self) -> bool:
        """Return whether a run keeps the libraries to one thread."""
        return self._runs > 0


_pools = _Pools()


@contextmanager
def small_work() -> Iterator[None]:
    """Keep linear algebra to one thread; large products still take all.

    A context and, called, a decorator. What the libraries were set to is set again at its end. Such
    contexts may contain each other, and run in several threads of Python at once.
    """
    _pools.enter()
    try:
        yield
    finally:
        _pools.leave()


def large_work(*, operations: float) -> AbstractContextManager[None]:
    """Return a context in which linear algebra takes all threads, if there is much of it.

    ``operations`` are those of products of matrices and factorisations
    (``sparsemodel.numerics.budget`` counts them). Nothing happens outside :func:`small_work`.
    """
    if not _pools.one_thread:
        return _NOTHING
    if _pools.outdated:
        _pools.refresh()
    return _pools.wide() if operations >= _DONE else _NOTHING


def product(a: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """Return ``a @ x``, for one vector or a few.

    In :func:`small_work` large arrays are multiplied by parts, along the axis they are stored by.
    The parts do not depend on the number of threads, nor do the digits of the product.
    """
    n, p = a.shape
    if abs(a.strides[0]) >= abs(a.strides[1]):
        found = _by_parts(lambda part: a[part] @ x, n, a.size)
        return found[0] if len(found) == 1 else np.concatenate(found)
    # Of several vectors the other order of the factors is twice as fast.
    found = _by_parts(lambda part: (x[part].T @ a[:, part].T).T, p, a.size)
    return reduce(np.add, found)


def _by_parts(one: Callable[[slice], Any], length: int, reads: float) -> list[Any]:
    """Return ``one`` of every part of a range, of which all together read so many numbers."""
    if reads < _READ or not _pools.one_thread:
        return [one(slice(0, length))]
    step = max(_THICK, -(-length // min(_PARTS, int(reads / _PART))))
    parts = [slice(start, start + step) for start in range(0, length, step)]
    if _pools.outdated:
        _pools.refresh()
    threads = min(_pools.threads, len(parts))
    if threads == 1:
        return [one(part) for part in parts]
    from concurrent.futures import ThreadPoolExecutor

    alike = partial(np.seterr, **np.geterr())  # what is ignored here is ignored there
    with ThreadPoolExecutor(threads, initializer=alike) as workers:
        return list(workers.map(one, parts))
