"""A certificate of precision matrices with one pattern of edges, every line computed again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker import files
from sparsemodel.checker.files import require
from sparsemodel.checker.graphs.graph import (
    Graph,
    columns,
    eigenvalues,
    infimum,
    searched,
    summed,
    witnessed,
)
from sparsemodel.checker.proof.arithmetic import UNIT
from sparsemodel.checker.statements import claim_of, gap_of


def check(body: dict[str, Any], data: files.Data) -> str:
    """Check everything and return the claim; what does not hold is raised as :class:`Refuted`."""
    graphs = _matrices(body["problem"], data)
    g, witness = graphs[0], body["witness"]
    xs = columns(graphs, witness["x"])
    omegas = [own.matrix(x) for own, x in zip(graphs, xs, strict=True)]
    pattern = np.any([x != 0.0 for x in xs], axis=0)
    edges = _edges(g, body, pattern, omegas)
    require(edges <= g.k, "the matrix has more than k edges")
    files.said("feasible", f"{edges} counted edges", f"at most {g.k}; eigenvalues within bounds")
    found = [_likelihood(own, omega) for own, omega in zip(graphs, omegas, strict=True)]
    most = summed(graphs, [nats + slack for nats, slack in found], 1.0)
    value, top = _scaled(g, summed(graphs, [nats for nats, _ in found], 0.0)), _scaled(g, most, 1.0)
    stated, upper = files.real(body["value"]), files.real(body["upper"])
    weight = math.fsum(own.weight for own in graphs)
    size = weight + abs(value - g.constant)
    fits = _near(g, stated, value, size) and value <= upper and _near(g, upper, top, size)
    words = f"lines 'value' and 'upper' say {stated!r} and {upper!r}, and it is {value!r}"
    require(fits, words)
    files.said("objective P", repr(stated), repr(value))
    proof = body.get("proof")
    tree = None if proof is None else proof.get("tree")
    if proof is not None and (tree is None or len(graphs) > 1):
        raise files.NotChecked("a search over edges of which no record was kept")
    bounds = _bounds(graphs, witness, omegas, pattern, max(most, upper - g.constant), tree)
    if tree is not None:
        files.said("search", f"{len(tree['nodes'])} parts", "each evaluated again")
    for line, bound in zip(("trivial_bound", "bound", "restricted_bound"), bounds, strict=True):
        one, two = files.real(body[line]), _scaled(g, bound, -1.0)
        # Eigenvalues differ by their rounding from one machine to another.
        fits = _near(g, one, two, max(size, abs(two - g.constant)))
        require(fits, f"line '{line}' says {one!r}, and {two!r} is proved")
        files.said(line.replace("_", " "), repr(one), repr(two))
    null, bound = files.real(body["null_value"]), files.real(body["bound"])
    files.compare("no edges", null, _scaled(g, _nothing(graphs)), rounded=True)
    gap = gap_of(upper, bound)
    nats = 0.5 * gap / weight
    files.compare("gap", files.real(body["gap"]), gap)
    files.compare("nats per sample", files.real(body["nats_per_sample"]), nats)
    share, reach = math.inf, null - bound
    if math.isfinite(gap) and math.isfinite(reach):
        share = 0.0 if nats <= 1e-9 else gap / reach if reach > 0.0 else 1.0
    within = 0.5 * gap_of(upper, files.real(body["restricted_bound"])) / weight
    claim = claim_of(math.isfinite(upper), share, False, within <= 1e-6)
    files.compare("claim", body["claim"], claim)
    samples = body["problem"].get("samples")
    files.write(f"  not compared: method, active, assumptions (words), samples ({samples})")
    files.write("  not proved: rounding of eigenvalues is bounded as of a backward stable method")
    return claim


def _matrices(facts: dict[str, Any], data: files.Data) -> list[Graph]:
    """Return the problem of each matrix; those of several differ in data, weight and bounds."""
    graphs = [Graph(facts, data)]
    for one in facts.get("others") or []:
        g = Graph(one, data)
        same = (g.p, g.k, one["structure"], one["names"], g.constant)
        fits = same == (graphs[0].p, graphs[0].k, facts["structure"], facts["names"], 0.0)
        require(fits, "the matrices in the file have different patterns, or a constant each")
        require(one.get("others") is None, "line 'problem.others' is nested")
        one.get("samples")
        graphs.append(g)
    return graphs


def _scaled(g: Graph, total: float, direction: float = 0.0) -> float:
    """Return the objective for a weighted sum, rounded up or down."""
    if not math.isfinite(total):
        return total
    return total + g.constant + direction * 4.0 * UNIT * (abs(total) + abs(g.constant))


def _near(g: Graph, one: float, two: float, size: float) -> bool:
    """Beside a large constant sums may differ by a place, and are rounded by more."""
    return files.near(one, two, size) or abs(one - two) <= 2.0 * UNIT * abs(g.constant)


def _likelihood(g: Graph, omega: Any) -> tuple[float, float]:
    """Return the likelihood of a feasible matrix, and what rounding may add to it.

    Its determinant is that of the matrix with a diagonal near one, in units that are powers of two.
    """
    words = "a matrix is not positive definite"
    require(np.all(np.diag(omega) > 0.0), words)
    e = -np.rint(0.5 * np.log2(np.diag(omega))).astype(int)
    near_one = np.ldexp(omega, e[:, None] + e)
    sigma, error = eigenvalues(near_one)
    require(sigma[0] - error > 0.0, words)
    ends, far = eigenvalues(omega)
    fits = ends[0] >= g.alpha - far and ends[-1] <= g.beta + far
    require(fits, "the eigenvalues of the matrix are outside of their bounds")
    products, shift = (g.S * omega).ravel(), 2.0 * math.log(2.0) * float(e.sum())
    logs = np.append(2.0 * np.log(np.diag(np.linalg.cholesky(near_one))), -shift)
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


def _edges(g: Graph, body: dict[str, Any], pattern: Any, omegas: Any) -> int:
    """Compare the list of edges and return how many are counted."""
    on = np.flatnonzero(pattern & ~g.diagonal)
    names = body["problem"]["names"] or [str(i) for i in range(g.p)]
    fits = len(on) == len(body["edges"])
    require(fits, f"line 'edges' has {len(body['edges'])} of {len(on)} edges")
    for e, edge in zip(on, body["edges"], strict=True):
        i, j = int(g.rows[e]), int(g.cols[e])
        given = edge["partial_correlation"], *(edge.get("others") or [])
        stated = [files.real(value) for value in given]
        found = [float(-o[i, j] / np.sqrt(o[i, i] * o[j, j])) for o in omegas]
        fits = (edge["one"], edge["other"], edge["names"]) == (i, j, [names[i], names[j]])
        fits = fits and len(stated) == len(found)
        fits = fits and all(map(files.near, stated, found, [1.0] * len(found)))
        require(fits, f"line 'edges' is wrong at the edge ({i}, {j})")
    files.said("edges", len(body["edges"]), len(on))
    return int(np.sum(pattern & g.counted))


def _bounds(
    graphs: list[Graph], witness: Any, omegas: Any, pattern: Any, most: float, tree: Any
) -> Any:
    """Return weighted the trivial bound, that of witness and search, that for the point's edges."""
    weight = math.fsum(g.weight for g in graphs)
    if witness.get("level") is not None:  # any upper bound on the optimum will do
        level = files.real(witness["level"]) * weight
        most = max(most, level + 16.0 * UNIT * abs(level))
        require(math.isfinite(most), "line 'witness.level' is not finite")
    free = summed(graphs, [g.trivial() for g in graphs], -1.0)
    best = max(free, witnessed(graphs, witness, most))
    if tree is not None:
        top = most / weight
        nats = searched(graphs[0], top + 16.0 * UNIT * abs(top), tree)
        best = max(best, summed(graphs, [nats], -1.0))
    given = files.array(witness["restricted"])
    whole = (
        graphs
        if given is None or len(given) == len(pattern)
        else [g.everything()[0] for g in graphs]
    )
    duals = [None] * len(graphs) if given is None else columns(whole, witness["restricted"])
    within = []
    for g, omega, other, own in zip(graphs, omegas, whole, duals, strict=True):
        B = np.linalg.inv(omega) if own is None else other.matrix(own)
        on = pattern | ~g.counted
        rows, cols = g.rows[on], g.cols[on]
        B = 0.5 * (B + B.T)
        B[rows, cols] = B[cols, rows] = g.S[rows, cols]  # what is left is free off the support
        sigma, error = eigenvalues(B)
        within.append(infimum(sigma - error, g.alpha, g.beta, 0.0))
    return free, best, max(best, summed(graphs, within, -1.0))
