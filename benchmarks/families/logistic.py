"""Sparse logistic regression on AR(1/2) features: loss against time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options
from benchmarks.peers.call import ask, records
from benchmarks.problems import autoregressive_logistic, refit_logistic

K = 100
PEERS = ("abess", "skscope HTP", "scikit-learn L1")


def run(options: Options) -> list[Record]:
    """Return the default plan, its parts, and the peers; every support is refitted by one judge."""
    A, y, _ = autoregressive_logistic()
    n, p = A.shape
    lam = 1e-6 / n
    unit = unit_of_array(A)
    out = []
    for backend in (None, "gomp", "nhtp"):
        curve: list[tuple[float, float]] = []

        def solve(backend: Any = backend, curve: Any = curve) -> tuple[Any, Any]:
            curve.clear()
            began = time.process_time()
            w = sm.Variable(p)
            objective = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, lam))
            problem = sm.Problem(objective, sm.card(w) <= K)

            def note(event: Any) -> None:
                curve.append((time.process_time() - began, float(event.best)))

            return problem.solve(backend, callback=note), w.value

        solve()
        (solution, value), timing = timed(solve, 1 if options.quick else options.repeats)
        drawn = list(curve)  # of the last timed run
        loss = refit_logistic(A, y, np.flatnonzero(value), lam)
        name = "sparsemodel" if backend is None else f"sparsemodel {backend}"
        out.append(
            Record(
                "logistic",
                f"n={n}, p={p}, k={K}",
                name,
                {"loss": loss, "nonzeros": int(np.count_nonzero(value))},
                timing,
                unit,
                passes=solution.passes,
                peak_mb=peak_beyond(solve),
                notes=solution.backend,
                extra={"curve": drawn},
            )
        )
    task = {"family": "logistic", "k": K, "solvers": PEERS, "repeats": min(3, options.repeats)}
    return out + records("logistic", f"n={n}, p={p}, k={K}", ask(options, task))
