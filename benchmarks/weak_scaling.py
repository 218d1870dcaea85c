"""What more workers cost: ``python -m benchmarks.weak_scaling`` counts, simulates, writes the page.

How often a call goes to the workers, and with what, is counted on blocks in this process; what that
takes on many workers is computed from a few assumed speeds, all of which the page states.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sparsemodel as sm
from sparsemodel.designs.remote import columns, workers
from sparsemodel.numerics.objectives import distributed

ROWS, COLUMNS, K, BLOCKS = 40_000, 300, 5, 4
WORKERS = (1, 2, 10, 100, 1000)
SHARE = 2**30
"""Bytes of data on each worker."""
FAN_IN = 8

STORAGE, MEMORY, NETWORK = 0.2e9, 8e9, 1e9
"""Bytes a second: a worker from storage, a worker from its memory, one machine over the network."""
OPERATIONS = 2e10
"""Floating-point operations a second of a worker, in products of matrices."""

LATENCY, TASK = 2e-3, 3e-4
"""Seconds until a result is known elsewhere, and of the scheduler for a task."""

_WHOLE = frozenset(
    {
        *("_totalled", "applied", "_product", "_sparse_product", "_nonfinite"),
        *("values and gradient", "gradient", "hessian_rows", "full_hessian_product"),
    }
)
"""Tasks that read all of a group's numbers; parts of an objective say by name what they do."""

_COLUMNS = frozenset(
    {
        *("_magnitudes", "_picked_columns", "values", "values_along", "restricted_gradient"),
        *("hessian", "hessian_product", "hessian_diagonal"),
    }
)
"""Tasks that read some columns, counted as ``K`` of them."""

_NEXT_TO_NOTHING = frozenset({"make", "_sampled", "_picked", "nothing"})
"""Tasks that read no numbers or few rows; those of a fingerprint are counted as copies."""

_BY_ROW = frozenset({"_product", "_sparse_product"})


@dataclass(frozen=True)
class Counts:
    """What a call did: trips to the workers, readings of all data there, what came back."""

    trips: int
    readings: float
    grams: int
    """Matrices of products of all columns; they take ``n p^2`` operations each."""
    numbers: int
    """Back from each trip that adds up, altogether; of the order of ``p``."""
    by_row: int
    """Vectors with a number for each row that came back."""
    copies: float
    """How often all rows came back (for a fingerprint)."""


@contextmanager
def counting(found: list[tuple[str, int]]) -> Iterator[None]:
    """Note the kind of every trip, and how many rows or numbers it brings back."""
    inner, kept, trip = workers.placed, columns.KEPT_BYTES, distributed._TRIP

    def placed(tasks: Sequence[Any]) -> list[Any]:
        out = inner(tasks)
        name = tasks[0][0].__name__ if tasks else "nothing"
        if name == "call":
            name, (_, _, *more) = tasks[0][2:]
            name += " and gradient" * (name == "values" and more[0])
        if name != "_sum":
            found.append((name, int(sum(np.size(part) for part in out))))
        return out

    workers.placed, columns.KEPT_BYTES = placed, 0  # no column of so many rows comes over
    distributed._TRIP = 0  # and readings are dearer than trips
    try:
        yield
    finally:
        workers.placed, columns.KEPT_BYTES, distributed._TRIP = inner, kept, trip


def counts(call: Callable[[], Any]) -> Counts:
    """Return what a call did."""
    found: list[tuple[str, int]] = []
    with counting(found):
        call()
    kinds = Counter(name for name, _ in found)
    unknown = set(kinds) - _WHOLE - _COLUMNS - _NEXT_TO_NOTHING
    if unknown:
        raise ValueError(f"Nobody has said how much these tasks read: {', '.join(sorted(unknown))}")
    readings = sum(c * ((n in _WHOLE) + (n in _COLUMNS) * K / COLUMNS) for n, c in kinds.items())
    rows = sum(size for name, size in found if name == "_picked")
    adding = [size for name, size in found if name not in _BY_ROW and name != "_picked"]
    return Counts(
        trips=len(found),
        readings=readings,
        grams=kinds["applied"],
        numbers=sum(adding) // BLOCKS,
        by_row=sum(kinds[name] for name in _BY_ROW),
        copies=rows / (ROWS * COLUMNS),
    )


