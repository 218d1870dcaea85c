"""Proofs that k coefficients are the best: regression to a gap of 1e-4, with and without ridge.

Peers that solve the penalised problem get the price of a coefficient at which k are optimal, and
twice the largest coefficient as their bound on all, both from our answer; ours gets neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, timed, unit_of_array
from benchmarks.options import Options
from benchmarks.peers.call import ask, records
from benchmarks.problems import best_subset, correlated_subset
from sparsemodel.datasets import load_golub

CASES = (
    (500, 100, 5, 10.0),
    (1000, 500, 10, 10.0),
    (1000, 1000, 10, 30.0),
    (500, 1000, 5, 10.0),
    (500, 1000, 5, 1.0),
)
"""n, p, k and the weight of the ridge beside ``||A w - b||^2 / 2``."""
WEAK = (
    (500, 1000, 5, 0.0, 2.0, 1e-3),
    (500, 1000, 5, 0.0, 2.0, 0.0),
    (1000, 1000, 10, 0.1, 5.0, 1e-3),
    (1000, 1000, 10, 0.1, 5.0, 0.0),
    (300, 3000, 4, 0.0, 5.0, 0.0),
    (500, 1000, 5, 0.5, 5.0, 0.0),
    (200, 1000, 5, 0.5, 5.0, 1e-3),
    (200, 1000, 5, 0.5, 5.0, 0.0),
    (300, 600, 4, 0.7, 3.0, 0.0),
    (400, 800, 6, 0.7, 5.0, 0.0),
    (300, 600, 4, 0.9, 3.0, 0.0),
    (100, 500, 5, 0.1, 2.0, 0.0),
    (1000, 3000, 10, 0.5, 5.0, 1e-2),
    (200, 1000, 5, 0.5, 5.0, 1e-2),
    (100, 500, 5, 0.1, 2.0, 1e-2),
    (1000, 10000, 10, 0.1, 5.0, 1e-2),
    (1000, 10000, 10, 0.1, 5.0, 1e-3),
)
"""n, p, k, correlation of neighbouring columns, SNR and the ridge beside the mean of half squares:
little ridge or none, so that the bounds on coefficients carry the proof. No peer has these."""
PEERS = ("l0bnb", "OKRidge", "El0ps")
GAP = 1e-4
SECONDS = 10.0
"""The limit of each proof; a gap above the asked one is what was reached by then."""
COMPARED = 3
"""Cases that the peers are given: the first so many."""


def run(options: Options) -> list[Record]:
    """Return whether the proof closed, the gap reached, and the time of solve and proof."""
    out = []
    for number, (n, p, k, ridge) in enumerate(CASES[:1] if options.quick else CASES):
        A, b, _ = best_subset(n, p, k)

        def problem(k: int, A: Any = A, b: Any = b, ridge: float = ridge) -> Any:
            w = sm.Variable(A.shape[1], name="w")
            loss = sm.squared_loss(A @ w, b, reduction="sum")
            return sm.Problem(sm.minimize(loss + sm.ridge(w, ridge)), sm.card(w) <= k)

        def prove(problem: Any = problem, k: int = k) -> Any:
            return problem(k).prove(gap=GAP, time_limit=SECONDS)

        prove()  # compiles
        certificate, timing = timed(prove, min(options.repeats, 3))
        solved = problem(k)
        largest = max(abs(v) for v in solved.solve().coefficients.values())
        case = f"n={n}, p={p}, k={k}, ridge {ridge:g}"
        quality = {"gap": certificate.relative_gap, "objective": solved.value}
        out.append(Record("proofs", case, "sparsemodel", quality, timing, unit_of_array(A)))
        if number >= COMPARED:
            continue
        less, more = (problem(j).solve().value for j in (k - 1, k + 1))
        task = {"family": "proofs", "n": n, "p": p, "k": k, "ridge": ridge, "solvers": PEERS}
        task["price"] = float(np.sqrt((less - solved.value) * (solved.value - more)))
        task |= {"bound": 2.0 * float(largest), "gap": GAP, "seconds": SECONDS}
        out += records("proofs", case, ask(options, task | {"repeats": 1}))
    return out + _without_much_ridge(options) + _genes(options)


def _without_much_ridge(options: Options) -> list[Record]:
    """Return the gap reached and the time of solve and proof where there is little ridge."""
    out = []
    for n, p, k, correlation, snr, ridge in WEAK[:2] if options.quick else WEAK:
        A, b = correlated_subset(n, p, k, correlation, snr)

        def prove(k: int = k, A: Any = A, b: Any = b, ridge: float = ridge) -> Any:
            w = sm.Variable(A.shape[1], name="w")
            goal = sm.squared_loss(A @ w, b) + (sm.ridge(w, ridge) if ridge else 0.0)
            problem = sm.Problem(sm.minimize(goal), sm.card(w) <= k)
            return problem.prove(gap=GAP, time_limit=2.0 * SECONDS)

        # What ends at its limit ends there every time.
        closed = prove().relative_gap <= GAP  # compiles
        certificate, timing = timed(prove, min(options.repeats, 3) if closed else 1)
        case = f"n={n}, p={p}, k={k}, AR {correlation:g}, SNR {snr:g}, mean ridge {ridge:g}"
        quality = {"gap": certificate.relative_gap, "objective": certificate.value}
        out.append(Record("proofs", case, "sparsemodel", quality, timing, unit_of_array(A)))
    return out


def _genes(options: Options) -> list[Record]:
    """Return the same for the best pair and triple of 3051 genes, an intercept and no ridge."""
    data, out = load_golub(), []
    A, b = np.asarray(data.X, dtype=float), np.where(data.y == data.y.max(), 1.0, -1.0)
    for k in (2,) if options.quick else (2, 3):

        def prove(k: int = k) -> Any:
            w, intercept = sm.Variable(A.shape[1], name="w"), sm.Variable(name="intercept")
            loss = sm.squared_loss(A @ w + intercept, b)
            problem = sm.Problem(sm.minimize(loss), sm.card(w) <= k)
            return problem.prove(gap=GAP, time_limit=6.0 * SECONDS)

        prove()  # compiles
        certificate, timing = timed(prove, 1)
        quality = {"gap": certificate.relative_gap, "objective": certificate.value}
        case = f"golub, n=38, p=3051, k={k}, intercept, no ridge"
        out.append(Record("proofs", case, "sparsemodel", quality, timing, unit_of_array(A)))
    return out
