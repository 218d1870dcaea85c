"""What a loss is: a convex function of the predictions, with facets it inherits if it has them.

A loss is a small immutable value. It never holds data: targets ``y`` and weights ``c`` are
handed to each call, so that one loss serves every term, fold and resample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from sparsemodel.interfaces.errors import DataError
from sparsemodel.interfaces.numeric import FloatArray


class DataFit(ABC):
    r"""A convex function :math:`F(u; y, c)` of all predictions ``u`` together.

    Most losses are sums over observations and derive from :class:`Loss`; this base is for the
    ones that couple observations (the Cox partial likelihood, say).

    ``u`` has shape ``(n,)``, or ``(n, m)`` when the variable is a matrix with ``m`` columns.
    ``c`` holds the positive observation weights, shape ``(n,)``; the language's choice between
    mean and sum is already inside them.
    """

    name: ClassVar[str]
    """Name in the language and in every output, for example ``"squared_loss"``."""

    bends: ClassVar[bool] = False
    """Whether ``F`` is strictly convex, or affine, along every line of predictions.

    Where such a function falls and then stays level to all digits, it has no minimiser (the
    logistic loss of separable data, say). Piecewise linear or quadratic losses may well be level
    at their minimum."""

    @abstractmethod
    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        """Return ``F(u; y, c)``."""

    @abstractmethod
    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        """Return the gradient (or one subgradient) of ``F`` in ``u``, in the shape of ``u``."""

    def curvature(self) -> tuple[float, float]:
        """Return bounds ``(lower, upper)`` on the second derivative for unit weights.

        ``upper = inf`` says "not smooth" (or only locally); ``lower > 0`` says "strongly convex".
        For weighted sums the Hessian in ``u`` lies between ``min(c) * lower`` and
        ``max(c) * upper``.
        """
        return 0.0, np.inf

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        """Return a valid lower bound on ``F(.; y, c)``; ``-inf`` when none is known."""
        return -np.inf

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        """Return the target in the loss's own coding, or raise :class:`DataError`.

        ``where`` names the argument in the user's words. Called once, when a term is declared,
        with a finite float64 array.
        """
        return y

    def outputs(self, y: FloatArray) -> int:
        """Return how many columns a prediction has (1 for vector variables)."""
        return 1


class Loss(DataFit):
    r"""A weighted sum of convex functions of one prediction each,
    :math:`F(u; y, c) = \sum_i c_i\, \ell(u_i; y_i)`.

    Subclass it with :meth:`value` and :meth:`derivative`, and inherit the facets
    :class:`TwiceDifferentiable`, :class:`Conjugable`, :class:`CvxModelled` for what else is
    known. All methods are elementwise and must not overflow at ``|u| = 1e3``.
    """

    @abstractmethod
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the losses of the single observations, shape ``(n,)``."""

    @abstractmethod
    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivatives (or one subgradient) in ``u``, in the shape of ``u``."""

    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        return float(np.dot(c, self.value(u, y)))

    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        return _rowwise(c, self.derivative(u, y))

    def value_magnitude(self, u: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        """Return what rounding errors of :meth:`value` are small relative to, shape ``(n,)``.

        ``value`` is what :meth:`value` returned. Certificates take the computed value to be
        within a few units in the last place of this number. The default suits losses whose
        natural scale is one; a loss that is homogeneous in its residual overrides it.
        """
        slope = _row_norms(self.derivative(u, y))
        size, target = _row_norms(u), _row_norms(y)
        return 1.0 + np.abs(value) + (1.0 + size + target) * (1.0 + slope) + target * size


class TwiceDifferentiable(ABC):
    """Facet: the Hessian in the predictions is available (almost everywhere)."""

    @abstractmethod
    def hessian_product(
        self, u: FloatArray, y: FloatArray, c: FloatArray, v: FloatArray
    ) -> FloatArray:
        """Return the Hessian of ``F(.; y, c)`` at ``u`` applied to ``v``.

        For ``u`` of shape ``(n,)``, ``v`` has shape ``(n,)`` or ``(n, q)`` (``q`` directions);
        for ``u`` of shape ``(n, m)``, ``v`` has the shape of ``u``.
        """


class Curved(TwiceDifferentiable):
    """Facet of a separable scalar loss: its second derivative is a number per observation.

    The Hessian in the coefficients is then ``A.T @ diag(c * h) @ A``.
    """

    @abstractmethod
    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return ``h_i``, the second derivatives in ``u``, shape ``(n,)``; nonnegative."""

    def hessian_product(
        self, u: FloatArray, y: FloatArray, c: FloatArray, v: FloatArray
    ) -> FloatArray:
        return _rowwise(c * self.second_derivative(u, y), v)


