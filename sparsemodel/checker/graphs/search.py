r"""The search over the edges of a graph: every part's bound again, in the set of its own matrices.

Parts are those of :mod:`~sparsemodel.checker.proof.tree`, with edges as units. A dual point ``U``,
``mu`` bounds a part as at the top of :mod:`~sparsemodel.checker.graphs.graph`.

A branch also narrows the set of matrices. Let :math:`\varphi(t) = -\log t + s t - \nu t^2 / 2` with
the least eigenvalue ``s`` of ``S + U'`` and a modulus ``nu`` for which every term is convex. A
matrix with the eigenvalue ``t`` lies above the bound by at least :math:`\varphi(t) - \min \varphi`
(von Neumann's inequality): where that is more than what is left, no such matrix matters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.files import Refuted, real
from sparsemodel.checker.graphs.graph import (
    Graph,
    eigenvalues,
    enclosed,
    minimisers,
    minorant,
    modulus,
)
from sparsemodel.checker.proof.arithmetic import UNIT
from sparsemodel.checker.proof.tree import Tree


def searched(g: Graph, upper: float, tree: dict[str, Any]) -> float:
    """Return the bound in nats that a search proves; ``upper`` is one on the optimum."""
    if tree.get("kind") != "parts" or tree["stages"]:
        raise Refuted("the proof is no search over edges.")
    whole, forbidden = g.everything()
    h, shift, level, box = enclosed(whole, tree["units"], upper)
    found = min(float(_Edges(h, level, tree["nodes"]).bound(forbidden, box)), level) - shift
    return found - 4.0 * UNIT * (abs(found) + abs(shift))


class _Edges(Tree):
    """A tree over edges, for the matrices with a likelihood of at most ``upper``."""

    def __init__(self, g: Graph, upper: float, nodes: list[Any]) -> None:
        super().__init__(nodes, g.supports())
        self.g, self.upper = g, upper

    def evaluate(self, record: Any, inside: Any, out: Any, facts: Any) -> tuple[Any, Any]:
        """Return base, gains and the dual point of a record."""
        if record.get("enumerated") is True or "at" in record:
            raise Refuted("a part of the search holds no dual matrix.")
        if "duals" not in record:
            return (-np.inf, np.zeros(self.count), None, 0.0), -np.inf
        V, mu = (np.array([real(v) for v in part]) for part in record["duals"])
        if V.shape != self.g.rows.shape or mu.shape != (1,):
            raise Refuted("a dual matrix of the search does not fit.")
        if not (np.all(np.isfinite(V)) and 0.0 <= mu[0] < np.inf):
            raise Refuted("a dual matrix of the search is not finite.")
        return (*minorant(self.g, V, float(mu[0]), facts), V, float(mu[0])), -np.inf

    def below(self, found: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return a smaller set for the children of a part."""
        g, own = self.g, modulus(facts)
        if not found[0] > -np.inf or not own > 0.0:
            return facts
        V, mu = found[2:]
        B = g.S + g.matrix(V)
        sigma, vectors = np.linalg.eigh(B)
        t = minimisers(sigma - eigenvalues(B)[1], facts[0], facts[1], mu)
        omega = (vectors * t) @ vectors.T  # any matrix will do
        V = V - (mu - own) * omega[g.rows, g.cols]
        narrow = minorant(g, V, own, facts)
        sigma, error = eigenvalues(g.S + g.matrix(V))
        s = float(sigma[0]) - error

        def phi(t: float) -> float:
            return -math.log(t) + s * t - 0.5 * own * t * t

        first, last = float(minimisers(np.array([s]), facts[0], facts[1], own)[0]), facts[1]
        allowed = phi(first) + self.upper - self._at(narrow, inside, out)
        allowed += 1e-12 * (abs(allowed) + abs(s) * last + 1.0)
        if not phi(last) > allowed:
            return facts
        while last - first > 1e-9 * last:
            middle = 0.5 * (first + last)
            first, last = (first, middle) if phi(middle) > allowed else (middle, last)
        limits = np.where(g.diagonal, last, 0.5 * (last - facts[0]))
        return facts[0], last, np.minimum(facts[2], limits)
