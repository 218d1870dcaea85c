"""Calls with arguments that a function does not have: each answers by its own name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, verify
from sparsemodel.certificates.theory.summary import Theory
from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.reporting import plots
from sparsemodel.sklearn import SparseLinearRegressionCV, SparsePrecision

RESULTS = {"Loss", "Path", "Solution", "Summary"}
"""What calls return, and what losses derive from: nobody makes them by arguments."""
METHODS = {
    "problem": (sm.Problem, "certify explain path plan predict prove restricted solve theory"),
    "solution": (sm.Solution, "graph predict summary"),
    "path": (sm.Path, "at cross_validate cross_validation plot select stability"),
    "certificate": (Certificate, "headline save title to_json"),
    "plan": (Plan, "graph"),
    "theory": (Theory, "applies level"),
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
        (lambda: problem().certify().title("x"), r"certificate\.title takes nothing by position"),
        (lambda: plots.path(None, ax=1), "write `axes=`"),
        (lambda: sm.gaussian_nll(None, np.eye(2), alpha=1), r"card\(sm\.offdiag\(Omega\)\)"),
        (lambda: SparsePrecision(alpha=0.1), "`edges=`; a bound on the eigenvalues is `min_"),
        (lambda: SparseLinearRegressionCV(alphas=[1.0]), "`ridges=`"),
        (lambda: sm.backends.NHTP(no_such_option=1), "NHTP has no option 'no_such_option'; it has"),
        (lambda: sm.backends.NHTP(maxiter=1), "is 'max_iter' meant"),
    ],
)
def test_the_message_says_what_to_write(asked: Callable[[], Any], words: str) -> None:
    with pytest.raises(sm.DataTypeError, match=words):
        asked()


RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((20, 6)), RNG.standard_normal(20)
W = sm.Variable(6, name="w")
RAGGED = [[1.0, 2.0], [3.0]]


def problem() -> sm.Problem:
    return sm.Problem(sm.minimize(sm.squared_loss(A @ W, B)), sm.card(W) <= 2)


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (lambda: W <= RAGGED, "A bound"),
        (lambda: RAGGED == W, "A bound"),
        (lambda: sm.semicontinuous(W, RAGGED), "A bound"),
        (lambda: W * RAGGED, "The factors of w"),
        (lambda: RAGGED @ sm.chosen(W), "costs"),
        (lambda: sm.squared_loss(A @ W, B) * RAGGED, "The factor of squared_loss"),
        (lambda: sm.ridge(W, RAGGED), "The weight lam of ridge"),
        (lambda: sm.ordinal_loss(A @ W, np.arange(20) % 2, order=RAGGED), "order"),
        (lambda: problem().path(range(3), ridges=RAGGED), "ridges"),
        (lambda: problem().path(range(3)).cross_validate(folds=RAGGED), "folds"),
        (lambda: problem().restricted(RAGGED), "A support"),
        (lambda: problem().solve(start=RAGGED), "The value of the start of w"),
        (lambda: problem().solve().predict(RAGGED), "The new data"),
    ],
)
def test_nested_lists_with_rows_of_different_lengths_are_named(
    asked: Callable[[], Any], where: str
) -> None:
    with pytest.raises(sm.DataError, match=f"^{where}.* must be an array, with rows of one length"):
        asked()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: sm.ridge(W, []), "ridge has 0 weights for 6 entries of w; give one number"),
        (lambda: sm.ridge(W, [1.0, 2.0]), "ridge has 2 weights for 6 entries of w"),
        (lambda: sm.chosen(3), "^What is counted is a variable.* not int 3"),
        (lambda: sm.backends.NHTP(max_iter=2.5), "max_iter must be a whole number, not 2.5"),
        (
            lambda: problem().solve("nhtp(max_iter=5)"),
            r"Options are given to the class of 'nhtp': NHTP\(max_iter=5\)",
        ),
        (lambda: sm.diff(W, 0), "The order of diff must be at least 1, not 0"),
        (lambda: sm.as_design(None), "A is NoneType None, not a matrix"),
        (lambda: sm.as_design({"a": [1.0]}), r"A is dict .*a data frame"),
        (lambda: sm.encode({"a": ["x"]}), r"Write pd\.DataFrame"),
        (lambda: SparsePrecision(0.1).fit(A), "edges must be a whole number, not 0.1"),
        (lambda: sm.encode(A), "an array of numbers needs no encoding"),
        (lambda: sm.encode(pd.DataFrame()), "has no columns"),
        (lambda: sm.encode(pd.DataFrame({"a": [1.0]}), formula=3), "formula must be a text"),
        (lambda: problem().solve().predict(None), "The new data are NoneType None"),
        (lambda: problem().solve(start={"w": A[0]}), "start has a value for str 'w'"),
        (lambda: problem().solve(start={sm.Variable(6): A[0]}), "is not a variable of the problem"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(asked: Callable[[], Any], words: str) -> None:
    with pytest.raises(sm.SparseModelError, match=words):
        asked()


@pytest.mark.parametrize("name", ["coefficients", "convergence", "gaps", "graph", "path", "plan"])
def test_plots_say_what_they_draw(name: str) -> None:
    with pytest.raises(sm.DataTypeError, match=rf"plots\.{name} draws .*, not int 3"):
        getattr(plots, name)(3)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    certificate = problem().certify()
    with pytest.raises(FileNotFoundError, match=r"no such folder: .*absent'"):
        certificate.save(tmp_path / "absent" / "certificate.json")


def test_a_start_is_given_by_variables_of_cvxpy_too() -> None:
    x = cp.Variable(6, name="x")
    given = sm.Problem(cp.Minimize(cp.sum_squares(A @ x - B)), [sm.card(x) <= 2])
    with pytest.raises(sm.ModelError, match="The start has 6 nonzero units"):
        given.solve(start={x: np.ones(6)})
