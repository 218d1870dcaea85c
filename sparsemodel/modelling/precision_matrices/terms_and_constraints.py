"""The language of precision matrices: ``-log_det(Omega) + trace(S @ Omega)``, bounds, edges."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.designs import DenseDesign, column_names
from sparsemodel.interfaces import DataTypeError, FloatArray, ModelError
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.foreign import taken
from sparsemodel.modelling.expressions.objective_terms import FormTerm, Objective
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symbolic import Symbolic
from sparsemodel.modelling.expressions.symmetric import symmetric
from sparsemodel.modelling.precision_matrices.covariance import check_covariance, covariance_of_data


@final
@dataclass(frozen=True, eq=False, repr=False)
class NegativeLogDet(FormTerm):
    """``-weight * log det(Omega)``."""

    expression: Affine
    weight: float = 1.0

    @property
    def value(self) -> float | None:
        """Return the term at the matrix's value, infinite where this is not positive definite."""
        here = self.expression.value
        if here is None:
            return None
        sign, logarithm = np.linalg.slogdet(here)
        return -self.weight * float(logarithm) if sign > 0.0 else math.inf

    def scaled(self, factor: float | Quantity) -> NegativeLogDet:
        """Return the term times ``factor``."""
        return replace(self, weight=_number(factor) * self.weight)

    def __repr__(self) -> str:
        return f"-{_factor(self.weight)}log_det({self.expression})"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Trace(FormTerm):
    """``weight * trace(S @ Omega)``."""

    expression: Affine
    """The variable alone."""
    matrix: FloatArray
    """``S``, as the user gave it."""
    names: tuple[str, ...] | None = None
    samples: int | None = None
    data: FloatArray | None = None
    """The observations behind ``S``, where they were given."""
    shrinkage: float = 0.0
    """How far ``S`` is drawn towards its diagonal."""
    weight: float = 1.0

    @property
    def value(self) -> float | None:
        """Return the term at the matrix's value."""
        here = self.expression.value
        if here is None:
            return None
        S = np.asarray(self.matrix, dtype=np.float64)
        drawn = (1.0 - self.shrinkage) * S + self.shrinkage * np.diag(np.diag(S))
        return self.weight * float(np.sum(drawn * here))

    def scaled(self, factor: float | Quantity) -> Trace:
        """Return the term times ``factor``."""
        return replace(self, weight=_number(factor) * self.weight)

    def __repr__(self) -> str:
        return f"{_factor(self.weight)}trace(S @ {self.expression})"


@final
class log_det(Symbolic):
    """The logarithm of the determinant of a symmetric matrix variable; minimise its negative.

    Parameters
    ----------
    matrix
        ``sm.Variable((p, p), symmetric=True)``; any other argument raises a ``ModelError``.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> -sm.log_det(sm.Variable((3, 3), symmetric=True, name="Omega"))
    -log_det(Omega)
    """

    _instead = "After solving, np.linalg.slogdet(Omega.value) has its value."

    @rejects_unknown_arguments
    def __init__(self, matrix: Any) -> None:
        self.expression: Affine = symmetric(matrix, "log_det")

    def __neg__(self) -> NegativeLogDet:
        return NegativeLogDet(self.expression)

    def __mul__(self, factor: Any) -> NegativeLogDet:
        number = real_number(factor, where="The factor of log_det")
        if number >= 0.0:
            self._concave()
        return NegativeLogDet(self.expression, -number)

    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Objective:
        out: Objective = (-self).as_terms() + other
        return out

    def _concave(self, *_: Any) -> NoReturn:
        raise ModelError("log_det is concave; it can only be minimised with a minus: -log_det(X).")

    __add__ = _concave
    __radd__ = _concave
    __sub__ = _concave

    def __repr__(self) -> str:
        return f"log_det({self.expression})"


