"""The shipped suite on every storage the library has, and on what a stranger could get wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsemodel.designs import DenseDesign, OnesDesign, as_design
from sparsemodel.designs.dense import DenseColumns
from sparsemodel.interfaces import Access, Design
from sparsemodel.testing.designs import DESIGN_CHECKS, EXACT, run_design_suite, sample_arrays
from sparsemodel.testing.instances.problems import EXACT_STORAGES, SINGLE_STORAGES
from sparsemodel.testing.laws.design_laws import Tolerance
from sparsemodel.testing.report import CheckFailure

# Its entries are stored shifted by up to 9 and scaled by up to 16: that much of their digits is
# lost, and where all entries are zero the sums are rounded all the same.
SHIFTED = Tolerance(relative=1e-9, absolute=1e-12, stored=9.0 * 16.0)
SINGLE = Tolerance(relative=1e-5)

CASES = {name: (make, EXACT) for name, make in EXACT_STORAGES.items()}
CASES |= {name: (make, SINGLE) for name, make in SINGLE_STORAGES.items()}
CASES["transformed"] = (EXACT_STORAGES["transformed"], SHIFTED)
CASES["columns left where they are"] = (lambda array: columns_of_more(array), EXACT)


def columns_of_more(array: np.ndarray) -> Design:
    """Return the design of the array as every other column of a larger one."""
    more = np.full((array.shape[0], 2 * array.shape[1] + 1), 7.0)
    more[:, 1::2] = array
    return DenseColumns(DenseDesign(more), np.arange(1, more.shape[1], 2))


@pytest.mark.parametrize("name", CASES)
def test_design(name, counted):
    make, tolerance = CASES[name]
    report = counted(run_design_suite(name, make, tolerance=tolerance))
    assert report.executed == (len(DESIGN_CHECKS) + 1) * len(sample_arrays())
    assert report.ok, str(report)


@pytest.mark.parametrize("law", DESIGN_CHECKS, ids=lambda law: law.__name__)
def test_ones(law):
    law(OnesDesign(5), np.ones((5, 1)), EXACT)


class Products(Design):
    """The least a stranger can write: a shape and two products."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.array @ x

    def rmatvec(self, r: np.ndarray) -> np.ndarray:
        return self.array.T @ r


def test_two_products_are_enough(counted):
    counted(run_design_suite("two products", Products)).raise_if_failed()


class _Rows(Products):
    @property
    def access(self) -> Access:
        return Access.PRODUCTS | Access.ROWS


def _broken(**methods: Any) -> Any:
    return type("Broken", (_Rows,), methods)


BROKEN = {
    "multiplies": _broken(matvec=lambda self, x: (1.0 + 1e-9) * (self.array @ x)),
    "multiplies_transposed": _broken(rmatvec=lambda self, r: -(self.array.T @ r)),
    "is_its_own_adjoint_pair": _broken(rmatvec=lambda self, r: 2.0 * (self.array.T @ r)),
    "restricts[": _broken(restrict=lambda self, s: Products(self.array[:, s[::-1]])),
    "restricts_again": _broken(restrict_again=lambda self, s, last, part: part),
    "multiplies_by_itself": _broken(gram=lambda self, h=None: self.array.T @ self.array),
    "shows_its_entries": _broken(to_array=lambda self: self.array.astype(np.float32)),
    "reads_in_blocks": _broken(row_blocks=lambda self, size: iter([(slice(0, 1), self.array)])),
    "measures_its_columns": _broken(
        column_square_norms=lambda self, h=None: np.abs(self.array).sum(axis=0)
    ),
    "bounds_its_norm": _broken(
        spectral_norm=lambda self: type(DenseDesign(self.array).spectral_norm())(1e-3, "upper")
    ),
    "finds_nonfinite": _broken(first_nonfinite=lambda self: None),
    "has_a_shape_and_a_name": _broken(describe=lambda self: ""),
}


@pytest.mark.parametrize("law", BROKEN)
def test_the_suite_finds_what_is_broken(law):
    report = run_design_suite("broken", BROKEN[law])
    assert any(failure.name.startswith(law) for failure in report.failures), str(report)
    with pytest.raises(CheckFailure, match="broken: "):
        report.raise_if_failed()


def test_the_suite_finds_a_design_that_writes_to_the_array():
    class Writer(Products):
        def matvec(self, x: np.ndarray) -> np.ndarray:
            self.array.flags.writeable = True
            self.array[0, 0] += 1.0
            return self.array @ x

    def make(array: np.ndarray) -> Design:
        return Writer(array)

    report = run_design_suite("writer", make)
    assert any("multiplies[" in failure.name for failure in report.failures)


def test_coerced_arrays_pass(counted):
    report = run_design_suite("as_design", lambda array: as_design(array.tolist()))
    counted(report).raise_if_failed()