class Quadratic(Curved):
    """Facet: the second derivative is the same everywhere, so one Newton step is exact."""


class Conjugable(ABC):
    r"""Facet: the convex conjugate :math:`\ell^*(a; y) = \sup_u a u - \ell(u; y)` is known.

    This is what dual bounds are made of. It must hold that
    ``value(u, y) + conjugate(a, y) == a * u`` at ``a = derivative(u, y)``.
    """

    @abstractmethod
    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return the conjugates of the single observations, shape ``(n,)``; ``inf`` outside."""

    @abstractmethod
    def project_dual(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return the nearest point of the conjugate's domain, observation by observation."""

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        """Return what rounding errors of :meth:`conjugate` are small relative to, shape ``(n,)``.

        ``value`` is what :meth:`conjugate` returned, see :meth:`Loss.value_magnitude`.
        """
        size, target = _row_norms(a), _row_norms(y)
        logs = np.abs(np.log(np.where(target > 0.0, target, 1.0)))
        return 1.0 + np.abs(value) + (1.0 + size) * (1.0 + size + target + logs)


class IntervalConjugable(Conjugable):
    """Facet of a scalar loss: the domain of the conjugate is an interval per observation."""

    @abstractmethod
    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``(lower, upper)``, the closed domain of ``conjugate(., y)``, shapes ``(n,)``."""

    def project_dual(self, a: FloatArray, y: FloatArray) -> FloatArray:
        lower, upper = self.dual_interval(y)
        return np.clip(a, lower, upper)


class Smoothable(ABC):
    r"""Facet of a nonsmooth loss: smooth convex approximations from below, as close as wanted.

    For every ``mu > 0`` the loss returned by :meth:`smoothed` satisfies, everywhere,

    .. math:: 0 \le \ell(u; y) - \ell_\mu(u; y) \le \mathrm{bound}(\mu),

    with ``bound`` given by :meth:`smoothing_error` and proportional to ``mu``, and its derivative
    has the Lipschitz constant ``1 / mu``. (The built-in ones add ``mu a**2 / 2`` to the conjugate,
    after Nesterov, *Smooth minimization of non-smooth functions*, Theorem 1; the domain of the
    conjugate stays the same, so a dual point of the smoothed problem serves the original one.)
    """

    @abstractmethod
    def smoothed(self, mu: float) -> Loss:
        """Return the smooth approximation, a loss with ``curvature()[1] == 1 / mu``."""

    @abstractmethod
    def smoothing_error(self, mu: float) -> float:
        """Return ``bound(mu)``, the largest difference for one observation of weight one."""


class CvxModelled(ABC):
    """Facet: the loss can be written with CVXPY atoms (for debiasing and cross-checks)."""

    @abstractmethod
    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        """Return a CVXPY expression of the single losses, shape ``(n,)``.

        ``cp`` is the cvxpy module (handed in, so that no loss imports it); ``u`` is an affine
        CVXPY expression.
        """

    def cvxpy_total(self, cp: Any, u: Any, y: FloatArray, c: FloatArray) -> Any:
        """Return a CVXPY expression of ``F(u; y, c)``, a scalar.

        This is what a problem is built from. Losses that couple observations override it,
        because their weights cannot be taken out of the single losses.
        """
        return c @ self.cvxpy_value(cp, u, y)


def require(condition: bool, message: str) -> None:
    """Raise :class:`DataError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise DataError(message)


def _row_norms(v: FloatArray) -> FloatArray:
    return np.abs(v) if v.ndim == 1 else np.abs(v).sum(axis=1)


def _rowwise(c: FloatArray, v: FloatArray) -> FloatArray:
    return c * v if v.ndim == 1 else c[:, None] * v


__all__ = [
    "Conjugable",
    "Curved",
    "CvxModelled",
    "DataFit",
    "IntervalConjugable",
    "Loss",
    "Quadratic",
    "Smoothable",
    "TwiceDifferentiable",
    "require",
]
