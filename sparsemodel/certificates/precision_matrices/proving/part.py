"""Nodes of the proof of a graph: some edges in, some out, bounded by the dual of the likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.precision_matrices.ascent import Task
from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    narrowed,
    node_minorant,
)
from sparsemodel.certificates.proving.bounder import Aim, Finished, NodeBounder, Relaxed
from sparsemodel.certificates.proving.node import IN, OUT, Minorant, Node, decide
from sparsemodel.interfaces import FloatArray, IntArray, UnboundedError
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.budget import Budget, eigenvector_cost, rate
from sparsemodel.numerics.precision import Pattern, minimise_on_pattern

_AT_ROOT, _AT_NODE = 600, 25
"""Evaluations of the dual that a relaxation may take."""

_ENOUGH = 1e-2
"""Share of the gap that six steps must close for an ascent to go on."""

_TRIES = 25
"""Supports of relaxations that are refitted. Each costs as much as a node, and nodes where nothing
is left to choose are refitted anyway."""

_DIGITS = 8
"""Decimals of a dual point: any is valid, and short ones make short files."""


def below(
    form: SparsePrecision,
    box: Enclosure,
    point: FloatArray,
    status: Any,
    k: int,
    upper: float,
    omega: FloatArray | None = None,
) -> Enclosure:
    """Return the enclosure for the children of a node with this dual point."""

    def gap(low: Minorant) -> float:
        proved = decide(low, status, k)
        return math.inf if proved is None else upper - proved.bound

    return narrowed(form, point[:-1], float(point[-1]), box, gap, omega)


@final
@dataclass(slots=True, eq=False)
class Graph:
    """What all parts of a graph share."""

    task: Task
    kinds: Any
    """Status of every coordinate: the diagonal, required edges (in), and 0 for the others."""
    counted: IntArray
    rows: IntArray
    cols: IntArray
    """Contiguous, as everything that is compiled for is."""
    delay: float
    """Seconds that compiling took."""
    tries: int = _TRIES
    """Supports that may still be refitted for nothing."""

    @classmethod
    def of(cls, task: Task) -> Graph:
        """Compute what is shared."""
        from sparsemodel.certificates.precision_matrices.proving.ascent_compiled import (
            DIAGONAL,
            compiling,
        )

        form = task.form
        kinds = np.full(form.shape[0], IN, dtype=np.int8)
        kinds[form.rows == form.cols] = DIAGONAL
        counted = np.flatnonzero(form.sparsity.counted)
        kinds[counted] = 0
        rows, cols = np.ascontiguousarray(form.rows), np.ascontiguousarray(form.cols)
        return cls(task, kinds, counted, rows, cols, compiling())


@final
class GraphPart(NodeBounder):
    """The edges of a graph, within an enclosure of the matrices that are as good as a known one."""

    def __init__(self, graph: Graph, box: Enclosure, start: FloatArray) -> None:
        """``start`` is the dual matrix to start from, as a vector, and the modulus."""
        self._graph, self.box, self._start = graph, box, start
        self._latest = start
        self._attained: FloatArray | None = None
        self.units = np.arange(graph.counted.size)
        self.inside_units = np.empty(0, dtype=np.intp)
        self._upper = graph.task.upper

    @classmethod
    def root(cls, task: Task, x: FloatArray, inverse: FloatArray) -> GraphPart:
        """Return the part that is the whole graph, from a known matrix and its inverse."""
        form, box = task.form, task.enclosed()
        mu = max(box.modulus, 1e-300)
        U = inverse - form.entries(form.covariance) + mu * x
        return cls(Graph.of(task), box, np.append(U, mu))

    def within(self, box: Enclosure) -> GraphPart:
        """Return the same edges within a smaller enclosure, as an earlier search left it."""
        return GraphPart(self._graph, box, self._start)

    @property
    def task(self) -> Task:
        """Return the problem in the units of the proof."""
        return self._graph.task

    @property
    def delay(self) -> float:
        """Return the seconds that compiling took."""
        return self._graph.delay

    def at_start(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return None: a start costs as much to evaluate as a step."""
        return None

    def relax(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return the relaxation, by ascent in the dual matrix and the modulus."""
        from sparsemodel.certificates.precision_matrices.proving.ascent_compiled import ascend

        graph, box = self._graph, self.box
        form = graph.task.form
        self._upper = min(self._upper, aim.upper)
        scale = max(abs(aim.upper), 1.0)
        open_gap = aim.upper - node.bound if math.isfinite(node.bound) else scale
        first = not node.depth
        _, point, omega, _ = ascend(
            form.covariance,
            graph.rows,
            graph.cols,
            self._start,
            box.alpha,
            box.beta,
            self._status(node.status),
            node.k,
            aim.cutoff + 1e-9 * scale,
            _possible(form.order, _AT_ROOT if first or aim.exact else _AT_NODE, aim.deadline),
            1e-6 * scale if first else _ENOUGH * open_gap,
        )
        point = np.round(point, _DIGITS)
        found = node_minorant(form, point[:-1], float(point[-1]), box)
        self._latest, self._attained = point, None if found is None else found.entries
        if found is None:
            return None
        return Relaxed(
            omega,
            float(point[-1]),
            np.abs(omega[graph.counted]),
            found.minorant,
            duals=(point[:-1], point[-1:]),
        )

    def _status(self, units: Any) -> Any:
        status = self._graph.kinds.copy()
        status[self._graph.counted] = units
        return status

    def finishes(self, node: Node) -> bool:
        """Return False: a relaxation closes most nodes for a tenth of what a refit takes."""
        return False

    def finish(self, node: Node, *, roughly: bool = False) -> Finished | None:
        """Return the minimum on the support where all that is undecided may be in."""
        if node.undecided.size > node.k:
            return None
        graph = self._graph
        form = graph.task.form
        chosen = node.status == IN
        chosen[node.undecided] = True
        support = np.flatnonzero(self._status(np.where(chosen, IN, OUT)) > OUT)
        fit = self._fit(support)
        if fit is None:
            return None
        x, B = fit
        U = B - form.entries(form.covariance)
        U[support] = 0.0
        found = node_minorant(form, U, 0.0, self.box)
        if found is None:
            return None
        status = np.where(chosen, IN, OUT).astype(np.int8)
        proved = decide(found.minorant, status, 0)
        if proved is None:
            return None
        return Finished(proved.bound, x=x, duals=(U, np.zeros(1)))

    def _fit(self, support: IntArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the minimiser on a support, and the entries of its dual matrix."""
        form = self._graph.task.form
        pattern = Pattern(form.order, form.rows[support], form.cols[support])
        try:
            fit = minimise_on_pattern(form.covariance, pattern, alpha=form.alpha, beta=form.beta)
        except UnboundedError:
            return None
        x = np.zeros(form.shape)
        x[support] = form.entries(fit.factor.omega)[support]
        return x, form.entries(fit.dual)

    def shrunk(self, node: Node, before: int) -> GraphPart | None:
        """Return None: fixed edges are left out of the costs at the next branch."""
        return None

    def copied(self, node: Node) -> GraphPart:
        """Return the part within the enclosure that the node's dual point leaves."""
        form, known = self._graph.task.form, (self._latest, node.status, node.k, self._upper)
        box = below(form, self.box, *known, self._attained)
        return GraphPart(self._graph, box, self._latest)

    def on(self, status: Any) -> GraphPart:
        """Return the part itself: its units are all edges."""
        return self

    def minimiser(self, support: IntArray, below: float) -> FloatArray | None:
        """Return the minimiser on a support."""
        if self._graph.tries <= 0:
            return None
        self._graph.tries -= 1
        fit = self._fit(support)
        return None if fit is None else fit[0]


def _possible(order: int, most: int, deadline: float | None) -> int:
    """Return how many evaluations, an eigendecomposition each, half of the time left allows."""
    if deadline is None:
        return most
    return min(most, max(1, int(0.5 * Budget(deadline).left * rate() / eigenvector_cost(order))))
