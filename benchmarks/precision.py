r"""Sparse precision matrices beside GraphicalLasso, at the same number of edges.

The protocol of Yuan, Li and Zhang (JMLR 2018, section 6.3.1): :math:`\Omega = \Theta + \sigma I`
with entries of :math:`\Theta` equal to 1 with probability 0.1, the condition number equal to
``p``, and 100 samples. Every method gets the true number of edges; GraphicalLasso finds its
penalty by bisection and is then refitted without penalty on its ``k`` largest edges.

    python -m benchmarks.precision                    # p = 60, 120, 200
    python -m benchmarks.precision --order 1000 --probability 0.004 --samples 500 --no-lasso

Prints, averaged over seeds: objective (-log det + trace, lower is better), F-score of the edges
(higher is better) and CPU seconds of the whole process.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import sparsemodel as sm
from benchmarks.problems import random_graph
from sparsemodel.interfaces import Backend, BoolArray, Context, FloatArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.modelling.precision_matrices.covariance import default_bounds
from sparsemodel.numerics import top_k
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective
from sparsemodel_backends.precision import (
    PrecisionExchange,
    PrecisionFoBa,
    PrecisionGraHTP,
    PrecisionGraSP,
    PrecisionSwap,
)


class Instance(NamedTuple):
    covariance: FloatArray
    edges: BoolArray
    samples: int

    @property
    def k(self) -> int:
        return int(np.triu(self.edges, 1).sum())

    def form(self) -> SparsePrecision:
        alpha, beta = default_bounds(self.covariance)
        return SparsePrecision.build(
            self.covariance, self.k, alpha=alpha, beta=beta, samples=self.samples
        )


def instance(p: int, samples: int, probability: float, seed: int) -> Instance:
    return Instance(*random_graph(p, samples, probability, seed), samples)


class Score(NamedTuple):
    objective: float
    f_score: float
    cpu: float


def scored(data: Instance, omega: FloatArray, value: float, cpu: float) -> Score:
    found, true = np.triu(omega, 1) != 0.0, np.triu(data.edges, 1)
    f_score = 2.0 * float((found & true).sum()) / float(found.sum() + true.sum())
    return Score(value, f_score, cpu)


def by_backend(backend: Backend) -> Callable[[Instance], Score]:
    def run(data: Instance) -> Score:
        form = data.form()
        began = time.process_time()
        objective = precision_objective(form)
        point = backend.solve(objective, Context(minimise_precision_on_support)).point
        cpu = time.process_time() - began
        return scored(data, form.matrix(point.x), point.value, cpu)

    return run


def by_default(data: Instance) -> Score:
    """Solve by the compiler's own plan, its making included."""
    Omega = sm.Variable(data.covariance.shape, symmetric=True)
    loss = sm.gaussian_nll(Omega, data.covariance, samples=data.samples)
    problem = sm.Problem(sm.minimize(loss), sm.card(sm.offdiag(Omega)) <= 2 * data.k)
    began = time.process_time()
    solution = problem.solve()
    cpu = time.process_time() - began
    return scored(data, np.asarray(Omega.value), solution.value, cpu)


def by_lasso(data: Instance) -> Score:
    """Bisect the penalty of scikit-learn's graphical_lasso to ``k`` edges and refit."""
    from sklearn.covariance import graphical_lasso

    S, k = data.covariance, data.k
    high = float(np.abs(np.triu(S, 1)).max())
    low, best, away = 1e-3 * high, np.eye(S.shape[0]), np.inf
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(12):
            penalty = float(np.sqrt(low * high))
            try:
                _, precision = graphical_lasso(S, penalty, tol=1e-3, max_iter=200)
            except FloatingPointError:
                low = penalty
                continue
            edges = int(np.count_nonzero(np.abs(np.triu(precision, 1)) > 1e-10))
            if abs(edges - k) < away:
                best, away = precision, abs(edges - k)
            if away <= 0.005 * k:
                break
            low, high = (penalty, high) if edges > k else (low, penalty)
    cpu = time.process_time() - began
    form = data.form()
    objective = precision_objective(form)
    strengths = form.sparsity.unit_scores(np.abs(form.entries(best)))
    support = form.sparsity.coordinates(top_k(strengths, k))
    refit = minimise_precision_on_support(objective, support, objective.origin())
    return scored(data, form.matrix(refit.x), refit.value, cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--order", type=int, nargs="+", default=[60, 120, 200])
    parser.add_argument("--probability", type=float, default=0.1)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="the published algorithms, too")
    parser.add_argument("--no-lasso", action="store_true")
    options = parser.parse_args()
    methods: dict[str, Callable[[Instance], Score]] = {
        "solve()": by_default,
        "precision_swap": by_backend(PrecisionSwap()),
    }
    if max(options.order) <= 200:
        methods["precision_exchange"] = by_backend(PrecisionExchange())
    if options.all:
        methods["precision_grahtp"] = by_backend(PrecisionGraHTP())
        methods["precision_grasp"] = by_backend(PrecisionGraSP())
        methods["precision_foba"] = by_backend(PrecisionFoBa(batch=5))
    if not options.no_lasso:
        methods["graphical_lasso + refit"] = by_lasso
    print(f"{'p':>5} {'edges':>6} {'method':<26} {'objective':>10} {'F':>6} {'CPU s':>8}")
    for p in options.order:
        data = [
            instance(p, options.samples, options.probability, seed) for seed in range(options.seeds)
        ]
        for name, method in methods.items():
            mean = np.mean([method(one) for one in data], axis=0)
            edges = int(np.mean([one.k for one in data]))
            print(f"{p:>5} {edges:>6} {name:<26} {mean[0]:>10.2f} {mean[1]:>6.3f} {mean[2]:>8.2f}")


if __name__ == "__main__":
    main()