def seconds(what: Counts, many: int) -> tuple[float, float]:
    """Return the time of a call on so many workers without what brings all rows, and that."""
    levels = max(1, math.ceil(math.log(many, FAN_IN))) if many > 1 else 1
    tasks = many * (1.0 + 1.0 / (FAN_IN - 1.0))
    trips = what.trips * (LATENCY * (1 + levels) + TASK * tasks)
    reading = what.readings * SHARE / MEMORY
    rows = SHARE / (8 * COLUMNS)
    reading += what.grams * 2.0 * rows * COLUMNS**2 / OPERATIONS
    back = 8.0 * what.numbers * min(many, FAN_IN) * levels / NETWORK
    back += what.by_row * 8.0 * rows * many / NETWORK
    return trips + reading + back, what.copies * SHARE * many / NETWORK


def posed(loss: Any) -> sm.Problem:
    """Return a problem on blocks in this process."""
    import dask.array as da

    rng = np.random.default_rng(0)
    A = rng.standard_normal((ROWS, COLUMNS))
    score = A[:, :K].sum(axis=1) + rng.standard_normal(ROWS)
    target = score if loss is sm.squared_loss else np.where(score > 0.0, 1.0, -1.0)
    blocks = da.from_array(A, chunks=(ROWS // BLOCKS, COLUMNS))  # type: ignore[no-untyped-call]
    w = sm.Variable(COLUMNS)
    goal = sm.minimize(loss(sm.as_design(blocks) @ w, target) + sm.ridge(w, 0.1))
    return sm.Problem(goal, sm.card(w) <= K)


def page() -> str:
    """Return the page."""
    found = {}
    for name, loss in (("squared", sm.squared_loss), ("logistic", sm.logistic_loss)):
        problem = posed(loss)
        found[f"{name}, solve"] = counts(problem.solve)
        found[f"{name}, certify"] = counts(problem.certify)
        found[f"{name}, path to k = 10"] = counts(partial(problem.path, range(1, 11)))
    lines = [
        _HEAD,
        "",
        "| call | trips | readings | vectors with one number per row | copies of all rows |",
    ]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for name, one in found.items():
        counted = f"{one.trips} | {one.readings:.3g} | {one.by_row} | {one.copies:.2g}"
        lines.append(f"| {name} | {counted} |")
    lines += ["", _SIMULATED, "", "| workers | data | loading | " + " | ".join(found) + " |"]
    lines.append("| ---: " * (3 + len(found)) + "|")
    for many in WORKERS:
        cells = [str(many), _size(many * SHARE), _time(SHARE / STORAGE)]
        for one in found.values():
            rest, rows = seconds(one, many)
            cells.append(_time(rest) + (f" + {_time(rows)}" if one.copies >= 0.01 else ""))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", _END, ""])


def _size(size: float) -> str:
    return f"{size / 2**40:.3g} TiB" if size >= 2**39 else f"{size / 2**30:.3g} GiB"


def _time(value: float) -> str:
    return f"{value / 60.0:.3g} min" if value >= 100.0 else f"{value:.2g} s"


_HEAD = f"""# What a terabyte costs

`python -m benchmarks.weak_scaling` writes this page. It solves a problem with {ROWS} x {COLUMNS}
numbers in {BLOCKS} blocks and `k = {K}`, counts the work of the workers, and computes from the
counts how long calls would take with more workers and more data. Nothing below was measured on a
cluster.

A trip is one request to all workers with its answer; a reading is one pass of the workers over all
data."""

_SIMULATED = f"""The second table assumes that the counts stay the same with more rows, and:

- a worker holds {SHARE / 2**30:g} GiB, reads its memory at {MEMORY / 1e9:g} GB/s and its storage at
  {STORAGE / 1e9:g} GB/s, and multiplies matrices at {OPERATIONS / 1e9:g} Gflop/s;
- the network of a machine carries {NETWORK / 1e9:g} GB/s, and its latency is {1e3 * LATENCY:g} ms;
- the scheduler takes {1e3 * TASK:g} ms for a task;
- results are added up in a tree with {FAN_IN} branches at each node."""

_END = """The time after a plus sign is that of copying all rows to one machine for the
fingerprint of a certificate, a hash of the rows in their order. The other times grow with the
number of workers for two reasons: each trip has one task for each worker, and vectors have one
number for each row."""


def main() -> None:
    """Write the page where it belongs, or elsewhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/scaling.md"))
    out = parser.parse_args().out
    out.write_text(page())
    print(out)


if __name__ == "__main__":
    main()
