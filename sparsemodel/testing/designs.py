"""The conformance suite for designs: the laws that every storage of ``A`` must obey.

A third party tests a design with::

    def test_my_design():
        run_design_suite("my design", MyDesign).raise_if_failed()

where the second argument makes a design from an array. Nothing here needs pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from sparsemodel.interfaces import Access, Design, FloatArray
from sparsemodel.testing.instances.problems import Storage
from sparsemodel.testing.laws import design_laws as laws
from sparsemodel.testing.laws.design_laws import Tolerance
from sparsemodel.testing.report import NamedCheck, Report, check, quietly, run_checks

DesignCheck: TypeAlias = Callable[[Design, FloatArray, Tolerance], None]

EXACT = Tolerance()
"""Double precision, and nothing else."""

DESIGN_CHECKS: tuple[DesignCheck, ...] = (
    laws.has_a_shape_and_a_name,
    laws.multiplies,
    laws.multiplies_transposed,
    laws.is_its_own_adjoint_pair,
    laws.restricts,
    laws.restricts_again,
    laws.restricts_rows,
    laws.multiplies_by_itself,
    laws.shows_its_entries,
    laws.reads_in_blocks,
    laws.measures_its_columns,
    laws.bounds_its_norm,
    laws.finds_no_nonfinite,
)
"""The laws, in the order in which a broken design is best repaired."""


def sample_arrays() -> Mapping[str, FloatArray]:
    """Return the arrays the suite stores: tall, wide, single, sparse, badly scaled, zero."""
    rng = np.random.default_rng(0)
    tall, wide = rng.standard_normal((13, 6)), rng.standard_normal((5, 9))
    holes = rng.standard_normal((20, 8)) * (rng.uniform(size=(20, 8)) < 0.3)
    holes[:, 2] = 0.0
    return MappingProxyType(
        {
            "tall": tall,
            "wide": wide,
            "one row": rng.standard_normal((1, 4)),
            "one column": rng.standard_normal((7, 1)),
            "one entry": np.array([[-2.5]]),
            "mostly zero": holes,
            "badly scaled": tall * np.geomspace(1e-6, 1e6, 6),
            "more rows than a block": rng.standard_normal((150, 3)),
            "nothing but zeros": np.zeros((4, 3)),
        }
    )


def read_only(array: FloatArray) -> FloatArray:
    """Return a copy that raises when it is written to."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def finds_nonfinite(make: Storage, array: FloatArray) -> None:
    """NaN and infinity are found where they are: the first in reading order.

    A design that is only known by its products may name a row and a column that hold one.
    """
    n, p = array.shape
    places = [(0, 0), (n - 1, p - 1), (n // 2, p // 2)]
    for bad in (np.nan, np.inf, -np.inf):
        for place in places:
            spoilt = array.copy()
            spoilt[place] = bad
            spoilt[n - 1, p - 1] = np.nan
            with np.errstate(invalid="ignore"):
                design = make(spoilt)
                found = design.first_nonfinite()
            check(found is not None, f"{bad} at {place} was not found")
            if found is None:
                continue
            check(all(type(index) is int for index in found), f"found at {found!r}, not int")
            if Access.ROWS in design.access:
                check(found == place, f"{bad} at {place} was found at {found}")
            else:
                broken = ~np.isfinite(spoilt)
                row, column = found
                check(broken[row].any() and broken[:, column].any(), f"{bad} found at {found}")


def design_checks(make: Storage, *, tolerance: Tolerance = EXACT) -> Iterator[NamedCheck]:
    """Yield the checks of the designs that ``make`` makes, ready to run."""
    for name, array in sample_arrays().items():
        for law in DESIGN_CHECKS:
            yield f"{law.__name__}[{name}]", quietly(_obeyed, law, make, array, tolerance)
        yield f"finds_nonfinite[{name}]", quietly(finds_nonfinite, make, array)


def _obeyed(law: DesignCheck, make: Storage, array: FloatArray, tolerance: Tolerance) -> None:
    """Run a law on a design over entries that cannot be written to, and compare them after."""
    stored = read_only(array)
    law(make(stored), array, tolerance)
    check(np.array_equal(stored, array), "the entries were changed")


def run_design_suite(
    name: str,
    make: Storage,
    *,
    tolerance: Tolerance = EXACT,
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Run every law on designs over several arrays and report all of it.

    Parameters
    ----------
    name
        What the report calls it.
    make
        Returns a design over the float64 array it is given. It may convert the entries, within
        ``tolerance``.
    tolerance
        How far numbers may be off, relative to the sum of the absolute values of what was added
        up; storages that convert or shift the entries need more than the default.
    expected_failures
        Reasons by name of a check, patterns allowed. Strict.

    Returns
    -------
    Report
        Nothing is raised: call :meth:`Report.raise_if_failed` for that. Any warning is a
        failure.
    """
    return run_checks(
        name, design_checks(make, tolerance=tolerance), expected_failures=expected_failures
    )


__all__ = [
    "DESIGN_CHECKS",
    "EXACT",
    "DesignCheck",
    "Tolerance",
    "design_checks",
    "finds_nonfinite",
    "read_only",
    "run_design_suite",
    "sample_arrays",
]