@rejects_unknown_arguments
def trace(product: Any) -> Trace:
    """Return ``trace(S @ Omega)`` for a symmetric matrix ``S`` and a symmetric variable.

    Parameters
    ----------
    product
        ``S @ Omega``, with ``S`` of shape ``(p, p)``; ``Omega`` alone is its trace.

    Returns
    -------
    Trace
        A linear term of the goal, to be added to ``-sm.log_det(Omega)``.

    Raises
    ------
    ModelError
        When ``Omega`` is not a symmetric variable.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> Omega, S = sm.Variable((2, 2), symmetric=True), np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> goal = sm.minimize(-sm.log_det(Omega) + sm.trace(S @ Omega))
    >>> solution = sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 0).solve()
    >>> np.diag(Omega.value).round(6)
    array([0.5 , 0.25])
    """
    if not isinstance(product, AffineLike):
        raise ModelError(
            "trace takes a product `S @ Omega` of a matrix and a symmetric variable, "
            f"not {type(product).__name__}."
        )
    affine = product.as_affine()
    piece = affine.pieces[0]
    if len(affine.pieces) != 1 or affine.offset is not None or piece.rows is not None:
        raise ModelError(f"trace takes a product `S @ Omega`, not {affine}.")
    bare = symmetric(piece.variable, "trace")
    if piece.right is not None:
        raise ModelError(f"trace takes a product `S @ Omega` with S first, not {affine}.")
    if piece.design is None:
        matrix = np.eye(piece.variable.shape[0])
    elif isinstance(piece.design, DenseDesign):
        matrix = piece.design.array
    else:
        raise DataTypeError("The S of trace(S @ Omega) must be a dense matrix or a DataFrame.")
    return Trace(bare, matrix, piece.variable.names, weight=piece.factor)


