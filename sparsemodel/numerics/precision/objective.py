"""The Gaussian negative log-likelihood as an objective over the entries of a symmetric matrix."""

from __future__ import annotations

from typing import cast, final

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    NormBound,
    Objective,
    Point,
    Work,
)
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision.cholesky import Factor, factorise, within_bounds
from sparsemodel.numerics.precision.log_det_newton import (
    hessian,
    hessian_diagonal,
    hessian_operator,
)
from sparsemodel.numerics.precision.pattern import Pattern
from sparsemodel.numerics.precision.spectral import eigenvalues, spectral_infimum


class OfPrecision(Objective):
    """A likelihood of precision matrices: smooth, and not quadratic."""

    @property
    def quadratic(self) -> bool:
        return False

    @property
    def smooth(self) -> bool:
        return True

    @property
    def twice_differentiable(self) -> bool:
        return True


@final
class PrecisionObjective(OfPrecision):
    r"""Evaluate :math:`w(-\log\det\Omega + \langle S,\Omega\rangle) + const` in coordinates.

    The state of a point is the :class:`Factor` of its matrix; where the matrix is not positive
    definite or an eigenvalue is out of bounds the value is ``inf`` and the state None.
    """

    def __init__(self, form: SparsePrecision, work: Work | None = None) -> None:
        super().__init__(work)
        self._form = form
        self._all = Pattern(form.order, form.rows, form.cols)
        self._covariance_entries = self._all.gather(form.covariance)

    @property
    def form(self) -> SparsePrecision:
        return self._form

    # ---- points ------------------------------------------------------------------------------

    def point(self, support: IntArray, values: FloatArray) -> Point:
        x = np.zeros(self.shape)
        x[support] = values
        self.work.factorizations += 1
        factor = factorise(self.pattern(support).scatter(values))
        if factor is None or not within_bounds(factor, self._form.alpha, self._form.beta):
            return Point(x, support, np.inf)
        return Point(x, support, self._value(factor, support, values), factor)

    def point_of(self, factor: Factor, support: IntArray) -> Point:
        """Return the point of a factorised matrix that lies on ``support`` and in the bounds."""
        x = np.zeros(self.shape)
        values = self.pattern(support).gather(factor.omega)
        x[support] = values
        return Point(x, support, self._value(factor, support, values), factor)

    def origin(self) -> Point:
        """Return the optimum without edges: the inverse variances, clipped to the bounds."""
        form = self._form
        free = form.sparsity.free
        diagonal = np.clip(1.0 / np.diagonal(form.covariance), form.alpha, form.beta)
        on_diagonal = form.rows[free] == form.cols[free]
        return self.point(free, np.where(on_diagonal, diagonal[form.rows[free]], 0.0))

    def pattern(self, support: IntArray) -> Pattern:
        """Return the support as a pattern of matrix entries."""
        return Pattern(self._form.order, self._form.rows[support], self._form.cols[support])

    def _value(self, factor: Factor, support: IntArray, values: FloatArray) -> float:
        s = self._covariance_entries[support]
        inner = float(np.dot(self._all.multiplicity[support] * s, values))
        return self._form.weight * (inner - factor.logdet) + self._form.constant

    # ---- derivatives -------------------------------------------------------------------------

    def gradient(self, at: Point) -> FloatArray:
        if at.gradient is None:
            residual = self._covariance_entries - self._all.gather(_factor(at).inverse)
            at.memo.gradient = out = self._form.weight * self._all.multiplicity * residual
            self.work.gradients += 1
            self.work.passes += 1.0
            return out
        return at.gradient

    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        if at.gradient is not None:
            return at.gradient[support]
        part = self.pattern(support)
        residual = self._covariance_entries[support] - part.gather(_factor(at).inverse)
        return self._form.weight * part.multiplicity * residual

    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        operator = hessian_operator(_factor(at).inverse, self.pattern(support))
        return self._form.weight * operator(v)

    def full_hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        W = _factor(at).inverse
        product = self._all.gather(W @ self.pattern(support).scatter(v) @ W)
        self.work.passes += 1.0
        return self._form.weight * self._all.multiplicity * product

    def hessian_diagonal(self, at: Point, support: IntArray) -> FloatArray:
        diagonal = hessian_diagonal(_factor(at).inverse, self.pattern(support))
        return self._form.weight * diagonal

    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        return self._form.weight * hessian(_factor(at).inverse, self.pattern(support))

    # ---- constants ---------------------------------------------------------------------------

    def smoothness(self) -> NormBound:
        r"""Return :math:`2 w \alpha^{-2}`: an edge counts twice in the Frobenius norm."""
        alpha = self._form.alpha
        if alpha == 0.0:
            return NormBound(np.inf, "upper")
        return NormBound(2.0 * self._form.weight / alpha**2, "upper")

    def strong_convexity(self) -> float:
        r"""Return :math:`w \beta^{-2}`."""
        return self._form.weight / self._form.beta**2

    def infimum(self) -> float:
        form = self._form
        sigma = eigenvalues(form.covariance)
        lowest = spectral_infimum(sigma, form.alpha, form.beta)
        return form.weight * lowest + form.constant


def precision_objective(form: SparsePrecision, work: Work | None = None) -> PrecisionObjective:
    """Return the objective of a form, as backends see it."""
    return PrecisionObjective(form, work)


def precision_state(objective: Objective, at: Point) -> tuple[SparsePrecision, Factor]:
    """Return the form and the factorised matrix behind a point of a :class:`PrecisionObjective`."""
    return cast("PrecisionObjective", objective).form, _factor(at)


def _factor(at: Point) -> Factor:
    if at.state is None:
        raise ValueError(
            "The matrix is not positive definite or out of its eigenvalue bounds, and the "
            "likelihood has no derivative there."
        )
    return cast("Factor", at.state)
