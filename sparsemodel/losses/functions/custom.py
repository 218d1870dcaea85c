"""A smooth convex function given by its value and gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from sparsemodel.interfaces import (
    DataError,
    DataFit,
    DataTypeError,
    FloatArray,
    ModelError,
    TwiceDifferentiable,
)

Value: TypeAlias = Callable[[FloatArray], Any]
Gradient: TypeAlias = Callable[[FloatArray], Any]
HessianProduct: TypeAlias = Callable[[FloatArray, FloatArray], Any]

_STEP = 6e-6
"""Relative step of central differences: the cube root of the rounding unit."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CustomLoss(TwiceDifferentiable, DataFit):
    """``f(u)`` for any smooth convex ``f`` of all predictions together.

    Parameters
    ----------
    function
        ``u -> f(u)``.
    slope
        ``u -> grad f(u)``, in the shape of ``u``.
    product
        ``(u, v) -> H(u) v``; None takes central differences of the gradient (two gradients each).
    name
        What to call it.
    upper, lower
        Bounds on the eigenvalues of the Hessian, where they are known.
    least
        A lower bound on ``f``, where one is known.
    """

    function: Value
    slope: Gradient
    product: HessianProduct | None = None
    name: str = "custom_loss"  # type: ignore[misc]
    upper: float = np.inf
    lower: float = 0.0
    least: float = -np.inf

    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        value = self._real(self.function(u), "value")
        if value.size != 1:
            raise DataError(
                f"{self.name}: the value must be one number, not of shape {value.shape}."
            )
        return _scale(c) * float(value.reshape(()))

    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        return _scale(c) * self._slope(u)

    def _slope(self, u: FloatArray) -> FloatArray:
        return self._alike(self.slope(u), "gradient", u)

    def _alike(self, returned: Any, what: str, u: FloatArray) -> FloatArray:
        array = self._real(returned, what)
        if array.shape != u.shape:
            raise DataError(
                f"{self.name}: the {what} must have the shape {u.shape} of its argument, "
                f"not {array.shape}."
            )
        return array

    def _real(self, returned: Any, what: str) -> FloatArray:
        """Return what a function of the user's gave back as float64, or say what it is."""
        array = np.asarray(returned)
        if array.dtype.kind not in "biuf":
            raise DataTypeError(
                f"{self.name}: the {what} must be real numbers, and the function returned "
                f"{type(returned).__name__} (dtype {array.dtype})."
            )
        with np.errstate(all="ignore"):  # longer floats that overflow are infinite
            return array.astype(np.float64, copy=False)

    def hessian_product(
        self, u: FloatArray, y: FloatArray, c: FloatArray, v: FloatArray
    ) -> FloatArray:
        if v.ndim > u.ndim:
            products = np.empty(v.shape)  # of no columns at all too
            for j in range(v.shape[1]):
                products[:, j] = self.hessian_product(u, y, c, v[:, j])
            return products
        if self.product is not None:
            return _scale(c) * self._alike(self.product(u, v), "Hessian product", u)
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return np.zeros_like(v)
        t = _STEP * (1.0 + float(np.abs(u).max(initial=0.0))) / size
        return _scale(c) * (self._slope(u + t * v) - self._slope(u - t * v)) / (2.0 * t)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return self.lower, self.upper

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return _scale(c) * self.least if np.isfinite(self.least) else -np.inf

    def outputs(self, y: FloatArray) -> int:
        return 1 if y.ndim == 1 else int(y.shape[1])

    def check(self, shape: tuple[int, ...]) -> None:
        """Spot-check the gradient against the value, and convexity, at a few points.

        Raises
        ------
        DataError
            When a value or gradient has the wrong shape or is not finite.
        ModelError
            When the gradient is not that of the value, or the function is not convex.
        """
        rng = np.random.default_rng(0)
        one = np.ones(1)
        for _ in range(3):
            u, d = 0.3 * rng.standard_normal(shape), rng.standard_normal(shape)
            d /= float(np.linalg.norm(d))
            ends = [self.total(u + t * d, one, one) for t in (-1e-5, 1e-5)]
            slopes = [float(np.vdot(self._slope(u + t * d), d)) for t in (-1e-3, 0.0, 1e-3)]
            if not np.all(np.isfinite([*ends, *slopes])):
                raise DataError(
                    f"{self.name}: the value or gradient is not finite near zero, where searches "
                    "begin. A function that is defined on a part of the space alone has to go on, "
                    "convex and smooth, beyond it: -log(u) by its second-order expansion at 1e-3 "
                    "for u below that. For counts and amounts sm.poisson_loss and sm.gamma_loss "
                    "know their domain."
                )
            found = (ends[1] - ends[0]) / 2e-5
            noise = 1e-9 * (1.0 + abs(ends[0])) / 1e-5
            if abs(found - slopes[1]) > 1e-4 * (1.0 + abs(found)) + noise:
                raise ModelError(
                    f"{self.name}: the gradient does not match the value: along a direction the "
                    f"value changes at the rate {found:.6g} and the gradient says {slopes[1]:.6g}."
                )
            size = 1.0 + max(abs(s) for s in slopes)
            if slopes[2] - slopes[0] < -1e-7 * size:
                raise ModelError(
                    f"{self.name} is not convex: its slope falls along a line. Only convex "
                    "functions can be minimised here."
                )


def _scale(c: FloatArray) -> float:
    # The weights of the single predictions have no meaning here: all are the term's factor.
    return float(c.flat[0])