@rejects_unknown_arguments
def gaussian_nll(
    matrix: Any,
    covariance: Any = None,
    *,
    data: Any = None,
    samples: Any = None,
    shrinkage: float = 0.0,
) -> Objective:
    r"""Return :math:`-\log\det\Omega + \mathrm{tr}(S\Omega)` for a covariance matrix ``S``.

    Twice the negative log-likelihood of Gaussian observations, per observation and up to a
    constant.

    Parameters
    ----------
    matrix
        ``Omega``: ``sm.Variable((p, p), symmetric=True)``.
    covariance
        ``S``: the empirical covariance (or correlation) matrix, symmetric positive semidefinite;
        a DataFrame names the variables.
    data
        Instead of ``covariance``: observations in rows, shape ``(n, p)``; ``S`` is their
        covariance, with divisor ``n``.
    samples
        The number of observations behind ``covariance``. Information criteria need it.
    shrinkage
        :math:`\rho` in [0, 1): :math:`(1 - \rho) S + \rho\,\mathrm{diag}(S)` replaces ``S`` in
        the objective. With few samples this reduces overfitting. Cross-validation and information
        criteria use ``S`` itself.

    Returns
    -------
    Objective
        The objective of a sparse precision matrix.

    Raises
    ------
    ModelError
        When ``matrix`` is not a symmetric variable, or not exactly one of ``covariance`` and
        ``data`` is given.
    DataError
        When ``covariance`` is not symmetric positive semidefinite, or an entry is not finite.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> X = np.random.default_rng(0).standard_normal((200, 4)).cumsum(axis=1)
    >>> Omega = sm.Variable((4, 4), symmetric=True)
    >>> goal = sm.minimize(sm.gaussian_nll(Omega, data=X))
    >>> problem = sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 2 * 3)
    >>> problem.solve().support.tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    bare = symmetric(matrix, "gaussian_nll")
    if any(isinstance(taken(given), Quantity) for given in (covariance, data)):
        raise ModelError(
            "gaussian_nll takes numbers for S and data, not a parameter: declare a problem for "
            "each, or write -cp.log_det(Omega) + cp.trace(S @ Omega) in cp.Minimize(...)."
        )
    shrinkage = real_number(shrinkage, where="shrinkage", minimum=0.0)
    if shrinkage >= 1.0:
        raise ModelError(f"shrinkage must be below 1, where no edge is left, not {shrinkage:g}.")
    if (covariance is None) == (data is None):
        raise ModelError("gaussian_nll takes either a covariance matrix S or data=, one of them.")
    if data is not None:
        if samples is not None:
            raise ModelError("samples= goes with a covariance matrix; data= has its own number.")
        found = covariance_of_data(data, where="The data of gaussian_nll")
        return NegativeLogDet(bare) + Trace(
            bare, found.matrix, found.names, found.samples, found.data, shrinkage
        )
    names = column_names(covariance)
    S = check_covariance(covariance, where="The S of gaussian_nll")
    return NegativeLogDet(bare) + Trace(bare, S, names, _samples(samples), shrinkage=shrinkage)


def _samples(number: Any) -> int | None:
    if number is None:
        return None
    value = real_number(number, where="samples")
    if value != np.floor(value) or value < 2:
        raise ModelError(f"samples must be a whole number of at least 2, not {number!r}.")
    return int(value)


@final
@dataclass(frozen=True, slots=True, eq=False)
class EdgePattern(Constraint):
    """Edges that must be there (and are not counted), or must not be there."""

    expression: Affine
    pairs: tuple[tuple[int, int], ...]
    required: bool

    def __repr__(self) -> str:
        kind = "required" if self.required else "forbidden"
        return f"{kind}_edges({self.expression}, {len(self.pairs)} pairs)"


@rejects_unknown_arguments
def required_edges(matrix: Any, pairs: Iterable[tuple[int, int]]) -> EdgePattern:
    """Return the constraint that these pairs are free entries, not counted by ``card``.

    Parameters
    ----------
    matrix
        ``Omega``, a symmetric variable.
    pairs
        Pairs ``(i, j)`` of its rows, in either order.

    Returns
    -------
    EdgePattern
        A constraint for a :class:`Problem`.

    Raises
    ------
    ModelError
        When ``matrix`` is not a symmetric variable, or a pair is not two different rows of it.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> X = np.random.default_rng(0).standard_normal((200, 4)).cumsum(axis=1)
    >>> Omega = sm.Variable((4, 4), symmetric=True)
    >>> goal = sm.minimize(sm.gaussian_nll(Omega, data=X))
    >>> known = sm.required_edges(Omega, [(0, 1)])
    >>> solution = sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 4, known).solve()
    >>> solution.support.tolist()
    [[1, 2], [2, 3]]
    """
    return _pattern(matrix, pairs, required=True)


@rejects_unknown_arguments
def forbidden_edges(matrix: Any, pairs: Iterable[tuple[int, int]]) -> EdgePattern:
    """Return the constraint that the entries at these pairs are zero.

    Parameters
    ----------
    matrix, pairs
        As for :func:`required_edges`.

    Returns
    -------
    EdgePattern
        A constraint for a :class:`Problem`.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> Omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    >>> sm.forbidden_edges(Omega, [(0, 1), (2, 3)])
    forbidden_edges(Omega, 2 pairs)
    """
    return _pattern(matrix, pairs, required=False)


def _pattern(matrix: Any, pairs: Iterable[tuple[int, int]], *, required: bool) -> EdgePattern:
    what = "required_edges" if required else "forbidden_edges"
    affine = symmetric(matrix, what)
    p = affine.pieces[0].variable.shape[0]
    checked = []
    try:
        listed = list(pairs)
    except TypeError as error:
        raise ModelError(f"{what} takes pairs of indices (i, j), not {pairs!r}.") from error
    for pair in listed:
        try:
            i, j = (operator.index(index) for index in pair)
        except (TypeError, ValueError) as error:
            raise ModelError(f"{what} takes pairs of indices (i, j), not {pair!r}.") from error
        if not (0 <= i < p and 0 <= j < p) or i == j:
            raise ModelError(f"{what}: ({i}, {j}) is not a pair of two of the {p} variables.")
        checked.append((min(i, j), max(i, j)))
    return EdgePattern(affine, tuple(sorted(set(checked))), required)


def _number(factor: float | Quantity) -> float:
    if isinstance(factor, Quantity):
        raise ModelError("Parameters cannot scale the terms of a precision-matrix problem.")
    return factor


def _factor(weight: float) -> str:
    return "" if weight == 1.0 else f"{weight:g} * "
