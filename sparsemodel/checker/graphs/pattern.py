r"""Bounds on matrices with one pattern of edges, of which there may be one.

What is minimised is :math:`\sum_g w_g L_g` plus a constant. A dual matrix for each gives
:math:`L_g \ge b_g - \sum_{ij} c^g_{ij}` over the edges of the pattern, so

.. math:: \sum_g w_g L_g \ge \sum_g w_g b_g
          - \text{the } k \text{ largest } \sum_g w_g c^g_{ij},

and where the sum is at most that of a known point, ``w_g L_g`` is at most that less what the same
bound says of the others. Sums here are weighted, without the constant.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparsemodel.checker.files import Data, Refuted, array, real
from sparsemodel.checker.graphs.graph import Graph, enclosed, minorant, modulus, smaller
from sparsemodel.checker.proof.arithmetic import UNIT


def matrices(facts: dict[str, Any], data: Data) -> list[Graph]:
    """Return the problem of each matrix; those of several differ in data, weight and bounds."""
    every = [facts, *(facts.get("others") or [])]
    graphs = [Graph(one, data) for one in every]
    for one, g in zip(every[1:], graphs[1:], strict=True):
        same = (g.p, g.k, one["structure"], one["names"], g.constant)
        if same != (graphs[0].p, graphs[0].k, facts["structure"], facts["names"], 0.0):
            raise Refuted("the matrices in the file have different patterns, or a constant each.")
        if one.get("others") is not None:
            raise Refuted("line 'problem.others' is nested.")
        one.get("samples")
    return graphs


def summed(graphs: list[Graph], values: list[float], direction: float) -> float:
    """Return the weighted sum of numbers in nats, rounded up or down."""
    products = [g.weight * v for g, v in zip(graphs, values, strict=True)]
    if not all(map(math.isfinite, products)):
        return sum(products)
    return math.fsum(products) + direction * 8.0 * UNIT * math.fsum(map(abs, products))


def columns(graphs: list[Graph], x: Any) -> list[Any]:
    """Return the entries of each matrix, finite and as many as there are."""
    shape = graphs[0].rows.shape + ((len(graphs),) if len(graphs) > 1 else ())
    if x is None or x.shape != shape or not np.all(np.isfinite(x)):
        raise Refuted("a matrix of the witness does not fit, or is not finite.")
    return [x] if len(graphs) == 1 else list(x.T.copy())


class Pattern:
    """The matrices, each in its units and in a set that holds it where all are best."""

    def __init__(self, graphs: list[Graph], units: list[Any], most: float) -> None:
        """``most`` is not below the optimum."""
        self.graphs, self.most = graphs, most
        least = [trivial(g) for g in graphs]
        self.held = [
            enclosed(g, e, self.level(i, summed(*self.others(i, least), -1.0)))
            for i, (g, e) in enumerate(zip(graphs, units, strict=True))
        ]

    def others(self, i: int, values: list[Any]) -> tuple[list[Graph], list[Any]]:
        """Return all matrices but one, with their values."""
        return self.graphs[:i] + self.graphs[i + 1 :], values[:i] + values[i + 1 :]

    def level(self, i: int, least: float) -> float:
        """Return the largest likelihood of a matrix, beside what the others have at least."""
        room = self.most - least + 8.0 * UNIT * (abs(self.most) + abs(least))
        return (room + 8.0 * UNIT * abs(room)) / self.graphs[i].weight

    def bound(self, V: list[Any], mu: Any, without: int = -1) -> float:
        """Return the weighted bound on all matrices but one (none by default)."""
        base, size, gains = 0.0, 0.0, 0.0 * V[0][self.graphs[0].counted]
        for i, (g, (h, shift, _, box)) in enumerate(zip(self.graphs, self.held, strict=True)):
            if i != without:
                b, c = minorant(h, V[i], real(float(mu[i])), box)
                base += g.weight * (b - shift)
                size += g.weight * (abs(b) + abs(shift))
                gains = gains + g.weight * c * (1.0 + 16.0 * UNIT)
        if not math.isfinite(base):
            return -math.inf
        found = self.graphs[0].supports().bound(base, gains)
        return float(found - 16.0 * UNIT * (abs(found) + size))

    def narrow(self, V: list[Any], mu: Any) -> None:
        """Make the sets smaller."""
        held = []
        for i, (h, shift, level, box) in enumerate(self.held):
            if len(self.held) > 1:
                new = self.level(i, self.bound(V, mu, without=i))
                level = min(level, new + shift + 4.0 * UNIT * (abs(new) + abs(shift)))
            box = smaller(h, np.where(h.diagonal, 0.0, V[i]), level, box)
            held.append((h, shift, level, box))
        self.held = held


def trivial(g: Graph) -> float:
    """Return a bound in nats on all matrices, whatever their edges."""
    half, zero = np.where(g.diagonal, g.beta, 0.5 * (g.beta - g.alpha)), np.zeros(g.rows.size)
    return float(g.supports().bound(*minorant(g, zero, 0.0, (g.alpha, g.beta, half))))


def witnessed(graphs: list[Graph], witness: Any, most: float) -> float:
    """Return the weighted bound of the dual matrices in a file; there may be none."""
    m, p, moduli = len(graphs), graphs[0].p, witness.get("moduli")
    rounds, units, each = (
        [*witness["enclosing"], witness["final"]],
        witness.get("units"),
        [None] * m,
    )
    if units is not None:
        if len(units) != m * p:
            raise Refuted("line 'witness.units' does not fit.")
        each = [units[i * p : (i + 1) * p] for i in range(m)]
    if witness["final"] is None:
        return -math.inf
    pattern = Pattern(graphs, each, most)
    for place, item in enumerate(rounds):
        V, last = columns(graphs, array(item)), place == len(rounds) - 1
        if moduli is not None:
            mu = np.reshape([real(v) for v in moduli], (len(rounds), m))[place]
        elif witness.get("modulus") is not None:
            mu = np.full(m, real(witness["modulus"]))
        else:
            mu = np.array([modulus(box) for *_, box in pattern.held])
        if not np.all((mu >= 0.0) & (mu < np.inf)):
            raise Refuted("a modulus of the witness is negative, or not finite.")
        if last:
            return pattern.bound(V, mu)
        pattern.narrow(V, mu)
    return -math.inf
