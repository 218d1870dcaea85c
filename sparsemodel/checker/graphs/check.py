"""A certificate of a precision matrix, every line computed again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.files import Data, NotChecked, Refuted, array, real
from sparsemodel.checker.graphs.graph import (
    Graph,
    eigenvalues,
    enclosed,
    infimum,
    minorant,
    modulus,
    smaller,
)
from sparsemodel.checker.graphs.search import searched
from sparsemodel.checker.proof.arithmetic import UNIT
from sparsemodel.checker.statements import Report, claim_of, gap_of, near


def check(body: dict[str, Any], data: Data, report: Report) -> str:
    """Check everything and return the claim; what does not hold is raised as :class:`Refuted`."""
    g = Graph(body["problem"], data)
    report.problem(g.words)
    report.line("data", "probes of S", g.source)
    witness = body["witness"]
    x = _vector(g, array(witness["x"]))
    omega = g.matrix(x)
    edges = _edges(g, body, x, omega, report)
    sigma, error = eigenvalues(omega)
    if edges > g.k or not sigma[0] - error > 0.0:
        raise Refuted("the matrix has more than k edges, or is not positive definite.")
    if sigma[0] < g.alpha - error or sigma[-1] > g.beta + error:
        raise Refuted("the eigenvalues of the matrix are outside of their bounds.")
    report.line("feasible", f"{edges} counted edges", f"at most {g.k}; eigenvalues within bounds")
    products = (g.S * omega).ravel()
    nats = math.fsum(products) - math.fsum(np.log(sigma))
    slack = float((error / (sigma - error)).sum()) + 8.0 * UNIT * float(
        np.abs(products).sum() + np.abs(np.log(sigma)).sum() + g.p
    )
    value, most = g.scaled(nats, 0.0), g.scaled(nats + slack, 1.0)
    stated, upper = real(body["value"]), real(body["upper"])
    size = g.weight + abs(value - g.constant)
    if not near(stated, value, size) or not (value <= upper and near(upper, most, size)):
        raise Refuted(
            f"lines 'value' and 'upper' say {stated!r} and {upper!r}, and it is {value!r}."
        )
    report.line("objective P", repr(stated), repr(value))
    top = max(nats + slack, (upper - g.constant) / g.weight)
    tree = None if body.get("proof") is None else body["proof"].get("tree")
    if body.get("proof") is not None and tree is None:
        raise NotChecked("a search over edges of which no record was kept")
    bounds = _bounds(g, witness, omega, x, top, tree)
    if tree is not None:
        report.line("search", f"{len(tree['nodes'])} parts", "each evaluated again")
    _compare(body, g, bounds, size, report)
    null = math.fsum(np.diag(g.S) * (d := np.clip(1.0 / np.diag(g.S), g.alpha, g.beta)) - np.log(d))
    report.same("no edges", real(body["null_value"]), g.scaled(null, 0.0))
    gap = gap_of(upper, real(body["bound"]))
    report.exactly("gap", real(body["gap"]), gap)
    report.exactly("nats per sample", real(body["nats_per_sample"]), 0.5 * gap / g.weight)
    reach = real(body["null_value"]) - real(body["bound"])
    share = math.inf
    if math.isfinite(gap) and math.isfinite(reach):
        small = 0.5 * gap / g.weight <= 1e-9
        share = 0.0 if small else gap / reach if reach > 0.0 else 1.0
    within = 0.5 * gap_of(upper, real(body["restricted_bound"])) / g.weight
    claim = claim_of(math.isfinite(upper), share, False, within <= 1e-6)
    report.exactly("claim", body["claim"], claim)
    samples = body["problem"].get("samples")
    report.unknown(f"method, active, assumptions (words), the number of samples ({samples})")
    report.unknown("rounding of eigenvalues is bounded as for a backward stable method, not proved")
    return claim


def _vector(g: Graph, x: Any) -> Any:
    if x is None or x.shape != g.rows.shape or not np.all(np.isfinite(x)):
        raise Refuted("a matrix of the witness does not fit, or is not finite.")
    return x


def _edges(g: Graph, body: dict[str, Any], x: Any, omega: Any, report: Report) -> int:
    """Compare the list of edges and return how many are counted."""
    on = np.flatnonzero((x != 0.0) & ~g.diagonal)
    names, d = body["problem"]["names"] or [str(i) for i in range(g.p)], np.sqrt(np.diag(omega))
    pairs = [(int(g.rows[e]), int(g.cols[e])) for e in on]
    for (i, j), edge in zip(pairs, body["edges"], strict=False):
        found = -omega[i, j] / (d[i] * d[j])
        stated = (edge["one"], edge["other"], edge["names"])
        if stated != (i, j, [names[i], names[j]]) or not near(
            real(edge["partial_correlation"]), float(found), 1.0
        ):
            raise Refuted(f"line 'edges' is wrong at the edge ({i}, {j}).")
    if len(pairs) != len(body["edges"]):
        raise Refuted(f"line 'edges' has {len(body['edges'])} of {len(pairs)} edges.")
    report.line("edges", len(body["edges"]), len(pairs))
    return int(np.sum((x != 0.0) & g.counted))


def _bounds(g: Graph, witness: Any, omega: Any, x: Any, upper: float, tree: Any) -> Any:
    """Return in nats the trivial bound, that of witness and search, that for the point's edges."""
    half, zero = np.where(g.diagonal, g.beta, 0.5 * (g.beta - g.alpha)), np.zeros(x.size)
    if witness.get("level") is not None:  # any upper bound on the optimum will do
        upper = max(upper, real(witness["level"]))
        if not math.isfinite(upper):
            raise Refuted("line 'witness.level' is not finite.")
    trivial = g.supports().bound(*minorant(g, zero, 0.0, (g.alpha, g.beta, half)))
    best = trivial
    if witness["final"] is not None:
        mu = witness.get("modulus")
        h, shift, level, box = enclosed(g, witness.get("units"), upper)
        for item in witness["enclosing"]:
            box = smaller(h, np.where(h.diagonal, 0.0, _vector(h, array(item))), level, box)
        if mu is None:
            mu = modulus(box)
        if not 0.0 <= real(mu) < math.inf:
            raise Refuted(f"line 'witness.modulus' says {mu!r}.")
        held = minorant(h, _vector(h, array(witness["final"])), real(mu), box)
        found = h.supports().bound(*held) - shift
        best = max(best, found - 4.0 * UNIT * (abs(found) + abs(shift)))
    if tree is not None:
        best = max(best, searched(g, upper, tree))
    dual = array(witness["restricted"])
    B = np.linalg.inv(omega) if dual is None else g.matrix(_vector(g, dual))
    on = (x != 0.0) | ~g.counted
    rows, cols = g.rows[on], g.cols[on]
    B = 0.5 * (B + B.T)
    B[rows, cols] = B[cols, rows] = g.S[rows, cols]  # what is left is free off the support
    sigma, error = eigenvalues(B)
    return trivial, best, max(best, infimum(sigma - error, g.alpha, g.beta, 0.0))


def _compare(body: dict[str, Any], g: Graph, bounds: Any, size: float, report: Report) -> None:
    for line, nats in zip(("trivial_bound", "bound", "restricted_bound"), bounds, strict=True):
        found, stated = g.scaled(nats, -1.0), real(body[line])
        # Eigenvalues differ by their rounding from one machine to another.
        if not (stated == found or near(stated, found, size)):
            raise Refuted(f"line '{line}' says {stated!r}, and {found!r} is proved.")
        report.line(line.replace("_", " "), repr(stated), repr(found))
