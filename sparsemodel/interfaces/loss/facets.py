"""What may be known of a loss beside its value and its slope: facets, which a class inherits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from sparsemodel.interfaces.loss.base import Loss, row_norms
from sparsemodel.interfaces.numeric import FloatArray, rowwise


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

    def hessian_shares(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray | None:
        """Return ``d``, of the shape ``(n, m)`` of ``u``, or None where no ``d`` says all.

        The Hessian of observation ``i`` is ``diag(d[i]) - outer(d[i], d[i]) / d[i].sum()``, as of
        shares of a whole.
        """
        return None


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
        return rowwise(c * self.second_derivative(u, y), v)


class Quadratic(Curved):
    """Facet: the second derivative is the same everywhere, so one Newton step is exact."""


class SquaredDistance(Quadratic):
    r"""Facet: :math:`\ell(u; y) = \tfrac{s}{2} (u - t)^2`, half a squared distance.

    :math:`s > 0` is :attr:`steepness` and :math:`t` is :meth:`centre`, and the loss is *exactly*
    this for the numbers that they return, up to the rounding of :meth:`Loss.value`. Proofs that
    work on the products of the data, and reductions to few observations, ask for it.
    """

    steepness: ClassVar[float] = 1.0

    def centre(self, y: FloatArray) -> FloatArray:
        """Return ``t``, in the shape of the predictions; the target itself by default."""
        return y


class Affine(Quadratic):
    r"""Facet: :math:`\ell(u; y) = b u`, linear, for exactly the ``b`` returned."""

    @abstractmethod
    def slope(self, y: FloatArray) -> FloatArray:
        """Return ``b``, in the shape of the predictions."""


class OfDifference:
    r"""Facet: :math:`\ell(u; y) = \rho(u - y)`, so predictions and target may move together."""

    even: ClassVar[bool] = False
    r"""Whether :math:`\rho(-r) = \rho(r)`: a residual may then have either sign."""


class OfResidual(OfDifference):
    r"""Facet: :math:`\ell(u; y) = \rho(u - y)` with :math:`\rho(0) = 0`, positive elsewhere."""


class Conjugable(ABC):
    r"""Facet: the convex conjugate :math:`\ell^*(a; y) = \sup_u a u - \ell(u; y)` is known.

    This is what dual bounds are made of. It must hold that
    ``value(u, y) + conjugate(a, y) == a * u`` at ``a = derivative(u, y)``.
    """

    @abstractmethod
    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return the conjugates of the individual observations, shape ``(n,)``; ``inf`` outside."""

    @abstractmethod
    def project_dual(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return the nearest point of the conjugate's domain, observation by observation."""

    def conjugate_magnitude(self, a: FloatArray, y: FloatArray, value: FloatArray) -> FloatArray:
        """Return what rounding errors of :meth:`conjugate` are small relative to, shape ``(n,)``.

        ``value`` is what :meth:`conjugate` returned, see :meth:`Loss.value_magnitude`.
        """
        size, target = row_norms(a), row_norms(y)
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


class SimplexConjugable(Conjugable):
    r"""Facet of a loss of classes: the conjugate is that of probabilities in the unit simplex.

    With :math:`s = a + e_y`, for a class ``y`` in ``0 .. m-1``, the domain of the conjugate is
    :math:`s_j \ge 0, \sum_j s_j = 1`, and there
    :math:`\ell^*(a; y) = \sum_j \varphi(s_j)` with one convex function :math:`\varphi`.
    """

    @abstractmethod
    def chance_conjugate(self, s: FloatArray) -> FloatArray:
        r"""Return :math:`\varphi(s)`, elementwise, for ``s`` in ``[0, 1]``."""

    @abstractmethod
    def link(self, s: FloatArray) -> FloatArray:
        """Return predictions whose derivative is ``s - e_y``, for positive rows of sum one."""

    @staticmethod
    def chances(a: FloatArray, y: FloatArray) -> FloatArray:
        """Return ``a + e_y``."""
        s = a.copy()
        s[np.arange(a.shape[0]), y.astype(np.intp)] += 1.0
        return s


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
        """Return the smooth approximation, a loss with ``curvature(y)[1] == 1 / mu``."""

    @abstractmethod
    def smoothing_error(self, mu: float) -> float:
        """Return ``bound(mu)``, the largest difference for one observation of weight one."""


class Piecewise(ABC):
    r"""Facet of a loss that is a sum of pieces, each linear, parabolic and linear again,

    .. math:: \ell(u; y) = \sum_j \max_{l_j \le a \le h_j}
              a (u - t_j) - \tfrac{\mu}{2} a^2 ,

    with slopes :math:`l_j \le 0 \le h_j` far from the kink :math:`t_j` and a parabola of curvature
    :math:`1 / \mu` in its place, where :attr:`softness` :math:`\mu` is not zero. Minimisers on a
    support are then found in a dozen or two steps, at any scale.
    """

    @property
    def softness(self) -> float:
        """The softness, the same for all pieces."""
        return 0.0

    @abstractmethod
    def pieces(self, y: FloatArray) -> Sequence[tuple[FloatArray, FloatArray, FloatArray]]:
        """Return kinks and slopes ``(t, l, h)`` of every piece, each of shape ``(n,)``."""


class Likelihood:
    r"""Facet: the loss is a negative log-likelihood, up to terms that do not depend on ``u``.

    Information criteria read it. Observation ``i`` has a precision :math:`w_i` and a number
    :math:`m_i` of copies, see :mod:`sparsemodel.selection.weights`. With the mean loss
    :math:`\bar F = \sum_i m_i w_i \ell_i / \sum_i m_i w_i`, minus twice the logarithm of the
    likelihood is

    * :math:`2 \sum_i m_i w_i \bar F` where the dispersion is known, which is the default;
    * :math:`\tfrac{2}{q} N \log \bar F` where the scale of the residuals is estimated and the loss
      is homogeneous of degree ``q`` in them (:attr:`degree`): :math:`q = 2` is the normal
      distribution, :math:`q = 1` that of Laplace. ``N`` is :meth:`sample_size`.

    Both without constants, so that only differences between models of the same data mean
    something. Other estimated dispersions override :meth:`minus_twice_log` and :attr:`scales`.
    """

    degree: ClassVar[float | None] = None

    @property
    def scales(self) -> int:
        """How many dispersions are estimated: one or none."""
        return int(self.degree is not None)

    def minus_twice_log(
        self, mean: float, y: FloatArray, precision: FloatArray, copies: FloatArray
    ) -> float:
        r"""Return :math:`-2 \log L` at a model of mean loss ``mean``, dispersion estimated."""
        if self.degree is None:
            return 2.0 * float(precision @ copies) * mean
        return 2.0 / self.degree * self.sample_size(y, copies) * math.log(max(mean, 1e-300))

    def sample_size(self, y: FloatArray, copies: FloatArray) -> float:
        r"""Return the ``n`` of :math:`\log n` in penalties: observations, or events."""
        return float(copies.sum())

    def dispersion(self, u: FloatArray, y: FloatArray, c: FloatArray, degrees: float) -> float:
        r"""Return :math:`\phi` in :math:`\phi H^{-1}`, the covariance of the estimates.

        ``H`` is the Hessian of :math:`F(.; y, c)` at the estimates, with :math:`c_i = m_i w_i`, and
        ``degrees`` are :math:`n - d`, of ``d`` estimates. One where the dispersion is known;
        :math:`2 F / (n - d)` for losses of degree two, which is the unbiased estimate of the
        variance of an observation of precision one.
        """
        if self.degree != 2:
            return 1.0
        return 2.0 * float(self.total(u, y, c)) / degrees  # type: ignore[attr-defined]


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
