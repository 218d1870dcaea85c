"""The objective of a declared problem at given values, term by term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import Design
from sparsemodel.losses import (
    CoxLoss,
    GammaLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonLoss,
)
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import Counted, Requirement, Semicontinuous
from sparsemodel.modelling.expressions.objective_terms import (
    Budget,
    LossTerm,
    Objective,
    Price,
    Ridge,
)
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.precision_matrices.terms_and_constraints import NegativeLogDet, Trace
from tests.referee.expressions import (
    EPS,
    EPS64,
    SMALLEST,
    Sum,
    Unjudged,
    Values,
    entries_of,
    evaluate,
    present,
)
from tests.referee.textbook_losses import (
    COUPLED,
    LABELLED,
    Long,
    is_known,
    long,
    moved,
    of_weights,
    total,
)

ROOM = 16.0
"""What is allowed to the library over an honest estimate of the rounding in float64."""

_LOGARITHMIC = (
    *LABELLED,
    CoxLoss,
    MultinomialLoss,
    PoissonLoss,
    NegativeBinomialLoss,
    GammaLoss,
)
"""Losses whose values come with the rounding of numbers of size one."""


@final
@dataclass(frozen=True, slots=True)
class Worth:
    """The objective at a point."""

    value: Any
    """In extended precision."""
    error: Any
    """The exact objective is at most so far away."""
    rounding: float
    """What a careful evaluation in float64 may be off by."""
    single: bool
    """Whether some data are in single precision."""


def objective_at(objective: Objective, variables: tuple[Variable, ...], values: Values) -> Worth:
    """Return the objective as it was declared, at ``values``.

    Raises
    ------
    Unjudged
        For a term that is not one of the language's.
    """
    parts = [long(objective.constant)]
    error, rounding, single = long(0.0), 0.0, False
    with np.errstate(all="ignore"):
        for term in objective.terms:
            if isinstance(term, LossTerm):
                one = _loss(term, variables, values)
            elif isinstance(term, Ridge):
                one = _plain(_ridge(term, variables, values))
            elif isinstance(term, Price):
                one = _plain(paid(term, values))
            elif isinstance(term, NegativeLogDet):
                one = _log_det(term, values)
            elif isinstance(term, Trace):
                one = _trace(term, values)
            else:
                raise Unjudged(f"no formula for the term {type(term).__name__}")
            parts.append(one.value)
            error, rounding = error + one.error, rounding + one.rounding
            single = single or one.single
        value = np.sum(long(parts))
        size = np.sum(np.abs(long(parts)))
        rounding += float(size) * EPS64 * 16
    return Worth(value, error + size * EPS * 16, rounding, single)


def _plain(value: Any) -> Worth:
    return Worth(value, np.abs(value) * EPS * 64, float(np.abs(value)) * EPS64 * 64, False)


# ---- losses ----------------------------------------------------------------------------------


def the_vector(variables: tuple[Variable, ...]) -> Variable:
    """Return the one vector or matrix variable that a short form means."""
    vectors = [v for v in variables if v.shape]
    if len(vectors) != 1:
        raise Unjudged("a short form with several vector variables")
    return vectors[0]


def prediction_of(term: LossTerm, variables: tuple[Variable, ...]) -> Affine:
    """Return the prediction of a loss, its short forms written out."""
    prediction = term.prediction
    if prediction is None:
        return Affine((Piece(the_vector(variables), None, None),))
    if isinstance(prediction, Design):
        return Affine((Piece(the_vector(variables), None, prediction),))
    return prediction


def data_of(term: LossTerm, shape: tuple[int, ...]) -> tuple[Long, Long]:
    """Return the target and what each observation's loss is multiplied by, the mean included."""
    y = long(np.zeros(shape)) if term.target is None else long(present(term.target))
    if isinstance(term.loss, LABELLED):
        y = long(np.where(y == 1, 1, -1))
    if y.ndim == 2 and y.shape[1] == 1 and len(shape) == 1:
        y = y[:, 0]
    c = np.ones(shape[0]) if term.weights is None else present(term.weights)
    factors = long(c) * long(present(term.scale))
    return y, factors / shape[0] if term.reduction == "mean" else factors


