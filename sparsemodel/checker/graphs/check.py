"""A certificate of a precision matrix, every line computed again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.files import Data, NotChecked, Refuted, array, real
from sparsemodel.checker.graphs.graph import Graph, eigenvalues, infimum
from sparsemodel.checker.graphs.pattern import columns, matrices, summed, trivial, witnessed
from sparsemodel.checker.graphs.search import searched
from sparsemodel.checker.proof.arithmetic import UNIT
from sparsemodel.checker.statements import Report, claim_of, gap_of, near


def check(body: dict[str, Any], data: Data, report: Report) -> str:
    """Check everything and return the claim; what does not hold is raised as :class:`Refuted`."""
    graphs = matrices(body["problem"], data)
    for g in graphs:
        report.problem(g.words)
        report.line("data", "probes of S", g.source)
    g, witness = graphs[0], body["witness"]
    xs = columns(graphs, array(witness["x"]))
    omegas = [own.matrix(x) for own, x in zip(graphs, xs, strict=True)]
    pattern = np.any([x != 0.0 for x in xs], axis=0)
    edges = _edges(g, body, pattern, omegas, report)
    if edges > g.k:
        raise Refuted("the matrix has more than k edges.")
    report.line("feasible", f"{edges} counted edges", f"at most {g.k}; eigenvalues within bounds")
    found = [_likelihood(own, omega) for own, omega in zip(graphs, omegas, strict=True)]
    likelihoods, most = [nats for nats, _ in found], [nats + slack for nats, slack in found]
    value = _scaled(g, summed(graphs, likelihoods, 0.0), 0.0)
    top = _scaled(g, summed(graphs, most, 1.0), 1.0)
    stated, upper = real(body["value"]), real(body["upper"])
    weight = math.fsum(own.weight for own in graphs)
    size = weight + abs(value - g.constant)
    if not near(stated, value, size) or not (value <= upper and near(upper, top, size)):
        raise Refuted(
            f"lines 'value' and 'upper' say {stated!r} and {upper!r}, and it is {value!r}."
        )
    report.line("objective P", repr(stated), repr(value))
    tree = None if body.get("proof") is None else body["proof"].get("tree")
    if body.get("proof") is not None and (tree is None or len(graphs) > 1):
        raise NotChecked("a search over edges of which no record was kept")
    most_of_all = max(summed(graphs, most, 1.0), upper - g.constant)
    bounds = _bounds(graphs, witness, omegas, pattern, most_of_all, tree)
    if tree is not None:
        report.line("search", f"{len(tree['nodes'])} parts", "each evaluated again")
    _compare(body, g, bounds, size, report)
    report.same("no edges", real(body["null_value"]), _scaled(g, _nothing(graphs), 0.0))
    gap = gap_of(upper, real(body["bound"]))
    report.exactly("gap", real(body["gap"]), gap)
    report.exactly("nats per sample", real(body["nats_per_sample"]), 0.5 * gap / weight)
    reach = real(body["null_value"]) - real(body["bound"])
    share = math.inf
    if math.isfinite(gap) and math.isfinite(reach):
        small = 0.5 * gap / weight <= 1e-9
        share = 0.0 if small else gap / reach if reach > 0.0 else 1.0
    within = 0.5 * gap_of(upper, real(body["restricted_bound"])) / weight
    claim = claim_of(math.isfinite(upper), share, False, within <= 1e-6)
    report.exactly("claim", body["claim"], claim)
    samples = body["problem"].get("samples")
    report.unknown(f"method, active, assumptions (words), the number of samples ({samples})")
    report.unknown("rounding of eigenvalues is bounded as for a backward stable method, not proved")
    return claim


def _scaled(g: Graph, total: float, direction: float) -> float:
    """Return the objective for a weighted sum, rounded up or down."""
    if not math.isfinite(total):
        return total
    return total + g.constant + direction * 4.0 * UNIT * (abs(total) + abs(g.constant))


def _likelihood(g: Graph, omega: Any) -> tuple[float, float]:
    """Return the likelihood of a feasible matrix, and what rounding may add to it."""
    sigma, error = eigenvalues(omega)
    if not sigma[0] - error > 0.0:
        raise Refuted("a matrix is not positive definite.")
    if sigma[0] < g.alpha - error or sigma[-1] > g.beta + error:
        raise Refuted("the eigenvalues of the matrix are outside of their bounds.")
    products = (g.S * omega).ravel()
    logs = 2.0 * np.log(np.diag(np.linalg.cholesky(omega)))
    # A factor is exact for a matrix that is off by (p + 1) UNIT |L| |L|' (Higham 2002, 10.3).
    slack = 8.0 * (g.p + 1) * UNIT * float(sigma.sum() * np.linalg.norm(1.0 / sigma))
    slack += 8.0 * UNIT * float(np.abs(products).sum() + np.abs(logs).sum() + g.p)
    return math.fsum(products) - math.fsum(logs), slack


def _nothing(graphs: list[Graph]) -> float:
    """Return the weighted sum without edges."""
    found = []
    for g in graphs:
        d = np.clip(1.0 / np.diag(g.S), g.alpha, g.beta)
        found.append(math.fsum(np.diag(g.S) * d - np.log(d)))
    return summed(graphs, found, 0.0)


def _edges(g: Graph, body: dict[str, Any], pattern: Any, omegas: Any, report: Report) -> int:
    """Compare the list of edges and return how many are counted."""
    on = np.flatnonzero(pattern & ~g.diagonal)
    names = body["problem"]["names"] or [str(i) for i in range(g.p)]
    pairs = [(int(g.rows[e]), int(g.cols[e])) for e in on]
    for (i, j), edge in zip(pairs, body["edges"], strict=False):
        stated = [real(edge["partial_correlation"]), *map(real, edge.get("others") or [])]
        found = [float(-o[i, j] / np.sqrt(o[i, i] * o[j, j])) for o in omegas]
        ends = (edge["one"], edge["other"], edge["names"])
        alike = len(stated) == len(found) and all(map(near, stated, found, [1.0] * len(found)))
        if ends != (i, j, [names[i], names[j]]) or not alike:
            raise Refuted(f"line 'edges' is wrong at the edge ({i}, {j}).")
    if len(pairs) != len(body["edges"]):
        raise Refuted(f"line 'edges' has {len(body['edges'])} of {len(pairs)} edges.")
    report.line("edges", len(body["edges"]), len(pairs))
    return int(np.sum(pattern & g.counted))


def _bounds(
    graphs: list[Graph], witness: Any, omegas: Any, pattern: Any, most: float, tree: Any
) -> Any:
    """Return weighted the trivial bound, that of witness and search, that for the point's edges."""
    weight = math.fsum(g.weight for g in graphs)
    if witness.get("level") is not None:  # any upper bound on the optimum will do
        level = real(witness["level"]) * weight
        most = max(most, level + 16.0 * UNIT * abs(level))
        if not math.isfinite(most):
            raise Refuted("line 'witness.level' is not finite.")
    free = summed(graphs, [trivial(g) for g in graphs], -1.0)
    best = max(free, witnessed(graphs, witness, most))
    if tree is not None:
        top = most / weight
        nats = searched(graphs[0], top + 16.0 * UNIT * abs(top), tree)
        best = max(best, summed(graphs, [nats], -1.0))
    dual = array(witness["restricted"])
    duals = [None] * len(graphs) if dual is None else columns(graphs, dual)
    within = []
    for g, omega, own in zip(graphs, omegas, duals, strict=True):
        B = np.linalg.inv(omega) if own is None else g.matrix(own)
        on = pattern | ~g.counted
        rows, cols = g.rows[on], g.cols[on]
        B = 0.5 * (B + B.T)
        B[rows, cols] = B[cols, rows] = g.S[rows, cols]  # what is left is free off the support
        sigma, error = eigenvalues(B)
        within.append(infimum(sigma - error, g.alpha, g.beta, 0.0))
    return free, best, max(best, summed(graphs, within, -1.0))


def _compare(body: dict[str, Any], g: Graph, bounds: Any, size: float, report: Report) -> None:
    for line, total in zip(("trivial_bound", "bound", "restricted_bound"), bounds, strict=True):
        found, stated = _scaled(g, total, -1.0), real(body[line])
        # Eigenvalues differ by their rounding from one machine to another.
        if not (stated == found or near(stated, found, size)):
            raise Refuted(f"line '{line}' says {stated!r}, and {found!r} is proved.")
        report.line(line.replace("_", " "), repr(stated), repr(found))
