"""What is said of atoms of CVXPY's that have no counterpart here."""

from __future__ import annotations

from typing import Any

from sparsemodel.interfaces import ModelError
from sparsemodel.modelling.from_cvxpy.affine_expressions import kind_of, shown

RECOGNISED = (
    "sum_squares, square, quad_form, norm(.)**2, norm1, abs, huber, logistic, pos, "
    "maximum(a * r, b * r), exp, -log, log_det, trace, affine terms, their sums and multiples"
)


def negated(kind: str, atom: Any) -> ModelError:
    """Return the error for a negative multiple of an atom."""
    if not atom.is_concave():
        return ModelError(f"-{kind}(...) is not convex in {shown(atom)}.")
    return ModelError(
        f"-{kind}(...) is convex, but not recognised: it is defined on a part of the space alone, "
        "where zero, at which searches begin, need not lie. Of affine u, -log(u) is recognised; "
        "for others take sm.custom_loss with a function that goes on, convex and smooth, beyond "
        "that part, such as its second-order expansion at 1e-3 for u below that."
    )


def concave() -> Any:
    """Raise the error for a log determinant without a minus."""
    raise ModelError("log_det is concave; it can only be minimised with a minus: -log_det(X).")


_HINTS = {
    "log_sum_exp": (
        " Of the rows of `A @ W`, less the entries of the classes, it is a multinomial loss: write "
        "sm.multinomial_loss(A @ W, labels)."
    ),
    "Pnorm": (
        " Alone, sum_squares has the same minimisers; for total variation take "
        "`cp.norm1(D @ x)` with differences D."
    ),
    "max": (
        " For the largest entry of u minimise a variable t = cp.Variable() in its place, with the "
        "constraint `u <= t`."
    ),
    "minimum": (
        " Of -minimum(u, v) minimise a variable t in its place (the sum of a vector t for that of "
        "entries), with a constraint for each part: `-u <= t`, `-v <= t`."
    ),
    "maximum": (
        " Minimise a variable t in its place (the sum of a vector t for that of entries), with a "
        "constraint for each part: `u <= t`, `v <= t`."
    ),
    "sum_largest": (
        " Of the k largest of u it is the least of `cp.sum(cp.pos(u - t)) + k * t` over a further "
        "variable t = cp.Variable(): write that."
    ),
    "norm_inf": (
        " For the largest residual minimise a variable t, with the constraint "
        "`cp.abs(A @ w - b) <= t`."
    ),
    "normNuc": " There is no low-rank part; a sparse one beside given factors is `L @ W @ R`.",
}
"""What to write in place of an atom."""


def unknown(expression: Any) -> ModelError:
    """Return the error for an atom that is not recognised, with what to write in its place."""
    kind = kind_of(expression)
    where = f" in {shown(expression)}" if len(shown(expression)) <= 120 else ""
    hint = _HINTS.get(kind, "")
    return ModelError(
        f"The CVXPY atom {kind}{where} is not recognised; recognised are {RECOGNISED}.{hint}"
    )
