"""Parts of CVXPY objectives that belong together: exponentials, and what is linear beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.losses import LinearLoss, PoissonLoss
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.loss_terms.terms import loss_term


@final
@dataclass(frozen=True, slots=True, eq=False)
class Exponentials:
    """``sum of weights * exp(u)``, which may find the linear part of a Poisson loss."""

    u: Affine
    weights: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """``sum of weights * u``."""

    u: Affine
    weights: FloatArray


def joined(parts: list[Any]) -> list[Any]:
    """Return the parts with exponentials and linear parts as losses, Poisson where they match."""
    linear = [part for part in parts if isinstance(part, Linear)]
    out: list[Any] = []
    for part in parts:
        if isinstance(part, Exponentials):
            counts = next((n for n in linear if _are_counts(n, part)), None)
            linear = [n for n in linear if n is not counts]
            out.append(_poisson(part, counts))
        elif not isinstance(part, Linear):
            out.append(part)
    return out + [_linear_term(part) for part in linear]


def term_of_rows(
    loss: Any, u: Affine, weights: FloatArray, target: FloatArray | None = None
) -> Any:
    """Return ``sum of weights * loss(u, target)``; the target is zero where none is given."""
    shape = u.value_shape() or weights.shape
    if len(shape) > 1 and np.ptp(weights):
        raise ModelError("Weights of single entries of a matrix of predictions: not understood.")
    if not u.value_shape():  # a number, as a vector of one
        u = u.plus(np.zeros(1))
    goal = np.zeros(shape) if target is None else np.broadcast_to(target, shape)
    if not np.ptp(weights):
        return float(weights.flat[0]) * loss_term(loss, u, goal, reduction="sum")
    return loss_term(loss, u, goal, weights=weights, reduction="sum")


def _are_counts(linear: Linear, exponentials: Exponentials) -> bool:
    """Return whether ``-sum of weights * u`` belongs to the exponentials as counts."""
    n, e = linear, exponentials
    if n.weights.shape != e.weights.shape or np.any(n.weights > 0.0):
        return False
    return not np.any((e.weights == 0.0) & (n.weights < 0.0)) and equal(n.u, e.u)


def equal(a: Affine, b: Affine) -> bool:
    """Return whether two expressions are the same, with the same data."""
    if len(a.pieces) != len(b.pieces) or not _same_numbers(a.offset, b.offset):
        return False
    return all(_same_pieces(x, y) for x, y in zip(a.pieces, b.pieces, strict=True))


def _same_pieces(a: Piece, b: Piece) -> bool:
    if a.variable is not b.variable or a.factor != b.factor or not _same_numbers(a.rows, b.rows):
        return False
    if not _same_numbers(a.right, b.right):
        return False
    if a.design is None or b.design is None:
        return a.design is b.design
    held, other = getattr(a.design, "array", None), getattr(b.design, "array", None)
    return held is not None and other is not None and _same_numbers(held, other)


def _same_numbers(a: Any, b: Any) -> bool:
    if a is None or b is None or a is b:
        return a is b
    if hasattr(a, "tocsr") or hasattr(b, "tocsr"):
        return bool(a.shape == b.shape and (a != b).nnz == 0)
    return np.array_equal(a, b)


def _poisson(part: Exponentials, counts: Linear | None) -> Any:
    """Return ``sum of c exp(u) - m u`` as Poisson losses with the counts ``m / c``."""
    if counts is None:
        return term_of_rows(PoissonLoss(), part.u, part.weights)
    kept = part.weights > 0.0
    target = np.divide(-counts.weights, part.weights, where=kept, out=np.zeros(kept.shape))
    return term_of_rows(PoissonLoss(), part.u, part.weights, target)


def _linear_term(part: Linear) -> Any:
    """Return ``sum of weights * u`` as a loss with the weights for its target."""
    u, weights = part.u, part.weights
    if not u.value_shape():
        u, weights = u.plus(np.zeros(1)), np.array([float(np.sum(weights))])
    slope = np.broadcast_to(weights, u.value_shape()).astype(np.float64)
    return loss_term(LinearLoss(), u, slope, reduction="sum")
