"""float32 data stay float32: cost, memory and accuracy against the same data in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options


def run(options: Options) -> list[Record]:
    """Return both precisions in both memory orders, with the memory beyond the data."""
    n, p, k = (500, 4000, 20) if options.quick else (2500, 10000, 100)
    rng = np.random.default_rng(0)
    full = rng.standard_normal((n, p)).astype(np.float32)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(1.0, 2.0, k)
    b = full @ x + 0.01 * rng.standard_normal(n)
    out = []
    for dtype in (np.float64, np.float32):
        for order in ("C", "F"):
            A = np.asarray(full, dtype=dtype, order=order)

            def solve(A: Any = A) -> tuple[Any, Any]:
                w = sm.Variable(p)
                problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= k)
                return problem.solve("nhtp"), w.value

            solve()
            beyond = peak_beyond(solve)
            (solution, value), timing = timed(solve, options.repeats)
            data = A.nbytes / 2**20
            out.append(
                Record(
                    "single_precision",
                    f"{np.dtype(dtype).name}, {order} order",
                    "sparsemodel",
                    {"error": float(np.linalg.norm(value - x) / np.linalg.norm(x))},
                    timing,
                    unit_of_array(A),
                    passes=solution.passes,
                    peak_mb=beyond,
                    notes=f"data {data:.0f} MB",
                )
            )
    return out
