"""What surrounds every answer: threads, and numerical failures as errors about the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError, SparseModelError
from sparsemodel.progress import showing
from sparsemodel.threads import small_work

P = ParamSpec("P")
R = TypeVar("R")

_OURS = frozenset({"sparsemodel", "sparsemodel_backends", "numpy", "scipy", "numba"})
_NUMERICAL = (np.linalg.LinAlgError, ZeroDivisionError, OverflowError, FloatingPointError)
_NOT_FINITE = ("infs or nans", "not finite", "nan or inf")
"""What SciPy's refusals of arrays say, in lower case."""


@contextmanager
def computation(what: str) -> Iterator[None]:
    """Keep small work to one thread, show progress; name what floating point could not do.

    Errors of users' functions pass.

    Raises
    ------
    DataError
        With what to do about it.
    """
    try:
        # What overflows shows in the result.
        with small_work(), showing(what), np.errstate(all="ignore"):
            yield
    except SparseModelError:
        raise
    except (*_NUMERICAL, ValueError) as error:
        known = isinstance(error, _NUMERICAL) or any(s in str(error).lower() for s in _NOT_FINITE)
        if not known or _is_users(error.__traceback__):
            raise
        raise DataError(
            f"{what} failed in floating point ({type(error).__name__}: {error}). The data are "
            "scaled so that products of them overflow or vanish, or they were changed after the "
            "problem was declared. Divide the columns and the target by their sizes, or drop "
            "values that are not finite."
        ) from error


def asked(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return what makes a method answer so, and refuse options that it has not."""
    return lambda method: computation(what)(rejects_unknown_arguments(method))


def _is_users(traceback: TracebackType | None) -> bool:
    """Return whether a function from outside was at work: a callback, a loss, an operator."""
    seen = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename != __file__ and Path(code.co_filename).name != "contextlib.py":
            package = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
            ours = package in _OURS or code.co_filename.startswith("<")
            if seen and not ours:
                return True
            seen = seen or package == "sparsemodel"
        traceback = traceback.tb_next
    return False
