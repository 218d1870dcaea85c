r"""Measure plans for sparse precision matrices: how many starts pay.

Chains, grids, hubs, scale-free and random graphs of several orders, with half as many samples as
variables, twice and ten times as many; every recipe gets the true number of edges. The excess of a
recipe is its distance from the best objective found by any, as a share of what edges explain at
all (the likelihood of independent variables less that best one).

    python -m benchmarks.precision_plans                     # a quarter of an hour
    python -m benchmarks.precision_plans --orders 20 40

Times are CPU seconds of the process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import networkx as nx
import numpy as np

import sparsemodel as sm
from sparsemodel.driver import RunOptions, run
from sparsemodel.interfaces import FloatArray

ORDERS = (20, 40, 80, 160, 320)
KINDS = ("chain", "grid", "hubs", "scale-free", "random")
SAMPLES = (0.5, 2.0, 10.0)
LIMIT = 20.0
"""Seconds for one run; what it has found by then counts."""

_TWO_STARTS = "precision_swap > precision_exchange | precision_grasp > precision_exchange"

RECIPES = (
    "precision_swap",
    "precision_exchange",
    "precision_grahtp",
    "precision_grasp",
    "precision_foba",
    "precision_fbs",
    "precision_swap > precision_exchange",
    _TWO_STARTS,
    f"{_TWO_STARTS} | precision_fbs > precision_exchange",
)
"""What was measured."""


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A sample from a known graph."""

    name: str
    data: FloatArray
    edges: int

    def problem(self) -> sm.Problem:
        """Return the problem with the true number of edges."""
        p = self.data.shape[1]
        omega = sm.Variable((p, p), symmetric=True)
        goal = sm.minimize(sm.gaussian_nll(omega, data=self.data))
        return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 2 * self.edges)


def cases(orders: tuple[int, ...]) -> Iterator[Case]:
    """Yield the cases; only the two hardest kinds of the largest order."""
    for p in orders:
        for kind in KINDS if p < max(ORDERS) else KINDS[-2:]:
            for share in SAMPLES if p < max(ORDERS) else SAMPLES[1:2]:
                yield case(kind, p, round(share * p))


def case(kind: str, p: int, n: int, seed: int = 0) -> Case:
    """Return ``n`` observations of about ``p`` variables on a graph of this kind."""
    rng = np.random.default_rng([seed, p, n])
    graph = _graph(kind, p)
    p = graph.number_of_nodes()
    omega = np.zeros((p, p))
    for i, j in graph.edges:
        omega[i, j] = omega[j, i] = rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 0.8)
    omega += (abs(float(np.linalg.eigvalsh(omega)[0])) + 0.2) * np.eye(p)
    data = rng.multivariate_normal(np.zeros(p), np.linalg.inv(omega), size=n, method="cholesky")
    return Case(f"{kind}-p{p}-n{n}", data, graph.number_of_edges())


def _graph(kind: str, p: int) -> Any:
    if kind == "chain":
        return nx.path_graph(p)
    if kind == "grid":
        side = int(np.sqrt(p))
        return nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, p // side))
    if kind == "hubs":
        graph = nx.empty_graph(p)
        graph.add_edges_from((j - j % (p // 5), j) for j in range(p) if j % (p // 5))
        return graph
    if kind == "scale-free":
        return nx.barabasi_albert_graph(p, 2, seed=0)
    return nx.gnm_random_graph(p, 2 * p, seed=0)


def measure(of: Case, recipe: str) -> tuple[float, float]:
    """Return objective and CPU seconds; fresh starts end when two agree, as in chosen plans."""
    problem = of.problem()
    plan = replace(problem.plan(recipe), until_agreement=True)
    _, reduced = problem._compiled().analysis()
    began = time.process_time()
    outcome = run(problem.form, reduced, plan, RunOptions(time_limit=LIMIT))
    return outcome.value, time.process_time() - began


def row(of: Case) -> dict[str, Any]:
    """Return the row of the table: by recipe, the excess and the seconds."""
    n, p = of.data.shape
    found = {recipe: measure(of, recipe) for recipe in RECIPES}
    best = min(value for value, _ in found.values())
    variances = np.var(of.data, axis=0)
    explained = float(np.sum(np.log(variances)) + p) - best
    runs = {
        recipe: [float(f"{max(value - best, 0.0) / explained:.2g}"), float(f"{seconds:.2g}")]
        for recipe, (value, seconds) in found.items()
    }
    return {"name": of.name, "p": p, "n": n, "k": of.edges, "runs": runs}


def main() -> None:
    """Measure and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, nargs="*", default=list(ORDERS))
    orders = tuple(parser.parse_args().orders)
    measure(case("chain", 20, 40), RECIPES[0])  # compiled code is not measured
    rows = []
    for of in cases(orders):
        rows.append(row(of))
        print(rows[-1]["name"], rows[-1]["runs"], flush=True)
    for recipe in RECIPES:
        excess = np.array([r["runs"][recipe][0] for r in rows])
        seconds = np.array([r["runs"][recipe][1] for r in rows])
        print(
            f"{recipe}: as good {np.mean(excess <= 1e-3):.0%}, mean excess {excess.mean():.2%}, "
            f"largest {excess.max():.2%}, {np.mean(seconds):.2f} s"
        )


if __name__ == "__main__":
    main()
