"""The matrix on a GPU, in the arrays of whatever library finds one, against the same in memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.measure import NothingToMeasure, Record, timed, unit_of_array
from benchmarks.options import Options

LIBRARIES = ("torch", "jax", "cupy")


def run(options: Options) -> list[Record]:
    """Return the times of solves and certificates with NumPy's array and with each library's."""
    found = [place for library in LIBRARIES for place in _places(library)]
    if not found:
        raise NothingToMeasure(
            "this machine has no GPU that PyTorch, JAX or CuPy can see; nothing was measured"
        )
    n, p, k = (500, 4000, 20) if options.quick else (10000, 20000, 50)
    rng = np.random.default_rng(0)
    full, x = rng.standard_normal((n, p), dtype=np.float32), np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    y = np.where(full @ x + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    out: list[Record] = []
    places: list[tuple[str, Callable[[Any], Any]]] = [("NumPy", np.asarray), *found]
    for dtype in (np.float64, np.float32):
        here = full.astype(dtype)
        unit, case = unit_of_array(here), f"n={n}, p={p}, k={k}, {np.dtype(dtype).name}"
        for name, put in places:
            try:
                A = put(here)
            except (TypeError, ValueError, RuntimeError) as error:
                if name == "NumPy":
                    raise
                print(f"{name} takes no {np.dtype(dtype).name}: {error}", flush=True)
                continue
            out += _measured(case, name, sm.as_design(A), y, k, unit, options.repeats)
    return out


def _measured(
    case: str, name: str, A: Any, y: Any, k: int, unit: float, repeats: int
) -> Iterator[Record]:
    def posed() -> sm.Problem:
        w = sm.Variable(A.shape[1])
        goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3))
        return sm.Problem(goal, sm.card(w) <= k)

    posed().solve()  # kernels are compiled
    solution, timing = timed(lambda: posed().solve(), repeats)
    quality = {"value": float(solution.value)}
    yield Record("gpu", f"solve, {case}", name, quality, timing, unit, solution.passes)
    certificate, timing = timed(lambda: posed().certify(), 1)
    quality = {"bound": float(certificate.bound)}
    yield Record("gpu", f"certify, {case}", name, quality, timing, unit)


def _places(library: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield the GPUs that a library sees: a name, and what puts an array there."""
    try:
        package = importlib.import_module(library)
    except ImportError:
        return
    if library == "torch":
        if package.cuda.is_available():
            yield "PyTorch, CUDA", lambda a: package.asarray(a).to("cuda")
        if package.backends.mps.is_available():
            yield "PyTorch, MPS", lambda a: package.asarray(a).to("mps")
    elif library == "jax":
        devices = [device for device in package.devices() if device.platform != "cpu"]
        if devices:
            yield f"JAX, {devices[0].device_kind}", lambda a: package.device_put(a, devices[0])
    else:
        try:
            devices = list(range(package.cuda.runtime.getDeviceCount()))
        except package.cuda.runtime.CUDARuntimeError:
            return
        if devices:
            yield "CuPy", package.asarray
