"""The generated problems, from seeds; needs NumPy and SciPy alone, so that peers can use it."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def partial_dct(p: int, k: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)``: p/4 random rows of a cosine transform, unit columns, no noise."""
    rng = np.random.default_rng(seed)
    n = p // 4
    rows = np.sort(rng.choice(p, n, replace=False))
    A = np.cos(np.pi * np.outer(rows, np.arange(p) + 0.5) / p)
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    return A, A @ x, x


def autoregressive_logistic(
    n: int = 2000, p: int = 10000, k: int = 100, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Return ``(A, y, x)``: rows are AR(1/2) processes, labels -1 and 1 drawn from the model."""
    from scipy.signal import lfilter
    from scipy.special import expit

    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, p))
    noise[:, 1:] *= np.sqrt(0.75)
    A = lfilter([1.0], [1.0, -0.5], noise, axis=1)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    y = np.where(rng.random(n) < expit(A @ x), 1.0, -1.0)
    return A, y, x


def linear_recovery(n: int, seed: int, p: int = 500, k: int = 50) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)``: Gaussian rows, N(3, 1) coefficients of random sign, unit noise."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    x = np.zeros(p)
    support = rng.choice(p, k, replace=False)
    x[support] = rng.normal(3.0, 1.0, k) * rng.choice([-1.0, 1.0], k)
    return A, A @ x + rng.standard_normal(n), x


def best_subset(n: int, p: int, k: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)``: rows are AR(1/2) processes, k equally spaced ones, SNR 5."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, p))
    noise[:, 1:] *= np.sqrt(0.75)
    A = lfilter([1.0], [1.0, -0.5], noise, axis=1)
    x = np.zeros(p)
    x[np.linspace(0, p - 1, k).astype(int)] = 1.0
    signal = A @ x
    return A, signal + rng.normal(0.0, np.sqrt(np.var(signal) / 5.0), n), x


def correlated_subset(
    n: int, p: int, k: int, correlation: float, snr: float, seed: int = 0
) -> tuple[Array, Array]:
    """Return ``(A, b)``: rows are AR processes of unit variance, k equally spaced ones of +-1."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n, p))
    noise[:, 1:] *= np.sqrt(1.0 - correlation**2)
    A = lfilter([1.0], [1.0, -correlation], noise, axis=1)
    x = np.zeros(p)
    x[np.linspace(0, p - 1, k + 2).round().astype(int)[1:-1]] = (-1.0) ** np.arange(k)
    signal = A @ x
    return A, signal + rng.normal(0.0, np.sqrt(np.var(signal) / snr), n)


CLASSES = (
    (500, 1000, 4, 10, 0.0, 1.0),
    (500, 1000, 4, 10, 0.7, 1.0),
    (2000, 500, 5, 15, 0.5, 0.7),
    (120, 80, 3, 6, 0.9, 0.8),
    (150, 200, 3, 6, 0.9, 0.5),
)
"""Arguments of :func:`classes`: samples, features, classes, nonzero rows, correlation, size."""


def classes(n: int, p: int, m: int, k: int, correlation: float, size: float) -> tuple[Array, Array]:
    """Return ``(A, y)``: AR(1) features, and ``m`` classes drawn from ``k`` normal rows."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(0)
    noise = rng.standard_normal((n, p))
    noise[:, 1:] *= np.sqrt(1.0 - correlation**2)
    A = lfilter([1.0], [1.0, -correlation], noise, axis=1)
    w = np.zeros((p, m))
    w[rng.choice(p, k, replace=False)] = size * rng.standard_normal((k, m))
    return A, (A @ w + rng.gumbel(size=(n, m))).argmax(axis=1)


def refit_multinomial(A: Array, y: Array, support: Any, lam: float) -> float:
    """Return mean multinomial loss plus ``lam/2 ||w||^2``, minimised over rows and intercepts.

    The judge of all multinomial solvers, independent of each.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, softmax

    B, ones = np.column_stack([A[:, support], np.ones(len(y))]), np.eye(y.max() + 1)[y]
    ridge = lam * np.append(np.ones(len(support)), 0.0)[:, None]

    def value(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(B.shape[1], -1)
        u = B @ w
        loss = np.mean(logsumexp(u, axis=1) - np.sum(u * ones, axis=1))
        gradient = B.T @ (softmax(u, axis=1) - ones) / len(y) + ridge * w
        return float(loss + 0.5 * np.sum(ridge * w * w)), gradient.ravel()

    start = np.zeros(B.shape[1] * ones.shape[1])
    return float(
        minimize(
            value,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-9},
        ).fun
    )


def refit_logistic(A: Array, y: Array, support: Any, lam: float) -> float:
    """Return mean logistic loss plus ``lam/2 ||w||^2``, minimised over ``support`` by Newton.

    The judge of all logistic solvers, independent of each.
    """
    B = A[:, support] * y[:, None]
    n, w = B.shape[0], np.zeros(B.shape[1])

    def value(v: Array) -> float:
        return float(np.logaddexp(0.0, -(B @ v)).mean() + 0.5 * lam * v @ v)

    for _ in range(300):
        q = 1.0 / (1.0 + np.exp(np.clip(B @ w, -700, 700)))
        gradient = -(B.T @ q) / n + lam * w
        hessian = (B.T * (q * (1.0 - q) / n)) @ B + lam * np.eye(w.size)
        step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
        t = 1.0
        while t > 1e-10 and value(w + t * step) > value(w) + 1e-4 * t * gradient @ step:
            t /= 2.0
        w = w + t * step
        if -gradient @ step < 1e-13:
            break
    return value(w)


def random_graph(
    p: int, samples: int, probability: float, seed: int = 0
) -> tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return ``(S, edges)``: the covariance of samples of a random graph of condition number p."""
    rng = np.random.default_rng(seed)
    theta = np.triu((rng.random((p, p)) < probability).astype(np.float64), 1)
    theta += theta.T
    spectrum = np.linalg.eigvalsh(theta)
    sigma = (spectrum[-1] - p * spectrum[0]) / (p - 1)
    cholesky = np.linalg.cholesky(theta + sigma * np.eye(p))
    X = np.linalg.solve(cholesky.T, rng.standard_normal((p, samples))).T
    X -= X.mean(axis=0)
    return X.T @ X / samples, theta != 0.0
