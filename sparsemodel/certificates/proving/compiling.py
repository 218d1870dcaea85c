"""Whether there is time for what is compiled with Numba, and how long compiling took."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import WRAPPER_ASSIGNMENTS, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from sparsemodel.interfaces import MissingDependencyError
from sparsemodel.numerics.budget import budget
from sparsemodel.progress import doing

LOADING = 0.8
"""Seconds that it takes, once in a process, to load Numba and what was compiled before. Nothing
stops it, so it is not begun where less time is left."""

_FURTHER = 0.1
"""The same where Numba is loaded, and code like it."""

_LONG = 1.0
"""Seconds of compiling that are worth a word."""

_KEPT_ONLY: ContextVar[bool] = ContextVar("kept_only", default=False)


@final
@dataclass(slots=True, eq=False)
class Code:
    """What is compiled together, once on a machine in ten seconds; each process loads it once."""

    module: str
    function: str
    """The last that is compiled."""
    loaded: bool = False

    def kept(self) -> bool:
        """Return whether it is loaded, or was compiled on this machine before."""
        if self.loaded:
            return True
        try:
            module = import_module(self.module)
        except MissingDependencyError:
            return False
        function: Any = getattr(module, self.function)
        function = getattr(function, "__wrapped__", function)
        name = f"{self.module.rpartition('.')[2]}.{self.function}-*.nbi"
        written = (file.stat().st_mtime for file in Path(function.stats.cache_path).glob(name))
        # What was compiled from an older file is compiled again.
        return max(written, default=-1.0) >= Path(str(module.__file__)).stat().st_mtime


NODES = Code("sparsemodel.certificates.proving.gram.kernels.node_compiled", "solve_node")
QUADRATIC = Code("sparsemodel.certificates.proving.quadratic.kernel", "solve_node")
BOUNDS = Code("sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled", "settle")
GRAPHS = Code("sparsemodel.certificates.precision_matrices.proving.ascent_compiled", "ascend")


def _loading() -> float:
    """Return the seconds that loading takes at most: Numba itself is loaded with the first."""
    return _FURTHER if any(code.loaded for code in (NODES, QUADRATIC, BOUNDS, GRAPHS)) else LOADING


@contextmanager
def compiling_nothing() -> Iterator[None]:
    """Let what runs inside do without code that would have to be compiled first."""
    token = _KEPT_ONLY.set(True)
    try:
        yield
    finally:
        _KEPT_ONLY.reset(token)


def interruptible(function: Callable[..., Any]) -> Any:
    """Return a compiled function in which Ctrl-C is a ``KeyboardInterrupt``.

    Python reports a Ctrl-C that came in compiled code as soon as a line of Python runs again. That
    is where Numba builds the arrays that it returns, and what it raises then is a ``SystemError``.
    """

    @wraps(function, WRAPPER_ASSIGNMENTS, ())
    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except SystemError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__ or cause.__context__
            if cause is None:
                raise
            raise KeyboardInterrupt from error

    return called


def compilable() -> bool:
    """Return whether Numba is installed."""
    try:
        return find_spec("numba") is not None
    except ImportError:
        return False


def loadable(code: Code, deadline: float | None) -> bool:
    """Return whether compiled code is loaded, or would be in time; compiling is not counted."""
    if code.loaded:
        return True
    if _KEPT_ONLY.get() and not code.kept():
        return False
    return deadline is None or deadline - time.perf_counter() >= _loading()


def warmed(code: Code, call: Callable[[], object]) -> float:
    """Call what compiles when it is first called; return the seconds that compiling took.

    They do not count as search: the deadline of :func:`~sparsemodel.numerics.budget.budget` is put
    off. They are logged where they are many; loading what was compiled before counts.
    """
    if code.loaded:
        return 0.0
    began = time.perf_counter()
    with doing("preparing compiled code"):
        call()
    code.loaded = True
    seconds = max(time.perf_counter() - began - LOADING, 0.0)
    budget().extend(seconds)
    if seconds > _LONG:
        logging.getLogger("sparsemodel").info(
            "compiled the search for proofs in %.1f s, which is not counted as search", seconds
        )
    return seconds
