"""Time against p, n, k and the number of nonzeros, with fitted exponents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparsemodel as sm
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options


def run(options: Options) -> list[Record]:
    """Return a record for each size; those of one series carry its exponent."""
    out: list[Record] = []
    for name, cases in (("p", _p), ("n", _n), ("k", _k), ("nnz", _nnz)):
        series = []
        for size, A, k in list(cases())[: 2 if options.quick else None]:
            series.append(_record(name, size, A, k, options.repeats))
        slope = np.polyfit(
            np.log([r.extra["size"] for r in series]), np.log([r.timing.cpu for r in series]), 1
        )[0]
        for record in series:
            record.extra["exponent"] = float(slope)
            record.notes = f"exponent {slope:.2f} in {name}"
        out += series
    return out


def _dense(n: int, p: int) -> Any:
    return np.random.default_rng(0).standard_normal((n, p)) / np.sqrt(n)


def _p() -> Iterator[tuple[int, Any, int]]:
    for p in (2000, 4000, 8000, 16000, 32000):
        yield p, _dense(1000, p), 30


def _n() -> Iterator[tuple[int, Any, int]]:
    for n in (500, 1000, 2000, 4000, 8000):
        yield n, _dense(n, 4000), 30


def _k() -> Iterator[tuple[int, Any, int]]:
    for k in (12, 25, 50, 100, 200, 400):
        yield k, _dense(2000, 8000), k


def _nnz() -> Iterator[tuple[int, Any, int]]:
    for density in (0.003, 0.01, 0.03, 0.1, 0.3):
        A = sp.random_array(
            (4000, 20000), density=density, format="csr", rng=np.random.default_rng(0)
        )
        yield A.nnz, A, 30


def _record(name: str, size: int, A: Any, k: int, repeats: int) -> Record:
    n, p = A.shape
    rng = np.random.default_rng(1)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    b = A @ x

    def solve() -> tuple[Any, Any]:
        w = sm.Variable(p)
        problem = sm.Problem(sm.minimize(sm.squared_loss(sm.as_design(A) @ w, b)), sm.card(w) <= k)
        return problem.solve("nhtp"), w.value

    solve()
    (solution, value), timing = timed(solve, repeats)
    return Record(
        "growth",
        f"{name}={size}",
        "sparsemodel",
        {"error": float(np.linalg.norm(value - x) / np.linalg.norm(x))},
        timing,
        unit_of_array(A),
        passes=solution.passes,
        peak_mb=peak_beyond(solve),
        extra={"growth": name, "size": size, "n": n, "p": p, "k": k},
    )
