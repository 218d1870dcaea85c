"""What single algorithms cost and recover; each function returns the lines of a table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.algorithms.instances import (
    cosine_sensing,
    gaussian_sensing,
    objective_of,
    recovered,
    run,
)
from benchmarks.measure import timed, unit_of_array
from sparsemodel.designs import SparseDesign
from sparsemodel.interfaces import Backend, Cardinality, Context, SparseRegression, Term
from sparsemodel.losses import HingeLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
from sparsemodel.numerics import (
    QuadraticSwaps,
    RegressionObjective,
    minimise_on_support,
    minimise_restricted,
    newton_solver,
)
from sparsemodel_backends.diht import DIHT
from sparsemodel_backends.foba import FoBa
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.ht_svrg import HTSVRG
from sparsemodel_backends.local_search import LocalSearch
from sparsemodel_backends.nhtp import NHTP
from sparsemodel_backends.omp import OMP
from sparsemodel_backends.sdiht import SDIHT
from sparsemodel_backends.sp import SP

Line = dict[str, Any]


def omp(quick: bool) -> list[Line]:
    """Greedy selection to k = 500 of p = 10000, n = 2500, in products ``A.T @ r`` (CPU)."""
    n, p, k = (500, 2000, 100) if quick else (2500, 10_000, 500)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    b = A[:, :k] @ rng.standard_normal(k) + 0.1 * rng.standard_normal(n)
    r = rng.standard_normal(n)
    product = timed(lambda: A.T @ r, 15)[1].cpu
    out = []
    backends: tuple[Backend, ...] = (OMP(), FoBa())
    for backend in backends:
        began = time.process_time()
        run(backend, objective_of(A, b, k, mean=True))
        seconds = time.process_time() - began
        products = seconds / product
        out.append(
            {
                "backend": backend.name,
                "k": k,
                "CPU s": seconds,
                "A.T @ r": products,
                "per coordinate": products / k,
            }
        )
    return out


def epochs(quick: bool) -> list[Line]:
    """An epoch of the stochastic methods on sparse data, in passes (CPU)."""
    n, p = (4000, 10_000) if quick else (20_000, 50_000)
    rng = np.random.default_rng(0)
    out = []
    for density in (1e-3, 4e-3):
        A = sparse.random_array((n, p), density=density, format="csr", rng=rng)
        y = np.sign(np.asarray(A[:, :50].sum(axis=1)).ravel() - 0.01 * rng.standard_normal(n))
        unit = unit_of_array(A)
        cases = (
            (DIHT(), SmoothedHingeLoss(), 1),
            (SDIHT(), SmoothedHingeLoss(), 1),
            (SDIHT(), HingeLoss(), 1),
            (HTSVRG(), LogisticLoss(), HTSVRG().inner_epochs),
            (HTSVRG(), SquaredLoss(), HTSVRG().inner_epochs),
        )
        for backend, loss, epochs_a_step in cases:
            term = Term(SparseDesign(A), loss, y, np.full(n, 1.0 / n))
            form = SparseRegression((term,), ridge=np.full(p, 1e-3), sparsity=Cardinality(p, 100))
            objective = RegressionObjective(form)
            costs = _steps(backend, objective, 8)
            out.append(
                {
                    "backend": backend.name,
                    "loss": loss.name,
                    "density": density,
                    "passes an epoch": statistics.median(costs) / unit / epochs_a_step,
                    "of the first": costs[0] / unit / epochs_a_step,
                }
            )
    return out


def _steps(backend: Any, objective: RegressionObjective, number: int) -> list[float]:
    context = Context(minimise_restricted)
    state = backend.init(objective, context)
    costs = []
    for _ in range(number):
        began = time.process_time()
        state = backend.step(objective, state, context)
        costs.append(time.process_time() - began)
    return costs


def recovery(quick: bool) -> list[Line]:
    """Success rates of Zhou, Xiu and Qi (2021), figure 1: n = 256, m = 64."""
    trials = 20 if quick else 200
    backends: dict[str, Backend] = {
        "nhtp": NHTP(),
        "nhtp, patient": NHTP(update_every=30, patience=150),
        "htp": GraHTP(),
        "omp": OMP(),
        "sp": SP(),
    }
    out = []
    for make in (gaussian_sensing, cosine_sensing):
        for s in (12, 16, 20, 22, 24, 26):
            line: Line = {"design": make.__name__.split("_")[0], "s": s}
            for name, backend in backends.items():
                successes = 0
                for seed in range(trials):
                    A, b, x = make(np.random.default_rng(seed), 256, 64, s)
                    successes += recovered(run(backend, objective_of(A, b, s)), x)
                line[name] = 100.0 * successes / trials
            out.append(line)
    return out


def swaps(quick: bool) -> list[Line]:
    """What a swap of the exhaustive local search costs for the squared loss, counted and CPU."""
    n, p = (500, 2000) if quick else (2500, 10_000)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    unit = unit_of_array(A)
    out = []
    for k in (20, 100):
        b = A[:, :k] @ np.ones(k) + 0.1 * rng.standard_normal(n)
        objective = objective_of(A, b, k)
        start = minimise_on_support(objective, np.arange(k // 2, k // 2 + k), objective.origin())
        context = Context(minimise_restricted, start=start.x)
        backend = LocalSearch(removal="cheapest")
        state = backend.init(objective, context)
        counted, began, number = objective.work.passes, time.process_time(), 0
        while not state.done and number < 10:
            state = backend.step(objective, state, context)
            number += 1
        seconds = time.process_time() - began
        out.append(
            {
                "k": k,
                "swaps": number,
                "counted passes a swap": (objective.work.passes - counted) / number,
                "CPU passes a swap": seconds / number / unit,
                "prices in closed form": isinstance(state.swaps, QuadraticSwaps),
            }
        )
    return out


def newton(quick: bool) -> list[Line]:
    """Newton systems on a support of k columns: a factorisation against conjugate gradients."""
    n = 1000 if quick else 5000
    rng = np.random.default_rng(0)
    out = []
    for correlation in (0.0, 0.9):
        for k in (125, 250, 500) if quick else (250, 500, 1000, 1500, 2000, 3000):
            A = rng.standard_normal((n, k))
            A += np.sqrt(correlation / (1 - correlation)) * rng.standard_normal((n, 1))
            y = np.where(A[:, 0] + rng.standard_normal(n) > 0.0, 1.0, -1.0)
            objective = objective_of(A, y, k, loss=LogisticLoss(), ridge=1e-3, mean=True)
            point, support = objective.origin(), np.arange(k)
            g = objective.restricted_gradient(point, support)
            line: Line = {"correlation": correlation, "k": k}
            line["factorisation s"] = _solve_time(objective, point, support, g, 1e-14, direct=True)
            for tol in (1e-2, 1e-6, 1e-13):
                line[f"CG to {tol:.0e} s"] = _solve_time(
                    objective, point, support, g, tol, direct=False
                )
            out.append(line)
    return out


def _solve_time(
    objective: RegressionObjective,
    point: Any,
    support: Any,
    g: Any,
    tol: float,
    *,
    direct: bool,
) -> float:
    from sparsemodel.numerics.minimisers import newton as restricted

    limit = restricted.DIRECT_LIMIT
    restricted.DIRECT_LIMIT = 10**9 if direct else 0
    try:
        _, timing = timed(lambda: newton_solver(objective, point, support, tol=tol)(g), 3)
    finally:
        restricted.DIRECT_LIMIT = limit
    return timing.cpu


FIGURES: dict[str, Callable[[bool], list[Line]]] = {
    "omp": omp,
    "epochs": epochs,
    "recovery": recovery,
    "swaps": swaps,
    "newton": newton,
}
"""Each figure by name."""
