"""How many threads linear algebra takes: all of them for large products, one for the rest.

The wheels of NumPy and SciPy bring a BLAS each, with a pool of threads each. A pool that has
finished keeps spinning for some milliseconds, on the cores that the other one asks for next: a
factorisation of 250 x 250 then takes a hundred times as long as on one thread. So a run takes one
thread. Large products are divided here, among threads of Python: these wait without taking any time
of a core, and one that shares its core with another process takes fewer of the parts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from functools import reduce
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces import ModelError

_READ = 2.0**22
"""Numbers that a product reads from which threads are worth waking: some milliseconds."""

_PART, _PARTS = 2.0**20, 16
"""Numbers that a part of such a product reads at least, and parts at most."""

_LONG = 2**15
"""Entries of a long product that are added up at a time, over all parts, while they are in the
cache: 1.1 times as long as one product of the library in place of 1.35 (500 x 1e6)."""

_THICK = 8
"""Rows (or columns) of a part at least: sums that are kept for each part take little beside it."""

_DONE = 2.0**27
"""Operations of a product of matrices from which threads are worth waking: some milliseconds."""

_STRIP, _STRIPS = 256, 8
"""Columns of a strip of a product of matrices at least, and strips at most."""

_ROWS = 1024
"""Rows of a part of a product of narrow matrices at least."""


@final
class Config:
    """Settings of this process; ``sm.config`` is the only one.

    Attributes
    ----------
    threads
        The maximum number of threads of a large product. None is the setting of the BLAS library,
        usually all cores or ``OPENBLAS_NUM_THREADS``.
    progress
        Whether calls that take more than two seconds show their progress on terminals and in
        notebooks; True by default. Nothing is shown elsewhere.

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


config: Config = Config()


