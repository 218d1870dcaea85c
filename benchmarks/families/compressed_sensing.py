"""Noiseless recovery from random rows of a cosine transform (the design's pass is the unit)."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options
from benchmarks.peers.call import ask, records
from benchmarks.problems import partial_dct

CASES = ((5000, 0.01), (5000, 0.05), (10000, 0.01), (10000, 0.05), (25000, 0.01), (25000, 0.05))
PEERS = ("scikit-learn OMP", "abess", "skscope HTP (step 0.5)")


def run(options: Options) -> list[Record]:
    """Return the records of all cases; the whole of ``solve()`` is timed, with compiling."""
    out = []
    for p, share in CASES[:1] if options.quick else CASES:
        k = round(share * p)
        A, b, x = partial_dct(p, k)
        unit = unit_of_array(A)

        def solve(A: Any = A, b: Any = b, k: int = k) -> tuple[Any, Any]:
            w = sm.Variable(A.shape[1])
            problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= k)
            return problem.solve(), w.value

        solve()  # imports
        (solution, value), timing = timed(solve, options.repeats)
        error = float(np.linalg.norm(value - x) / np.linalg.norm(x))
        recall = float(np.isin(np.flatnonzero(x), np.flatnonzero(value)).mean())
        case = f"p={p}, k={k}"
        out.append(
            Record(
                "compressed_sensing",
                case,
                "sparsemodel",
                {"error": error, "recall": recall},
                timing,
                unit,
                passes=solution.passes,
                peak_mb=peak_beyond(solve),
                notes=solution.backend,
                extra={"p": p, "k": k, "n": p // 4, "iterations": solution.iterations},
            )
        )
        if p <= 10000:
            task = {"family": "compressed_sensing", "p": p, "k": k, "solvers": PEERS, "repeats": 1}
            out += records("compressed_sensing", case, ask(options, task))
    return out