def constant_of(term: LossTerm, y: Long) -> Any:
    """Return what the weights add to a loss, whatever its predictions."""
    weights = long(np.ones(len(y)) if term.weights is None else present(term.weights))
    share = long(present(term.scale)) / (len(y) if term.reduction == "mean" else 1)
    return share * of_weights(term.loss, y, weights)


def _loss(term: LossTerm, variables: tuple[Variable, ...], values: Values) -> Worth:
    u = evaluate(prediction_of(term, variables), values)
    y, c = data_of(term, u.value.shape)
    value = total(term.loss, u.value, y, c) + constant_of(term, y)
    weight = np.sum(np.abs(c))
    targets = np.abs(y) if y.shape == u.value.shape else long(0.0)
    if isinstance(term.loss, COUPLED):  # differences of logarithms
        error = 2 * np.sum(c) * u.reach.max(initial=0.0) + weight * EPS * 64
    else:
        error = _moved(term, u, y, c, u.reach + targets * EPS)
    error = error + np.abs(value) * EPS * (len(y) + 64)
    if not is_known(term.loss):  # the user's own function is evaluated in float64
        error = error + np.abs(value) * EPS64 * 64 + _moved(term, u, y, c, u.size * EPS64)
    doubles = (u.size + targets) * EPS64 * 4 + 4 * SMALLEST
    size = np.abs(value) + (weight if isinstance(term.loss, _LOGARITHMIC) else 0)
    rounding = _moved(term, u, y, c, doubles) + size * EPS64 * 64 + len(y) * SMALLEST
    return Worth(value, error, float(rounding), u.single)


def _moved(term: LossTerm, u: Sum, y: Long, c: Long, reach: Long) -> Any:
    """Return how far the loss moves when predictions move by ``reach``."""
    if isinstance(term.loss, COUPLED):
        return 2 * np.sum(c) * reach.max(initial=0.0)
    return 2 * moved(term.loss, u.value, y, c, reach)


def ridge_piece(term: Ridge, variables: tuple[Variable, ...]) -> Piece:
    """Return what a ridge is about, its short form written out."""
    if term.expression is None:
        return Piece(the_vector(variables), None, None)
    return term.expression.pieces[0]


def _ridge(term: Ridge, variables: tuple[Variable, ...], values: Values) -> Any:
    piece = ridge_piece(term, variables)
    x = np.atleast_1d(long(entries_of(piece, values))) * long(piece.factor)
    squares = (x * x).reshape(len(x), -1).sum(axis=1)
    return np.sum(long(present(term.weight)) * squares) / 2


# ---- counting --------------------------------------------------------------------------------


def count(term: Any, values: Values) -> int:
    """Return the nonzero entries, rows or groups of what a price or a limit is about."""
    return sum(_count(part, values) for part in parts_of(term))


def paid(term: Price, values: Values) -> Any:
    """Return what the nonzero units that a price is about cost together."""
    return np.sum(long(present(term.gamma)) * long(chosen(term.counted, values)))


def parts_of(term: Any) -> tuple[Counted, ...]:
    """Return what a price or a limit counts."""
    if isinstance(term, Semicontinuous):
        return (Counted(term.expression),)
    if isinstance(term, Requirement):
        return (term.child.counted, *(part.counted for part in term.parents))
    if isinstance(term, Budget):
        return tuple(part.counted for part in term.terms)
    return term.counted if isinstance(term.counted, tuple) else (term.counted,)


def _count(part: Counted, values: Values) -> int:
    return int(chosen(part, values).sum())


