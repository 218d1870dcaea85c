"""A design that is only known by its products (a SciPy ``LinearOperator`` or two functions)."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from sparsemodel.interfaces import Design, FloatArray


@final
class OperatorDesign(Design):
    """A matrix-free design over anything with ``shape``, ``matvec`` and ``rmatvec``."""

    def __init__(self, operator: Any) -> None:
        self._operator = operator

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._operator.shape
        return int(n), int(p)

    def describe(self) -> str:
        n, p = self.shape
        return f"matrix-free operator {n} x {p}"

    def matvec(self, x: FloatArray) -> FloatArray:
        return self._apply(self._operator.matvec, x, self.shape[0])

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return self._apply(self._operator.rmatvec, r, self.shape[1])

    @staticmethod
    def _apply(product: Any, v: FloatArray, size: int) -> FloatArray:
        if v.ndim == 1:
            return np.asarray(product(v), dtype=np.float64).reshape(-1)
        out = np.empty((size, v.shape[1]))
        for j, column in enumerate(v.T):
            out[:, j] = np.asarray(product(column)).reshape(-1)
        return out


__all__ = ["OperatorDesign"]
