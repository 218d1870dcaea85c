"""The same calls with one thread, with several and with the environment as users have it.

Wall time decides here: a run must not be slower for the threads that it is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, timed, unit_of_array
from benchmarks.options import Options


def run(options: Options) -> list[Record]:
    """Return the time of calls that are dominated by factorisations, by products, and by both."""
    out = []
    for case, array, call in _cases(options):
        call()
        value, timing = timed(call, options.repeats)
        unit = unit_of_array(array)
        out.append(Record("threads", case, "sparsemodel", {"value": value}, timing, unit))
    return out


def _cases(options: Options) -> Iterator[tuple[str, Any, Callable[[], float]]]:
    share = 4 if options.quick else 1
    rng = np.random.default_rng(0)
    for n, p, k in ((2500, 5000, 250), (2500, 25000, 250)):
        n, p, k = n // share, p // share, k // share
        A, b, _ = _planted(rng, n, p, k)
        yield f"noiseless, {n} x {p}, k = {k}", A, _solve(sm.squared_loss, A, b, k, 0.0)
    n, p = 2000 // share, 10000 // share
    A, b, noise = _planted(rng, n, p, 20)
    yield (
        f"logistic, {n} x {p}, k = 20",
        A,
        _solve(sm.logistic_loss, A, np.sign(b + noise), 20, 1e-3),
    )
    n, p = 300, 1000 // share
    A, b, noise = _planted(rng, n, p, 5)
    yield f"certify, {n} x {p}, k = 5", A, _certify(A, b + noise)
    p = 100 // (2 if options.quick else 1)
    X = rng.standard_normal((2 * p, p))
    X[:, 1:] += 0.5 * X[:, :-1]
    yield f"precision matrix, p = {p}", X, _graph(X)


def _planted(rng: np.random.Generator, n: int, p: int, k: int) -> tuple[Any, Any, Any]:
    A, x = rng.standard_normal((n, p)), np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    return A, A @ x, rng.standard_normal(n)


def _solve(loss: Any, A: Any, b: Any, k: int, lam: float) -> Callable[[], float]:
    def call() -> float:
        w = sm.Variable(A.shape[1])
        goal = loss(A @ w, b) + sm.ridge(w, lam) if lam else loss(A @ w, b)
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= k)
        return float(problem.solve().value)

    return call


def _certify(A: Any, b: Any) -> Callable[[], float]:
    def call() -> float:
        w = sm.Variable(A.shape[1])
        goal = sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.1))
        return float(sm.Problem(goal, sm.card(w) <= 5).certify().bound)

    return call


def _graph(X: Any) -> Callable[[], float]:
    def call() -> float:
        p = X.shape[1]
        Omega = sm.Variable((p, p), symmetric=True)
        edges = sm.card(sm.offdiag(Omega)) <= 2 * p
        return float(sm.Problem(sm.minimize(sm.gaussian_nll(Omega, data=X)), edges).solve().value)

    return call