def chosen(part: Counted, values: Values) -> Any:
    """Return 1 for each unit that is not zero, in the order of their labels, and 0 for others."""
    if not part.plain:  # found from other coordinates, with their rounding
        found = evaluate(part.expression, values)
        nonzero = np.abs(found.value) > found.size.max(initial=0.0) * 1e-9
        rows = len(part.expression.value_shape()) == 2
        nonzero = nonzero.any(axis=1) if rows else nonzero.ravel()
        groups = np.arange(nonzero.size) if part.groups is None else part.groups
        return np.array([nonzero[groups == label].any() for label in np.unique(groups)])
    x = entries_of(part.expression.pieces[0], values)
    nonzero = (x != 0.0).reshape(len(x), -1).any(axis=1)
    if part.groups is None:
        return nonzero
    groups = np.asarray(part.groups)
    return np.array([nonzero[groups == label].any() for label in np.unique(groups)])


def counted(terms: Iterator[Any]) -> dict[int, set[int]]:
    """Return the counted entries (rows) of each variable, by its identity."""
    found: dict[int, set[int]] = {}
    for part in (part for term in terms for part in parts_of(term)):
        piece = part.expression.pieces[0]
        rows = range(piece.variable.shape[0]) if piece.rows is None else piece.rows.tolist()
        found.setdefault(id(piece.variable), set()).update(rows)
    return found


# ---- precision matrices ----------------------------------------------------------------------


def _matrix(term: NegativeLogDet | Trace, values: Values) -> Long:
    return long(values[id(term.expression.pieces[0].variable)])


def _log_det(term: NegativeLogDet, values: Values) -> Worth:
    omega = _matrix(term, values)
    factor = cholesky(omega)
    if factor is None:
        return Worth(long(np.inf), long(0.0), 0.0, False)
    logs = np.log(np.diag(factor))
    eigenvalues = np.linalg.eigvalsh(np.asarray(omega, dtype=np.float64))
    condition = abs(float(eigenvalues[-1])) / max(abs(float(eigenvalues[0])), 1e-300)
    p = len(omega)
    size = term.weight * (2 * np.sum(np.abs(logs)) + p * p * condition)
    value = -2 * long(term.weight) * np.sum(logs)
    return Worth(value, 64 * size * EPS, float(64 * size * EPS64), False)


def _trace(term: Trace, values: Values) -> Worth:
    s = covariance_of(term)
    products = long(term.weight) * s * _matrix(term, values)
    size = np.sum(np.abs(products))
    derived = term.data is not None or term.shrinkage > 0.0
    error = size * (2.0**-48 if derived else 64 * EPS)  # what the library makes in float64
    return Worth(np.sum(products), error, float(size) * EPS64 * 64, False)


def covariance_of(term: Trace) -> Long:
    """Return the matrix of a trace as it was given, or the covariance of the observations."""
    s = long(term.matrix)
    if term.data is not None:
        centred = long(term.data)
        centred = centred - centred.sum(axis=0) / len(centred)
        s = centred.T @ centred / len(centred)
    if term.shrinkage > 0.0:
        diagonal = np.diag(np.diag(s))
        s = (1 - long(term.shrinkage)) * s + long(term.shrinkage) * diagonal
    return (s + s.T) / 2


def cholesky(matrix: Long) -> Long | None:
    """Return the lower factor in extended precision, None unless positive definite."""
    p = len(matrix)
    factor = long(np.zeros((p, p)))
    for j in range(p):
        pivot = matrix[j, j] - np.sum(factor[j, :j] ** 2)
        if not pivot > 0:
            return None
        factor[j, j] = np.sqrt(pivot)
        below = matrix[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]
        factor[j + 1 :, j] = below / factor[j, j]
    return factor


def tolerance(worth: Worth) -> float:
    """Return how far a value computed in float64 may be from the judge's.

    A small multiple of what rounding explains; data in single precision may be multiplied in it.
    """
    allowed = ROOM * worth.rounding + float(worth.error)
    if worth.single:
        allowed += 2e-5 * abs(float(worth.value)) + 2.0**29 * worth.rounding
    return allowed
