"""A dense matrix in a file that is larger than the memory it is allowed to use."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import Record, Timing, peak_resident
from benchmarks.options import Options

P = 5000
K = 20
RIDGE = 0.1


def run(options: Options) -> list[Record]:
    """Return time against the disk's own, and the resident memory; the file is removed again."""
    gigabytes = 0.1 if options.quick else options.gigabytes
    n = round(gigabytes * 2**30 / (8 * P))
    path = options.scratch / "out-of-core.bin"
    free = shutil.disk_usage(options.scratch).free / 2**30
    if free < 1.02 * gigabytes:
        raise SystemExit(f"{options.scratch} has {free:.1f} GB free, not {gigabytes:g}.")
    try:
        _write(path, n)
        return list(_calls(path, n, gigabytes))
    finally:
        path.unlink(missing_ok=True)


def _write(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n, 2000):
            file.write(rng.standard_normal((min(2000, n - start), P)).tobytes())


def _calls(path: Path, n: int, gigabytes: float) -> Iterator[Record]:
    """Yield what solving, certifying and proving cost, one after the other."""
    A = np.memmap(path, dtype=np.float64, mode="r", shape=(n, P))
    rng = np.random.default_rng(1)
    x = np.zeros(P)
    x[rng.choice(P, K, replace=False)] = rng.choice([-1.0, 1.0], K)
    design: Any = sm.as_design(A)
    b = design.matvec(x) + rng.standard_normal(n)
    unit = _unit(design)
    _forget(path)
    reading = _read(path)
    w = sm.Variable(P)
    goal = sm.minimize(sm.squared_loss(design @ w, b) + sm.ridge(w, RIDGE))
    problem = sm.Problem(goal, sm.card(w) <= K)
    for name, call in (
        ("solve", problem.solve),
        ("certify", problem.certify),
        ("prove", problem.prove),
    ):
        _forget(path)
        before = design.bytes_read
        began, clock = time.process_time(), time.perf_counter()
        answer: Any = call()
        wall, cpu = time.perf_counter() - clock, time.process_time() - began
        readings = (design.bytes_read - before) / A.nbytes
        gap = (answer.value - answer.bound) / answer.value
        disk = f"{reading:.1f} s"
        if readings >= 0.1:
            disk = f"{wall / (readings * reading):.2f} times the disk's own {disk} a reading"
        yield Record(
            "out_of_core",
            f"{gigabytes:g} GB, n={n}, p={P}, k={K}: {name}",
            "sparsemodel",
            {"error": float(np.linalg.norm(w.value - x) / np.linalg.norm(x)), "gap": gap},
            Timing(cpu, wall, cpu, 1),
            unit,
            notes=(
                f"peak resident {peak_resident() / 1024:.2f} GiB so far; {readings:.1f} readings "
                f"of the file; {disk}"
            ),
            extra={"disk_seconds": reading, "readings": readings},
        )


def _unit(design: Any) -> float:
    began = time.process_time()
    design.rmatvec(design.matvec(np.ones(P)))
    return time.process_time() - began


def _forget(path: Path) -> None:
    """Take the file out of the page cache, as far as the system does that."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _read(path: Path) -> float:
    """Return the seconds of reading the file from front to back without looking at it."""
    buffer = bytearray(2**26)
    clock = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - clock
