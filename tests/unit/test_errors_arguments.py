"""Calls with arguments that a function does not have: each answers by its own name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, verify
from sparsemodel.reporting import plots

RESULTS = {"Loss", "Path", "Solution", "Summary"}
"""What calls return, and what losses derive from: nobody makes them by arguments."""
METHODS = {
    "problem": (sm.Problem, "certify explain path plan predict prove restricted solve theory"),
    "solution": (sm.Solution, "predict summary"),
    "path": (sm.Path, "at cross_validate cross_validation plot select stability"),
    "certificate": (Certificate, "save"),
}


def called() -> dict[str, Callable[..., Any]]:
    """Return the public functions and classes by how a user writes them."""
    language = {f"sm.{name}": getattr(sm, name) for name in sm.__all__ if name not in RESULTS}
    found = {
        name: one
        for name, one in language.items()
        if callable(one)
        and one is not sm.config
        and not (inspect.isclass(one) and issubclass(one, Exception))
    }
    found |= {f"plots.{name}": getattr(plots, name) for name in plots.__all__}
    found |= {
        f"sm.datasets.{name}": getattr(sm.datasets, name)
        for name in sm.datasets.__all__
        if name.startswith("load_")
    }
    for owner, (cls, names) in METHODS.items():
        for name in names.split():
            found[f"{owner}.{name}"] = getattr(object.__new__(cls), name)
    return {**found, "verify": verify}


CALLED = called()


@pytest.mark.parametrize("name", CALLED)
def test_an_unknown_argument_is_refused_by_the_name_of_the_function(name: str) -> None:
    # A first argument is given where one is needed: the unknown one is still named.
    for first in ((), (None,)):
        with pytest.raises(sm.DataTypeError) as error:
            CALLED[name](*first, no_such_argument=1)
        assert f"{name} has no argument 'no_such_argument'" in str(error.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: sm.log_det(), r"sm\.log_det\(matrix\) needs matrix"),
        (lambda: sm.as_design(), r"sm\.as_design\(matrix\) needs matrix"),
        (lambda: sm.datasets.load_golub(return_X_y=True), r"`data\.X` and `data\.y`"),
        (lambda: sm.datasets.load_golub(as_frame=True), r"pd\.DataFrame\(data\.X"),
        (lambda: sm.datasets.load_golub(1), "takes nothing by position"),
        (lambda: plots.path(None, ax=1), "write `axes=`"),
        (lambda: sm.gaussian_nll(None, np.eye(2), alpha=1), r"card\(sm\.offdiag\(Omega\)\)"),
        (lambda: sm.backends.NHTP(no_such_option=1), "NHTP has no option 'no_such_option'; it has"),
        (lambda: sm.backends.NHTP(maxiter=1), "is 'max_iter' meant"),
    ],
)
def test_the_message_says_what_to_write(asked: Callable[[], Any], words: str) -> None:
    with pytest.raises(sm.DataTypeError, match=words):
        asked()
