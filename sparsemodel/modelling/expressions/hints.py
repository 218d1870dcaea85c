"""What to write in place of names that CVXPY has and this language has not."""

from __future__ import annotations

HINTS = {
    "Maximize": "minimise the negative: sm.minimize(...) of a negative log-likelihood is a loss",
    "Minimize": "write sm.minimize(...)",
    "abs": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "absolute": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "exp": "write sm.poisson_loss(A @ w, y), the sum of exp(u) - y u",
    "hstack": "keep the variables apart: A1 @ u + A2 @ v",
    "huber": "write sm.huber_loss(A @ w, b, delta=...)",
    "log": "write the loss it is part of, such as sm.logistic_loss(A @ w, y) or -sm.log_det(Omega)",
    "logistic": "write sm.logistic_loss(A @ w, y)",
    "maximize": "minimise the negative: sm.minimize(...) of a negative log-likelihood is a loss",
    "maximum": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u), or a bound `w >= 0`",
    "norm1": "write sm.norm(w, 1)",
    "norm2": "write sm.norm(w)",
    "pos": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u)",
    "quad_form": "write sm.custom_loss(lambda u: u @ Q @ u / 2, lambda u: Q @ u, of=w)",
    "sqrt": "bound the square: sm.norm(w) <= r",
    "square": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge(w, lam)",
    "sum": "write w.sum(), or reduction='sum' in a loss",
    "sum_squares": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge",
    "tr": "write sm.trace(S @ Omega)",
    "vstack": "keep the variables apart: A1 @ u + A2 @ v",
}

__all__ = ["HINTS"]
