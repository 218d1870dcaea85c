"""Exact support recovery in noisy linear regression, p=500, 50 coefficients."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, Timing, timed, unit_of_array
from benchmarks.options import Options
from benchmarks.peers.call import ask
from benchmarks.problems import linear_recovery

PEERS = ("scikit-learn OMP", "abess", "skglm MCP")
K = 50


def run(options: Options) -> list[Record]:
    """Return shares of seeds with the exact support, and median times."""
    seeds = 3 if options.quick else 20
    out = []
    for n in (200, 300, 400):
        lines = []
        for seed in range(seeds):
            A, b, x = linear_recovery(n, seed)

            def solve(A: Any = A, b: Any = b) -> Any:
                w = sm.Variable(500)
                problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= K)
                return problem.solve()

            solution, timing = timed(solve, 1)
            exact = np.array_equal(solution.support, np.flatnonzero(x))
            lines.append(
                {
                    "solver": "sparsemodel",
                    "quality": {"exact": exact},
                    "unit": unit_of_array(A),
                    **vars(timing),
                }
            )
        task = {"family": "recovery", "n": n, "k": K, "seeds": seeds, "solvers": PEERS}
        lines += ask(options, task | {"repeats": 1})
        out += _summaries(n, seeds, lines)
    return out


def _summaries(n: int, seeds: int, lines: list[dict]) -> list[Record]:  # type: ignore[type-arg]
    out = []
    for solver in dict.fromkeys(line["solver"] for line in lines):
        mine = [line for line in lines if line["solver"] == solver and "failure" not in line]
        if not mine:
            continue
        cpu = [line["cpu"] for line in mine]
        wall = statistics.median(line["wall"] for line in mine)
        out.append(
            Record(
                "recovery",
                f"n={n}",
                solver,
                {"exact": float(np.mean([line["quality"]["exact"] for line in mine]))},
                Timing(statistics.median(cpu), wall, min(cpu), len(mine)),
                statistics.median(line["unit"] for line in mine),
                notes=f"{len(mine)} of {seeds} seeds",
            )
        )
    return out
