"""A million unknowns that no array holds: cosine rows as a LinearOperator, k = 1 %."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct, idct
from scipy.sparse.linalg import LinearOperator

import sparsemodel as sm
from benchmarks.measure import Record, peak_beyond, timed, unit_of
from benchmarks.options import Options


def cosine_rows(p: int, n: int, rng: np.random.Generator) -> LinearOperator:
    """Return ``n`` random rows of the orthonormal cosine transform, times sqrt(p/n)."""
    rows = np.sort(rng.choice(p, n, replace=False))
    scale = np.sqrt(p / n)

    def matvec(x: Any) -> Any:
        return scale * dct(x.ravel(), norm="ortho")[rows]

    def rmatvec(r: Any) -> Any:
        full = np.zeros(p)
        full[rows] = r.ravel()
        return scale * idct(full, norm="ortho")

    return LinearOperator((n, p), matvec=matvec, rmatvec=rmatvec, dtype=np.float64)


def run(options: Options) -> list[Record]:
    """Return one record for each size; targets: 1e-8, 120 s, 4 GiB at p = 2^20."""
    out = []
    for exponent in (14,) if options.quick else (14, 16, 18, 20):
        p = 2**exponent
        n, k = p // 4, round(p / 100)
        rng = np.random.default_rng(0)
        A = cosine_rows(p, n, rng)
        x = np.zeros(p)
        x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
        b = A.matvec(x)
        unit = unit_of(A.matvec, A.rmatvec, p)

        def solve(A: Any = A, b: Any = b, k: int = k) -> tuple[Any, Any]:
            w = sm.Variable(A.shape[1])
            problem = sm.Problem(
                sm.minimize(sm.squared_loss(sm.as_design(A) @ w, b)), sm.card(w) <= k
            )
            return problem.solve(), w.value

        (solution, value), timing = timed(solve, options.repeats)
        out.append(
            Record(
                "matrix_free",
                f"p=2^{exponent}, k={k}",
                "sparsemodel",
                {"error": float(np.linalg.norm(value - x) / np.linalg.norm(x))},
                timing,
                unit,
                passes=solution.passes,
                peak_mb=peak_beyond(solve),
                notes=solution.backend,
                extra={"p": p, "k": k},
            )
        )
    return out
