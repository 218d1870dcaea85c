"""A Dask array on two local workers: the same answer as in memory, and what it costs to ask."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, timed, unit_of_array
from benchmarks.options import Options

BLOCKS = 4


def _block(seed: int, rows: int, p: int) -> Any:
    return np.random.default_rng(seed).standard_normal((rows, p))


def run(options: Options) -> list[Record]:
    """Return the solve in memory, on threads, and on a cluster of two processes."""
    try:
        import dask.array as da
        from dask.delayed import delayed
        from distributed import Client, LocalCluster
    except ImportError:
        return []
    n, p, k = (5000, 200, 10) if options.quick else (20000, 1000, 20)
    rng = np.random.default_rng(0)
    A = np.concatenate([_block(seed, n // BLOCKS, p) for seed in range(BLOCKS)])
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    y = np.where(A @ x + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    unit = unit_of_array(A)
    repeats = min(options.repeats, 3)

    def solve(design: Any) -> tuple[Any, Any]:
        w = sm.Variable(p)
        loss = sm.logistic_loss(sm.as_design(design) @ w, y)
        objective = sm.minimize(loss + sm.ridge(w, 1e-3))
        return sm.Problem(objective, sm.card(w) <= k).solve("nhtp"), w.value

    case = f"n={n}, p={p}, k={k}, logistic"
    (near, expected), timing = timed(lambda: solve(A), repeats)
    out = [
        Record("distributed", case, "sparsemodel", {"difference": 0.0}, timing, unit, near.passes)
    ]
    # Blocks are made where they stay, as a cluster would read them from its own disks.
    blocks = [
        da.from_delayed(  # type: ignore[no-untyped-call]
            delayed(_block, pure=True)(seed, n // BLOCKS, p), (n // BLOCKS, p), dtype=np.float64
        )
        for seed in range(BLOCKS)
    ]
    spread = da.concatenate(blocks)  # type: ignore[no-untyped-call]
    (far, value), timing = timed(lambda: solve(sm.as_design(spread)), repeats)
    out.append(_record(case, "Dask, threads", far, value, expected, timing, unit))
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        Client(cluster),  # type: ignore[no-untyped-call]
    ):
        design = sm.as_design(spread)
        solve(design)  # the blocks arrive
        (far, value), timing = timed(lambda: solve(design), repeats)
    out.append(_record(case, "Dask, two processes", far, value, expected, timing, unit))
    return out


def _record(
    case: str, solver: str, solution: Any, value: Any, expected: Any, timing: Any, unit: float
) -> Record:
    quality = {"difference": float(np.abs(value - expected).max())}
    notes = f"{solution.iterations} iterations; the CPU time is this process's alone"
    return Record("distributed", case, solver, quality, timing, unit, solution.passes, notes=notes)
