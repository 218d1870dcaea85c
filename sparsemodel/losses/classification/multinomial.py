r"""The multinomial (softmax) loss of a matrix variable."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    CvxModelled,
    DataError,
    DataTypeError,
    FloatArray,
    Likelihood,
    Loss,
    SimplexConjugable,
    TargetKind,
    TwiceDifferentiable,
)
from sparsemodel.losses.parts import entropy, first_bad, vector

_SUM_TOLERANCE = 8.0 * float(np.finfo(np.float64).eps)
"""Rounding allowed per column when asking whether a row sums to one."""

_MODERATE = 50.0
"""Predictions up to this size are exponentiated as they are, at the price of 1e-14 in the value."""


@final
@dataclass(frozen=True, slots=True)
class MultinomialLoss(TwiceDifferentiable, SimplexConjugable, Likelihood, CvxModelled, Loss):
    r"""The multinomial (softmax) loss :math:`\ell(u; y) = \log \sum_j e^{u_j} - u_y`.

    The variable is a matrix with one column per class, ``W = sm.Variable((p, m))``, and an
    intercept a row of it, ``c = sm.Variable(m)``; ``card(W, axis=1) <= k`` counts rows (features).
    A prediction is a row ``u`` of ``A @ W + c``, the target a class ``y`` in ``0 .. m-1``; the loss
    is the negative log-likelihood in nats. Adding a constant to a row changes nothing, so that
    without ridge the minimiser is not unique.

    * Conjugate, with :math:`s = a + e_y`: :math:`\ell^*(a; y) = \sum_j s_j \log s_j` for ``s`` in
      the unit simplex (the sum is checked up to rounding).
    * 1/2-smooth, not strongly convex.
    * The Hessian of a row is :math:`\mathrm{diag}(p) - p p^T` with ``p`` the softmax; a product
      costs O(n m). The projection on the domain of the conjugate costs O(n m log m).

    Parameters
    ----------
    classes
        ``m``, where some classes may be absent from the target; None counts those that are there.

    References
    ----------
    Böhning, *Multinomial logistic regression algorithm*, Ann. Inst. Statist. Math. 44 (1992).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((90, 6))
    >>> kinds = np.argmax(A[:, :3] + 0.1 * rng.standard_normal((90, 3)), axis=1)
    >>> W, c = sm.Variable((6, 3), name="W"), sm.Variable(3, name="c")
    >>> goal = sm.minimize(sm.multinomial_loss(A @ W + c, kinds) + sm.ridge(W, 0.01))
    >>> sm.Problem(goal, sm.card(W, axis=1) <= 3).solve().support
    array([0, 1, 2])
    """

    name: ClassVar[str] = "multinomial_loss"
    strictly_convex: ClassVar[bool] = True
    target_kind: ClassVar[TargetKind] = TargetKind.CLASSES
    classes: int | None = None

    def __post_init__(self) -> None:
        if self.classes is None:
            return
        if isinstance(self.classes, bool) or not isinstance(self.classes, Integral):
            raise DataTypeError(
                f"{self.name}: classes must be a whole number or None, "
                f"got {type(self.classes).__name__}."
            )
        if self.classes < 2:
            raise DataError(f"{self.name}: classes must be at least 2, got {self.classes}.")
        object.__setattr__(self, "classes", int(self.classes))

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        chosen = u[np.arange(u.shape[0]), y.astype(np.intp)]
        if _is_moderate(u):
            values: FloatArray = np.log(np.exp(u) @ np.ones(u.shape[1]))
            values -= chosen
        else:
            largest = u.max(axis=1)
            values = np.log(np.exp(u - largest[:, None]) @ np.ones(u.shape[1]))
            values += largest - chosen
        return values

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        slopes = _softmax(u)
        slopes[np.arange(u.shape[0]), y.astype(np.intp)] -= 1.0
        return slopes

    def hessian_product(
        self, u: FloatArray, y: FloatArray, c: FloatArray, v: FloatArray
    ) -> FloatArray:
        p = _softmax(u)
        product: FloatArray = v - np.einsum("ij,ij->i", p, v)[:, None]
        product *= p
        product *= c[:, None]
        return product

    def hessian_shares(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        return c[:, None] * _softmax(u)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.5

    def mean(self, u: FloatArray) -> FloatArray:
        """Return the probabilities of the classes, the softmax of ``u``."""
        return _softmax(u)

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s = self.chances(a, y)
        in_plane = np.abs(s.sum(axis=1) - 1.0) <= _SUM_TOLERANCE * a.shape[1]
        return np.where(in_plane, -entropy(s).sum(axis=1), np.inf)  # entropy is -inf below zero

    def chance_conjugate(self, s: FloatArray) -> FloatArray:
        return np.negative(entropy(s))

    def link(self, s: FloatArray) -> FloatArray:
        return np.log(s)

    def project_dual(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s = _project_on_simplex(self.chances(a, y))
        s[np.arange(a.shape[0]), y.astype(np.intp)] -= 1.0
        return s

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        if y.ndim == 2 and y.shape[1] > 1:
            raise DataError(
                f"{where}: {self.name} needs the class of each observation, and got an array of "
                f"shape {y.shape}; of a column for each class np.argmax(Y, axis=1) makes classes."
            )
        vector(y, where, self.name)
        bad = (y < 0.0) | (y != np.floor(y))
        if np.any(bad):
            raise DataError(
                f"{where}: {self.name} needs classes coded 0, 1, ..., m-1, found "
                f"{first_bad(bad, y)}; np.unique(y, return_inverse=True)[1] recodes any labels."
            )
        codes = np.unique(y)
        if self.classes is not None:
            if codes.size and codes[-1] >= self.classes:
                raise DataError(
                    f"{where}: {self.name} was made for {self.classes} classes, coded 0 to "
                    f"{self.classes - 1}, found {first_bad(y >= self.classes, y)}."
                )
        elif codes.size < 2:
            raise DataError(
                f"{where}: {self.name} needs at least two classes, found {codes.size}; "
                "if others exist that do not occur here, say how many with classes=."
            )
        elif codes[-1] != codes.size - 1:
            absent = int(np.flatnonzero(codes != np.arange(codes.size))[0])
            raise DataError(
                f"{where}: {self.name} found classes up to {codes[-1]:g}, but class {absent} "
                "never occurs; recode with np.unique(y, return_inverse=True)[1], or say how "
                "many classes there are with classes=."
            )
        return y

    def outputs(self, y: FloatArray) -> int:
        return int(y.max()) + 1 if self.classes is None else self.classes

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        chosen = self.chances(np.zeros(u.shape), y)
        return cp.log_sum_exp(u, axis=1) - cp.sum(cp.multiply(chosen, u), axis=1)


def _is_moderate(u: FloatArray) -> bool:
    """Return whether exponentials of ``u`` and their sums stay well inside floating point.

    The largest entry of every row need not be subtracted then, which costs more than all else.
    """
    return bool(u.max(initial=0.0) <= _MODERATE and u.min(initial=0.0) >= -_MODERATE)


def _softmax(u: FloatArray) -> FloatArray:
    p: FloatArray = np.exp(u if _is_moderate(u) else u - u.max(axis=1, keepdims=True))
    p /= (p @ np.ones(u.shape[1]))[:, None]
    return p


def _project_on_simplex(s: FloatArray) -> FloatArray:
    """Return the nearest points of the unit simplex, row by row (sort and threshold)."""
    s = s - s.max(axis=1, keepdims=True)  # changes nothing, and keeps the digits of large rows
    descending = -np.sort(-s, axis=1)
    thresholds = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1.0, s.shape[1] + 1.0)
    kept = np.count_nonzero(descending > thresholds, axis=1)
    p: FloatArray = np.maximum(s - thresholds[np.arange(s.shape[0]), kept - 1][:, None], 0.0)
    p /= p.sum(axis=1, keepdims=True)  # rounding only: the sum is one
    return p
