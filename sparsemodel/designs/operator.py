"""A design that is only known by its products (a SciPy ``LinearOperator`` or two functions)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import (
    DataError,
    DataTypeError,
    Design,
    FloatArray,
    NormBound,
    SparseModelError,
)

ADJOINT_TRIALS = 3
"""Random pairs of vectors on which an operator and its adjoint are compared."""

_SLACK = 64.0
"""Rounding errors, in units of the square root of the size, that the comparison allows."""

_LARGE = 1e100
"""Size of an argument up to which an infinite product is no overflow of its own."""


@final
class OperatorDesign(Design):
    r"""A matrix-free design over anything with ``shape``, ``matvec`` and ``rmatvec``.

    The operator gets copies and its results are copied: it may change its argument and reuse its
    buffers. Before the first product with the adjoint both are compared once on a few random
    vectors: :math:`\langle r, A x \rangle = \langle A^\top r, x \rangle` up to rounding. Products
    of a wrong shape, complex ones, ones with NaN and ones that raise end with a
    :class:`~sparsemodel.interfaces.DataError`.
    """

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self._compared = False
        self._norm: NormBound | None = None
        self._products, self._seconds = 0, 0.0
        declared = getattr(operator, "dtype", None)
        self.single: bool = declared is not None and np.dtype(declared).itemsize < 8
        """Whether products are accurate to single precision only."""

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._operator.shape
        return int(n), int(p)

    @property
    def bytes_read(self) -> int | None:
        return None

    def describe(self) -> str:
        n, p = self.shape
        return f"matrix-free operator {n} x {p}"

    @property
    def product_seconds(self) -> float:
        """Return the mean time of a product so far, 0 before the first."""
        return self._seconds / self._products if self._products else 0.0

    def matvec(self, x: FloatArray) -> FloatArray:
        return self._apply("matvec", x, self.shape[0])

    def rmatvec(self, r: FloatArray) -> FloatArray:
        if not self._compared:
            self._compared = True
            try:
                compare_with_adjoint(self, single=lambda: self.single)
            except BaseException:
                self._compared = False
                raise
        return self._apply("rmatvec", r, self.shape[1])

    def spectral_norm(self) -> NormBound:
        """Return the estimate of the base class; its hundred products are multiplied once."""
        if self._norm is None:
            self._norm = super().spectral_norm()
        return self._norm

    def first_nonfinite(self) -> tuple[int, int] | None:
        n, p = self.shape
        row = self._bad("matvec", np.ones(p))
        column = self._bad("rmatvec", np.ones(n))
        return None if row is None or column is None else (row, column)

    def _bad(self, name: str, v: FloatArray) -> int | None:
        """Return the first entry of a product that is not finite."""
        found = np.asarray(getattr(self._operator, name)(v), dtype=np.float64).reshape(-1)
        places = np.flatnonzero(~np.isfinite(found))
        return int(places[0]) if places.size else None

    def _apply(self, name: str, v: FloatArray, size: int) -> FloatArray:
        product: Callable[[FloatArray], Any] = getattr(self._operator, name)
        began, columns = time.perf_counter(), v[:, None] if v.ndim == 1 else v
        out = np.empty((size, columns.shape[1]))
        for j, column in enumerate(columns.T):
            out[:, j] = self._one(product, name, column, size)
        self._products += columns.shape[1]
        self._seconds += time.perf_counter() - began
        return out[:, 0].copy() if v.ndim == 1 else out

    def _one(
        self, product: Callable[[FloatArray], Any], name: str, v: FloatArray, size: int
    ) -> FloatArray:
        try:
            found = np.asarray(product(np.array(v, dtype=np.float64)))
        except SparseModelError:
            raise
        except Exception as error:
            raise DataError(
                f"The operator's {name} raised {type(error).__name__} for a vector of {v.size} "
                f"numbers: {error}. It must return {size} real numbers."
            ) from error
        if found.dtype.kind not in "biuf":
            raise DataTypeError(
                f"The operator's {name} returned numbers of dtype {found.dtype}, and they must be "
                "real. For real unknowns stack real and imaginary parts as rows of a real "
                "operator; complex unknowns are pairs of real ones, counted together."
            )
        if found.size != size:
            raise DataError(
                f"The operator's {name} returned an array of shape {found.shape} for a vector of "
                f"{v.size} numbers; it must return {size} numbers."
            )
        self.single = self.single or (found.dtype.kind == "f" and found.dtype.itemsize < 8)
        out = np.array(found, dtype=np.float64).reshape(-1)
        if not np.all(np.isfinite(out)) and np.all(np.isfinite(v)):
            calm = float(np.abs(v).max(initial=0.0)) <= _LARGE
            if calm or np.any(np.isnan(out)):
                raise DataError(
                    f"The operator's {name} returned NaN or infinite numbers for a finite vector. "
                    "Replace what is missing in its data, and rescale it if it overflows."
                )
        return out


def compare_with_adjoint(design: Design, single: Callable[[], bool] = lambda: False) -> None:
    r"""Refuse an adjoint that is not one: every gradient and every bound rests on it.

    Compares :math:`\langle r, A x \rangle` with :math:`\langle A^\top r, x \rangle` on
    ``ADJOINT_TRIALS`` pairs of random vectors, two products each.

    Raises
    ------
    DataError
        When they differ by more than rounding.
    """
    n, p = design.shape
    rng = np.random.default_rng(0)
    for _ in range(ADJOINT_TRIALS):
        x, r = rng.standard_normal(p), rng.standard_normal(n)
        forward, back = design.matvec(x), design.rmatvec(r)
        size = max(
            float(np.linalg.norm(r) * np.linalg.norm(forward)),
            float(np.linalg.norm(back) * np.linalg.norm(x)),
        )
        error = abs(float(r @ forward) - float(back @ x))
        unit = 2.0**-24 if single() else 2.0**-53
        if not error <= _SLACK * unit * np.sqrt(max(n, p)) * size:
            raise DataError(
                f"The operator of shape {n} x {p} and its rmatvec do not belong together: "
                f"<r, A x> and <A.T r, x> differ by {error / size:.1e} of their size for "
                "random x and r. rmatvec must multiply by the transposed matrix, up to "
                "rounding, and the same every time. (If it computes in single precision, give "
                "it dtype=numpy.float32.)"
            )
