"""Sparse multinomial regression: rows of a matrix are chosen; loss against time."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options
from benchmarks.peers.call import ask, records
from benchmarks.problems import CLASSES, classes, refit_multinomial

PEERS = ("abess",)
RIDGE = 1e-4


def run(options: Options) -> list[Record]:
    """Return the default plan and abess; every support is refitted by one judge."""
    out = []
    for case in CLASSES[:1] if options.quick else CLASSES:
        A, y = classes(*case)
        n, p, m, k, correlation, _ = case
        label = f"n={n}, p={p}, {m} classes, k={k}, correlation {correlation:g}"
        solve = functools.partial(_solve, A, y, m, k)
        solve()
        (solution, support), timing = timed(solve, 1 if options.quick else min(3, options.repeats))
        quality = {"loss": refit_multinomial(A, y, support, RIDGE), "nonzeros": int(support.size)}
        record = Record(
            "multinomial", label, "sparsemodel", quality, timing, unit_of_array(A), solution.passes
        )
        record.peak_mb, record.notes = peak_beyond(solve), solution.backend
        task = {"family": "multinomial", "case": case, "k": k, "ridge": RIDGE, "solvers": PEERS}
        task["repeats"] = min(3, options.repeats)
        out += [record, *records("multinomial", label, ask(options, task))]
    return out


def _solve(A: Any, y: Any, m: int, k: int) -> tuple[Any, Any]:
    w, b = sm.Variable((A.shape[1], m)), sm.Variable((1, m))
    loss = sm.multinomial_loss(A @ w + np.ones((A.shape[0], 1)) @ b, y)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, RIDGE)), sm.card(w, axis=1) <= k)
    return problem.solve(), np.flatnonzero(w.value.any(axis=1))
