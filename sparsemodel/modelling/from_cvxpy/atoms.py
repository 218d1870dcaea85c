"""CVXPY objectives as sums of our terms: every loss is found by the atoms it is written with."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.designs import DenseDesign, SparseDesign
from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    GammaInverseLoss,
    HingeLoss,
    HuberLoss,
    InverseGaussianLoss,
    LogisticLoss,
    QuantileLoss,
    SquaredLoss,
)
from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.foreign import value_of
from sparsemodel.modelling.expressions.objective_terms import Objective
from sparsemodel.modelling.expressions.symmetric import symmetric
from sparsemodel.modelling.from_cvxpy.affine_expressions import (
    affine_of,
    is_uniform,
    kind_of,
    number_of,
    shown,
)
from sparsemodel.modelling.from_cvxpy.exponentials import (
    Exponentials,
    Linear,
    equal,
    joined,
    term_of_rows,
)
from sparsemodel.modelling.from_cvxpy.unrecognised import concave, negated, unknown
from sparsemodel.modelling.loss_terms.custom_loss import custom_loss
from sparsemodel.modelling.loss_terms.terms import ridge
from sparsemodel.modelling.precision_matrices.terms_and_constraints import Trace, log_det

_INDEFINITE = "{} is not convex: its matrix has a negative eigenvalue."
_LARGE = 4_096
"""Order of sparse matrices from which on a dense root would be too much."""
_ROUNDING = 1e-12
"""Share of the largest eigenvalue up to which one counts as zero."""


def objective_of(expression: Any) -> Objective:
    """Return a convex CVXPY expression as a sum of our terms.

    Raises
    ------
    ModelError
        When an atom is not recognised, or not convex here; the message names it.
    """
    total = Objective(())
    for part in joined(_terms(expression, 1.0)):
        total = total + part
    return total


def _terms(expression: Any, factor: float) -> list[Any]:
    """Return the parts of ``factor * expression``, a number: ours, linear ones, constants."""
    kind = kind_of(expression)
    if expression.is_constant():
        return [factor * float(np.asarray(value_of(expression)).reshape(()))]
    if kind == "AddExpression":
        whole = _as_linear(expression, np.full(expression.shape or (1,), factor))
        return whole or [term for part in expression.args for term in _terms(part, factor)]
    if kind == "NegExpression":
        return _terms(expression.args[0], -factor)
    if kind in ("MulExpression", "multiply"):
        left, right = expression.args
        if right.is_constant():
            left, right = right, left
        if left.is_constant() and left.size == 1:
            return _terms(right, factor * number_of(left))
        if left.is_constant() and left.ndim == 1:
            return _entries(right, factor * np.asarray(value_of(left), dtype=np.float64))
    if kind == "DivExpression" and expression.args[1].is_constant():
        return _terms(expression.args[0], factor / number_of(expression.args[1]))
    if kind == "log_det":
        return [-log_det(affine_of(expression.args[0])) * -factor] if factor < 0.0 else concave()
    matrix = _inner_product(expression)
    if matrix is not None:
        return [Trace(symmetric(affine_of(matrix[1]), "trace"), matrix[0], weight=factor)]
    if kind == "Sum":
        if getattr(expression, "axis", None) is not None:
            raise unknown(expression)
        inner = expression.args[0]
        try:
            return _entries(inner, np.full(inner.shape, factor))
        except ModelError:
            whole = _as_linear(expression, np.full((1,), factor))
            if not whole:
                raise
            return whole
    if kind == "norm1":
        inside = expression.args[0]
        return [_of_rows("abs", expression, inside, np.full(inside.shape, factor))]
    if expression.is_affine():
        return [Linear(affine_of(expression), np.full(expression.shape or (1,), factor))]
    if factor < 0.0 and kind in ("log", "minimum"):
        return _entries(expression, np.full((1,), factor))
    return [_whole(expression, kind, factor)]


def _as_linear(expression: Any, weights: FloatArray) -> list[Any]:
    """Return an affine sum as one linear part, or nothing where it must be taken apart."""
    if not expression.is_affine():
        return []
    try:
        return [Linear(affine_of(expression), weights)]
    except ModelError:
        return []  # factors in front of single entries, perhaps


def _whole(expression: Any, kind: str, factor: float) -> Any:
    """Return the term of an atom that is one number."""
    if factor < 0.0:
        raise negated(kind, expression)
    if kind == "quad_over_lin" and expression.args[1].is_constant():
        return _squares(expression.args[0], factor / number_of(expression.args[1]))
    if kind in ("power", "Power"):
        base = expression.args[0]
        if _order(expression) == 2.0 and kind_of(base) == "Pnorm" and _order(base) == 2.0:
            return _squares(base.args[0], factor)
    if kind == "QuadForm" and expression.args[1].is_constant():
        return _quadratic(expression, factor)
    if expression.size == 1 and expression.args:
        return _of_rows(kind, expression, expression.args[0], np.full((1,), factor))
    raise unknown(expression)


def _entries(expression: Any, weights: FloatArray) -> list[Any]:
    """Return the parts of the sum of ``weights * expression``, entry by entry."""
    kind = kind_of(expression)
    if expression.is_constant():
        return [float(np.sum(weights * np.asarray(value_of(expression))))]
    if kind == "AddExpression":
        whole = _as_linear(expression, weights)
        return whole or [term for part in expression.args for term in _entries(part, weights)]
    if kind == "NegExpression":
        return _entries(expression.args[0], -weights)
    if kind == "DivExpression" and expression.args[1].is_constant():
        return _entries(expression.args[0], weights / np.asarray(value_of(expression.args[1])))
    if kind == "multiply" or (kind == "MulExpression" and min(a.size for a in expression.args) < 2):
        constant, other = expression.args
        if not constant.is_constant():
            constant, other = other, constant
        if constant.is_constant():
            return _entries(other, weights * np.asarray(value_of(constant)))
    if expression.is_affine():
        return [Linear(affine_of(expression), weights)]
    if kind == "log" and np.all(weights <= 0.0):  # -log(u) is y u - log(u), less y u
        u = affine_of(expression.args[0])
        y = 1.0 / _sizes(u, expression.shape or (1,))
        return [term_of_rows(GammaInverseLoss(), u, -weights, y), Linear(u, weights * y)]
    if kind in ("power", "Power") and _order(expression) == 0.5 and np.all(weights <= 0.0):
        u = affine_of(expression.args[0])  # -sqrt(u) is y u/2 - sqrt(u), less y u/2
        y = 1.0 / np.sqrt(_sizes(u, expression.shape or (1,)))
        return [term_of_rows(InverseGaussianLoss(), u, -weights, y), Linear(u, weights * y / 2.0)]
    if kind == "minimum" and np.all(weights <= 0.0):
        return [_maximum(expression, [-part for part in expression.args], -weights)]
    if np.any(weights < 0.0):
        raise negated(kind, expression)
    inside = expression.args[0] if expression.args else expression
    return [_of_rows(kind, expression, inside, weights)]


def _of_rows(kind: str, atom: Any, inside: Any, weights: FloatArray) -> Any:
    """Return ``weights * atom(inside)``, where the atom acts on every entry."""
    if np.any(weights < 0.0):
        raise negated(kind, atom)
    if kind == "abs":
        return term_of_rows(AbsoluteLoss(), _rows(inside, atom)[0], weights)
    if kind == "huber":
        u = _rows(inside, atom)[0]
        return 2.0 * term_of_rows(HuberLoss(delta=float(value_of(atom.M))), u, weights)
    if kind in ("power", "Power", "square") and _order(atom) == 2.0:
        return 2.0 * term_of_rows(SquaredLoss(), _rows(inside, atom)[0], weights)
    if kind == "exp":
        u, signs = _rows(inside, atom)
        if np.ptp(signs):
            raise ModelError("The exponents of exp(...) must not have mixed signs in front.")
        return Exponentials(u.times(float(signs.flat[0])), weights)
    if kind == "logistic":  # log(1 + exp(-y u)) with the signs -y in front of u
        u, signs = _rows(inside, atom)
        return term_of_rows(LogisticLoss(), u, weights, -signs)
    if kind == "maximum":
        return _maximum(atom, atom.args, weights)
    raise unknown(atom)


def _maximum(atom: Any, parts: list[Any], weights: FloatArray) -> Any:
    """Return ``max(0, t)`` as a hinge loss, ``max(a r, b r)`` as a quantile loss.

    And ``max(0, abs(r) - e)`` as one that small residuals do not count in.
    """
    if len(parts) != 2:
        raise unknown(atom)
    active, other = parts
    if active.is_constant():
        active, other = other, active
    if other.is_constant():
        if not np.any(value_of(other)):
            insensitive = _beyond(active)
            if insensitive is not None:
                residual, epsilon = insensitive
                band = EpsilonInsensitiveLoss(epsilon=epsilon)
                return term_of_rows(band, affine_of(residual), weights)
            u, signs = _rows(active, atom)  # max(0, t) = max(0, 1 - y v) with y = -s, v = u - s
            return term_of_rows(HingeLoss(), u.plus(-signs), weights, -signs)
        raise unknown(atom)
    (a, r), (b, q) = _multiple(active), _multiple(other)
    if (r is q or equal(affine_of(r), affine_of(q))) and min(a, b) < 0.0 < max(a, b):
        high, low = max(a, b), min(a, b)
        loss = QuantileLoss(tau=high / (high - low))
        return (high - low) * term_of_rows(loss, affine_of(r).times(-1.0), weights)
    raise unknown(atom)


def _sizes(u: Affine, shape: tuple[int, ...]) -> FloatArray:
    """Return how large the entries of ``u`` are where those of the variables are about one."""
    found = np.zeros(shape)
    if isinstance(u.offset, (float, np.ndarray)):
        found += np.abs(u.offset)
    for piece in u.pieces:
        rows: Any = 1.0
        if isinstance(piece.design, (DenseDesign, SparseDesign)):
            largest = abs(piece.design.array).max(axis=1)
            rows = np.asarray(largest.todense() if hasattr(largest, "todense") else largest)
            rows = rows.reshape(-1, *[1] * (len(shape) - 1))
        found += abs(piece.factor) * rows
    return np.asarray(np.where(np.isfinite(found) & (found > 0.0), found, 1.0))


def _beyond(expression: Any) -> tuple[Any, float] | None:
    """Return ``r`` and ``e`` of ``abs(r) - e``; None of anything else."""
    if kind_of(expression) != "AddExpression" or len(expression.args) != 2:
        return None
    size, less = sorted(expression.args, key=lambda part: part.is_constant())
    if kind_of(size) != "abs" or not less.is_constant() or not is_uniform(less):
        return None
    epsilon = -number_of(less)
    return (size.args[0], epsilon) if epsilon >= 0.0 else None


def _multiple(expression: Any) -> tuple[float, Any]:
    """Return ``(a, r)`` of ``a * r``."""
    kind = kind_of(expression)
    if kind == "NegExpression":
        factor, inside = _multiple(expression.args[0])
        return -factor, inside
    if kind in ("multiply", "MulExpression"):
        left, right = expression.args
        if left.is_constant() and (kind == "multiply" or left.size == 1) and is_uniform(left):
            factor, inside = _multiple(right)
            return number_of(left) * factor, inside
    return 1.0, expression


def _rows(expression: Any, atom: Any) -> tuple[Affine, FloatArray]:
    """Return ``u`` and signs ``s`` (1 or -1 for each entry) with ``s * u = expression``."""
    u, factor, offset = _scaled(expression)
    shape = expression.shape or (1,)
    size = np.abs(factor)
    if not np.all(size == size.flat[0]) or not size.flat[0]:
        raise ModelError(
            f"The factors inside {kind_of(atom)}(...) are understood as labels, which are -1 and "
            "1; put other factors into the data."
        )
    signs = np.broadcast_to(np.sign(factor), shape)
    u = u.times(float(size.flat[0]))
    return (u.plus(signs * offset) if np.any(offset) else u), signs


def _scaled(expression: Any) -> tuple[Affine, FloatArray, FloatArray]:
    """Return ``u, factor, offset`` with ``factor * u + offset = expression``, entry by entry."""
    kind = kind_of(expression)
    if kind == "NegExpression":
        u, factor, offset = _scaled(expression.args[0])
        return u, -factor, -offset
    if kind == "multiply" and any(a.is_constant() for a in expression.args):
        constant, other = expression.args
        if not constant.is_constant():
            constant, other = other, constant
        values = np.asarray(value_of(constant), dtype=np.float64)
        u, factor, offset = _scaled(other)
        return u, values * factor, values * offset
    if kind == "AddExpression":
        varying = [part for part in expression.args if not part.is_constant()]
        if len(varying) == 1 and kind_of(varying[0]) in ("NegExpression", "multiply"):
            u, factor, offset = _scaled(varying[0])
            fixed = sum(np.asarray(value_of(p)) for p in expression.args if p.is_constant())
            return u, factor, offset + fixed
    return affine_of(expression), np.ones(1), np.zeros(1)


def _squares(inside: Any, scale: float) -> Any:
    """Return ``scale * sum_squares(inside)``: a ridge for a bare variable, else a loss."""
    u = affine_of(inside)
    piece = u.pieces[0]
    if len(u.pieces) == 1 and piece.bare and u.offset is None and piece.shape:
        return ridge(Affine((piece,)), 2.0 * scale)
    return 2.0 * term_of_rows(SquaredLoss(), u, np.full(u.value_shape() or (1,), scale))


def _quadratic(expression: Any, factor: float) -> Any:
    """Return ``factor * u' P u`` as ``factor * ||R u||^2`` with ``R' R = P`` up to rounding.

    A large sparse matrix stays as it is, without a root: its conjugate is then unknown.
    """
    matrix, u = value_of(expression.args[1]), affine_of(expression.args[0])
    if hasattr(matrix, "tocsr") and matrix.shape[0] > _LARGE:
        if not expression.is_convex():
            raise ModelError(_INDEFINITE.format(shown(expression)))
        return custom_loss(
            lambda u: factor * float(u @ (matrix @ u)),
            lambda u: 2.0 * factor * (matrix @ u),
            lambda u, v: 2.0 * factor * (matrix @ v),
            of=u,
            name="quad_form",
            smoothness=2.0 * factor * float(abs(matrix).sum(axis=0).max()),
            lower_bound=0.0,
        )
    root = root_of(matrix)
    if root is None:
        raise ModelError(_INDEFINITE.format(shown(expression)))
    return 2.0 * term_of_rows(SquaredLoss(), u.__rmatmul__(root), np.full(len(root), factor))


def root_of(matrix: Any) -> FloatArray | None:
    """Return ``R`` with ``R' R`` the symmetric part of a matrix; None where it is indefinite.

    Eigenvalues that rounding may have made negative count as zero.
    """
    whole = np.asarray(matrix.toarray() if hasattr(matrix, "tocsr") else matrix, dtype=np.float64)
    whole = 0.5 * (whole + whole.T)
    try:
        return np.asarray(np.linalg.cholesky(whole).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        ends, vectors = np.linalg.eigh(whole)
    noise = _ROUNDING * float(np.abs(ends).max(initial=0.0))
    if ends.min(initial=0.0) < -noise:
        return None
    kept = ends > noise
    if not kept.any():
        return np.zeros((1, len(ends)))
    return np.asarray(np.sqrt(ends[kept])[:, None] * vectors[:, kept].T, dtype=np.float64)


def _inner_product(expression: Any) -> tuple[Any, Any] | None:
    """Return ``S`` and ``Omega`` of ``trace(S @ Omega)``, however CVXPY writes it."""
    kind = kind_of(expression)
    if kind in ("trace", "Trace"):
        inside = expression.args[0]
        if kind_of(inside) == "Variable":
            return np.eye(inside.shape[0]), inside
        if kind_of(inside) != "MulExpression":
            return None
        pair = inside.args
    elif kind == "Sum" and kind_of(expression.args[0]) == "multiply":
        pair = expression.args[0].args
    else:
        return None
    for constant, other in (pair, pair[::-1]):
        bare = other.args[0] if kind_of(other) == "transpose" else other
        square = kind_of(bare) == "Variable" and bare.ndim == 2 and bare.is_symmetric()
        if constant.is_constant() and square:
            matrix = value_of(constant)
            return (matrix.toarray() if hasattr(matrix, "toarray") else matrix), bare
    return None


def _order(atom: Any) -> float:
    """Return the ``p`` of a power or a norm."""
    order = getattr(atom, "p", 2.0)
    return float(getattr(order, "value", order))