@final
class _Pools:
    """The BLAS libraries of this process, and how many runs keep them to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._found: list[Any] = []
        self._before: list[int] = []
        self._complete = False  # whether SciPy's library is among those found
        self._here = threading.local()

    def enter(self) -> None:
        """Switch to one thread, unless another run has done so."""
        with self._lock:
            self._runs += 1
            if not self._found or self.outdated:
                self._find()
            elif self._runs == 1:
                self._before = [pool.get_num_threads() for pool in self._found]
                if any(number != 1 for number in self._before):
                    self._set([1] * len(self._found))

    def leave(self) -> None:
        """Give back what was there, when the last run leaves."""
        with self._lock:
            self._runs -= 1
            if self._runs == 0:
                self._set(self._before)
                self._before = []

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

    def work(self) -> None:
        """Note that this thread does a part of something."""
        self._here.working = True

    @property
    def working(self) -> bool:
        """Return whether this thread does a part of something."""
        return getattr(self._here, "working", False)

    @property
    def one_thread(self) -> bool:
        """Return whether a run keeps the libraries to one thread."""
        return self._runs > 0


_pools = _Pools()


@final
class small_work(ContextDecorator):
    """Keep linear algebra to one thread; large products still take all.

    A context and, called, a decorator. What the libraries were set to is set again at its end. Such
    contexts may contain each other, and run in several threads of Python at once.
    """

    def __enter__(self) -> None:
        _pools.enter()

    def __exit__(self, *_: object) -> None:
        _pools.leave()


def keep_to_one() -> None:
    """Keep libraries that were loaded during a run to one thread as well.

    Called before the first work after an import that is done when it is needed.
    """
    if _pools.one_thread and _pools.outdated:
        _pools.refresh()


def _multiplied(a: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    # Of several vectors and an array stored by columns the other order is twice as fast.
    return np.asarray((x.T @ a.T).T if abs(a.strides[0]) < abs(a.strides[1]) else a @ x)


def product(
    a: NDArray[Any],
    x: NDArray[Any],
    multiply: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]] = _multiplied,
) -> NDArray[Any]:
    """Return ``a @ x``, for one vector or a few.

    In :func:`small_work` large arrays are multiplied by parts, along the axis they are stored by,
    each by ``multiply``. The parts do not depend on the number of threads, nor do the digits of
    the product.
    """
    n, p = a.shape
    if not _parted(a.size):
        return multiply(a, x)
    if abs(a.strides[0]) >= abs(a.strides[1]):
        found = _by_parts(lambda part: multiply(a[part], x), n, a.size)
        return found[0] if len(found) == 1 else np.concatenate(found)
    if n < 2 * _LONG:
        return reduce(np.add, _by_parts(lambda part: multiply(a[:, part], x[part]), p, a.size))
    parts = _parts(p, a.size)
    strips = [slice(start, start + _LONG) for start in range(0, n, _LONG)]

    def strip(rows: slice) -> NDArray[Any]:
        return reduce(np.add, [multiply(a[rows, part], x[part]) for part in parts])

    return np.concatenate(each(strip, strips))


def cross_product(a: NDArray[Any], b: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return ``a.T @ b`` of matrices with as many rows; without ``b``, ``a.T @ a``.

    In :func:`small_work` large ones are multiplied by strips of columns, narrow ones by parts of
    the rows. Neither depends on the number of threads, nor do the digits of the product.
    """
    other = a if b is None else b
    (n, p), q = a.shape, other.shape[1]
    if 2.0 * n * p * q < _DONE or not _pools.one_thread:
        return np.asarray(a.T @ other)
    strips = _strips(p), _strips(q)
    if len(strips[0]) * len(strips[1]) == 1:
        step = max(_ROWS, -(-n // _STRIPS**2))
        rows = [slice(start, start + step) for start in range(0, n, step)]
        return reduce(np.add, each(lambda part: a[part].T @ other[part], rows))
    out = np.empty((p, q), dtype=np.result_type(a, other))
    pairs = [(i, j) for i in strips[0] for j in strips[1] if b is not None or i.start <= j.start]

    def fill(pair: tuple[slice, slice]) -> None:
        i, j = pair
        out[i, j] = a[:, i].T @ other[:, j]
        if b is None and i.start < j.start:
            out[j, i] = out[i, j].T

    each(fill, pairs)
    return out


def _strips(columns: int) -> list[slice]:
    step = max(_STRIP, -(-columns // _STRIPS))
    return [slice(start, min(start + step, columns)) for start in range(0, columns, step)]


def _parted(reads: float) -> bool:
    """Return whether work that reads so many numbers is done by parts."""
    return reads >= _READ and _pools.one_thread


def _by_parts(one: Callable[[slice], Any], length: int, reads: float) -> list[Any]:
    """Return ``one`` of every part of a range, of which all together read so many numbers."""
    if not _parted(reads):
        return [one(slice(0, length))]
    return each(one, _parts(length, reads))


def _parts(length: int, reads: float) -> list[slice]:
    """Return the parts of a range, of which all together read so many numbers."""
    step = max(_THICK, -(-length // min(_PARTS, int(reads / _PART))))
    return [slice(start, start + step) for start in range(0, length, step)]


def each(
    one: Callable[[Any], Any], parts: Sequence[Any], *, operations: float = np.inf
) -> list[Any]:
    """Return ``one`` of every part, on threads of Python in :func:`small_work`.

    ``operations`` are those of all parts; few are not worth waking a thread. What ``one`` does in
    turn stays on its thread.
    """
    keep_to_one()
    threads = min(_pools.threads, len(parts))
    if threads == 1 or operations < _DONE or not _pools.one_thread or _pools.working:
        return [one(part) for part in parts]
    from concurrent.futures import ThreadPoolExecutor

    alike = np.geterr()  # what is ignored here is ignored there

    def begin() -> None:
        np.seterr(**alike)
        _pools.work()

    with ThreadPoolExecutor(threads, initializer=begin) as workers:
        return list(workers.map(one, parts))
