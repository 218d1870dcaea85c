"""Many more observations than features: a path of 50 models of 325724 flights."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.data.load import load
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options


def run(options: Options) -> list[Record]:
    """Return one solve and the path k = 1..50, with their costs in passes of the float32 data."""
    data = load("flights")
    A, y = data.X, np.clip(data.y, -60.0, 180.0)
    unit = unit_of_array(A)
    total = float(np.var(y)) / 2.0

    def problem(k: int) -> Any:
        w, c = sm.Variable(A.shape[1]), sm.Variable()
        loss = sm.squared_loss(A @ w + c, y)
        return sm.Problem(sm.minimize(loss), sm.card(w) <= k)

    def one() -> Any:
        return problem(20).solve()

    def path() -> Any:
        return problem(50).path(range(1, 11 if options.quick else 51))

    case = f"{A.shape[0]} x {A.shape[1]} float32"
    out = []
    for name, call in (("k=20", one), ("path k=1..50", path)):
        result, timing = timed(call, options.repeats)
        value = result.value if name == "k=20" else float(np.asarray(result.objective)[-1])
        out.append(
            Record(
                "flights",
                f"{case}, {name}",
                "sparsemodel",
                {"explained": 1.0 - value / total},
                timing,
                unit,
                passes=result.passes,
                peak_mb=peak_beyond(call),
                notes="; ".join(problem(20).plan().words.reductions) if name == "k=20" else "",
            )
        )
    return out
