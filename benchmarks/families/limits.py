"""Time limits: how long calls take that are given less time than they would need.

A limit holds within 10 % and 0.3 s. Every case is one call on a problem that would take several
times as long; it is declared before, and the compiled code is loaded, as in a session that runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm
from benchmarks.measure import Record, Timing, unit_of_array
from benchmarks.options import Options
from benchmarks.problems import autoregressive_logistic, best_subset, random_graph

SHARE, SECONDS = 0.1, 0.3
"""What a limit may be exceeded by: a share of it, and seconds."""


class Case(NamedTuple):
    """A problem, what is asked of it, and the seconds that this may take."""

    name: str
    declare: Callable[[], tuple[sm.Problem, Any]]
    """The problem, and an array of the size of its data."""
    call: str
    limit: float = 1.0


def run(options: Options) -> list[Record]:
    """Return how long each call took, beside its limit."""
    for declare in (_squares, _graph, _logistic, _cox, _operator):
        for call in ("solve", "certify", "prove"):
            if (declare, call) != (_cox, "prove"):  # there is no branching without a conjugate
                getattr(declare(small=True)[0], call)(time_limit=5.0)
    cases = CASES[:1] if options.quick else CASES
    return [_measured(case, 1 if case.limit > 1.0 else min(options.repeats, 3)) for case in cases]


def _measured(case: Case, repeats: int) -> Record:
    """Return the longest of some calls, each on a problem that is declared anew."""
    wall, cpu, data = [], [], None
    for _ in range(repeats):
        problem, data = case.declare()
        if case.call != "solve":
            problem.solve(time_limit=case.limit)
        began, clock = time.process_time(), time.perf_counter()
        getattr(problem, case.call)(time_limit=case.limit)
        cpu.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
    allowed = (1.0 + SHARE) * case.limit + SECONDS
    quality = {
        "limit, s": case.limit,
        "longest, s": max(wall),
        "longest / limit": max(wall) / case.limit,
        "longest / allowed": max(wall) / allowed,
    }
    timing = Timing(float(np.median(cpu)), float(np.median(wall)), min(cpu), repeats)
    unit = unit_of_array(data)
    return Record("limits", f"{case.name}: {case.call}", "sparsemodel", quality, timing, unit)


def _problem(loss: Any, w: Any, k: int, lam: float = 1e-3) -> sm.Problem:
    return sm.Problem(sm.minimize(loss + sm.ridge(w, lam)), sm.card(w) <= k)


def _squares(small: bool = False) -> tuple[sm.Problem, Any]:
    A, b, _ = best_subset(*((60, 20, 3) if small else (3000, 2500, 25)))
    w = sm.Variable(A.shape[1])
    return _problem(sm.squared_loss(A @ w, b), w, 3 if small else 25), A


def _logistic(small: bool = False) -> tuple[sm.Problem, Any]:
    A, y, _ = autoregressive_logistic(*((60, 20, 3) if small else (2000, 10000, 100)))
    w = sm.Variable(A.shape[1])
    return _problem(sm.logistic_loss(A @ w, y), w, 3 if small else 50), A


def _cox(small: bool = False) -> tuple[sm.Problem, Any]:
    A, b, _ = best_subset(*((60, 20, 3) if small else (2000, 3000, 20)))
    w = sm.Variable(A.shape[1])
    times = np.column_stack([np.exp(-b / np.std(b)), np.arange(b.size) % 3 > 0])
    return _problem(sm.cox_loss(A @ w, times), w, 3 if small else 20), A


def _operator(small: bool = False) -> tuple[sm.Problem, Any]:
    A, b, _ = best_subset(*((60, 20, 3) if small else (4000, 3000, 20)))
    operator = aslinearoperator(A)
    w = sm.Variable(A.shape[1])
    return _problem(sm.squared_loss(sm.as_design(operator) @ w, b), w, 3 if small else 20), A


def _graph(small: bool = False) -> tuple[sm.Problem, Any]:
    p = 12 if small else 600
    S, edges = random_graph(p, 3 * p, 4.0 / p)
    omega = sm.Variable((p, p), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(omega, S))
    return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= max(2, int(edges.sum()))), S


CASES = (
    Case("squares, n=3000, p=2500, k=25", _squares, "certify"),
    Case("squares, n=3000, p=2500, k=25", _squares, "solve"),
    Case("squares, n=3000, p=2500, k=25", _squares, "prove"),
    Case("squares, n=3000, p=2500, k=25", _squares, "prove", 20.0),
    Case("graph, p=600", _graph, "solve"),
    Case("graph, p=600", _graph, "certify"),
    Case("graph, p=600", _graph, "prove"),
    Case("graph, p=600", _graph, "solve", 20.0),
    Case("logistic, n=2000, p=10000, k=50", _logistic, "solve"),
    Case("logistic, n=2000, p=10000, k=50", _logistic, "certify"),
    Case("logistic, n=2000, p=10000, k=50", _logistic, "prove"),
    Case("Cox, n=2000, p=3000, k=20", _cox, "solve"),
    Case("Cox, n=2000, p=3000, k=20", _cox, "certify"),
    Case("operator, 4000 x 3000, k=20", _operator, "solve"),
    Case("operator, 4000 x 3000, k=20", _operator, "certify"),
    Case("operator, 4000 x 3000, k=20", _operator, "prove"),
)
