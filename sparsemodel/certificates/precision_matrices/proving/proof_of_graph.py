"""Prove a sparse precision matrix by branch and bound over its edges."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.precision_matrices.ascent import Task, rescaled
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PrecisionCertificate,
    PrecisionFacts,
)
from sparsemodel.certificates.precision_matrices.certify_precision import (
    certified_until,
    certify_precision,
    no_worse,
    proved_by_search,
    witnessed_bound,
)
from sparsemodel.certificates.precision_matrices.evaluated import Evaluated, evaluate_point
from sparsemodel.certificates.precision_matrices.proving.part import GraphPart
from sparsemodel.certificates.precision_matrices.proving.record import (
    everything,
    graph_bound,
    replayed,
    status_of,
)
from sparsemodel.certificates.precision_matrices.trivial import null_nats, scaled
from sparsemodel.certificates.precision_matrices.verify_precision import check_shapes
from sparsemodel.certificates.proving.compiling import GRAPHS, loadable
from sparsemodel.certificates.proving.incumbent import Incumbent
from sparsemodel.certificates.proving.node import Node
from sparsemodel.certificates.proving.records.replay import Checked
from sparsemodel.certificates.proving.records.resuming import stored_tree
from sparsemodel.certificates.proving.records.writing import LIMIT, Recorder
from sparsemodel.certificates.proving.search import Search, Snapshot
from sparsemodel.interfaces import DataError, FloatArray, InfeasibleError
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.budget import Budget, eigenvector_cost

_AT_ROOT = 0.1
"""Share of the time for the certificate that a proof starts from."""

_NODE = 12.0
"""Eigendecompositions that take as long as a node, its refit and the check of its record."""

_SAMPLE, _CHECK = 8, 1.2
"""Nodes after which it is measured what their record takes to evaluate again, and how much more the
records of deeper nodes may take."""


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def prove_precision(
    form: SparsePrecision,
    x: FloatArray,
    *,
    gap: float = 1e-4,
    time_limit: float | None = 60.0,
    backend: str = "",
    progress: Callable[[Snapshot], object] | None = None,
    resume: PrecisionCertificate | None = None,
    last: PrecisionCertificate | None = None,
) -> PrecisionCertificate:
    """Search graphs until none can be better than the best one by more than ``gap``.

    Parameters
    ----------
    form
        The canonical problem.
    x
        Entries on and above the diagonal of a feasible matrix; better ones met on the way replace
        it.
    gap
        Share of what edges can explain at most that may be left open, at least 1e-9.
    time_limit
        Seconds after which the gap reached is reported; None for no limit. Compiling is not
        counted.
    backend
        Who found the matrix.
    progress
        Called with each :class:`Snapshot`; returning True ends the search.
    resume
        The certificate of an earlier proof of this problem. Its parts are evaluated again, those
        that it closed stay closed, and the search goes on with the others.
    last
        What was certified before: a proof starts from its bound.

    Returns
    -------
    PrecisionCertificate
        For the best matrix, with the record of the search.

    Raises
    ------
    DataError, InfeasibleError
        When ``x`` is not a feasible matrix, or ``gap`` makes no sense.
    CertificateError
        When ``resume`` is of another problem, or holds no record to go on with.

    Notes
    -----
    One eigendecomposition of order ``p`` an evaluation, 5 to 25 evaluations a node. Bounds as in
    :mod:`~sparsemodel.certificates.precision_matrices.spectral_bounds`.
    """
    began = time.perf_counter()
    if not (math.isfinite(gap) and gap >= 1e-9):
        raise DataError(f"gap must be a number of at least 1e-9, not {gap!r}.")
    tree = None
    if resume is not None:
        tree = stored_tree(resume, PrecisionFacts.of(form), gap)
        check_shapes(resume, form)
        if evaluate_point(form, resume.x).upper < evaluate_point(form, x).upper:
            x = resume.x
    deadline = None if time_limit is None else began + time_limit
    fits = tree is not None or Budget(deadline).fits(_NODE * eigenvector_cost(form.order))
    limit = 5.0 if time_limit is None else min(5.0, (_AT_ROOT if fits else 1.0) * time_limit)
    at_root = Budget(began + limit)
    first = no_worse(form, certified_until(form, x, at_root, gap, backend), last)
    if at_root.interrupted and tree is not None:
        raise KeyboardInterrupt  # nothing is known yet of what the earlier proof says
    closed = first.open_share <= gap or not math.isfinite(first.bound)
    late = at_root.interrupted or not fits or (tree is None and not loadable(GRAPHS, deadline))
    if closed or late:
        return first
    at, known, check = evaluate_point(form, first.x), None, 0.0
    if tree is None:
        task = rescaled(everything(form), at.upper, first.witness.units)
    else:
        before = time.perf_counter()
        task, known = replayed(form, at.upper, tree)
        check = (time.perf_counter() - before) / len(tree["nodes"])
    problem = _Graph(form, first, at, task, tree, known, resume)
    search = problem.search(gap, deadline, progress)
    search.begin(problem.parts(search))
    interrupted = False
    try:
        if tree is None:
            search.run(_SAMPLE)
            if deadline is not None and search.open and not search.over:
                check = problem.checking(search)
        search.check = _CHECK * check
        search.run()
    except KeyboardInterrupt:
        interrupted = True
    return problem.certificate(search, interrupted, began)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """A problem with all edges as units, in units of powers of two."""

    form: SparsePrecision
    first: PrecisionCertificate
    at: Evaluated
    """The matrix of the first certificate."""
    task: Task
    """With all edges."""
    tree: dict[str, Any] | None
    """Of an earlier search; None where there is none."""
    known: Checked | None
    """Its parts, evaluated again."""
    earlier: PrecisionCertificate | None
    """Its certificate; none of its numbers is used before it is recomputed."""

    def search(
        self,
        gap: float,
        deadline: float | None,
        progress: Callable[[Snapshot], object] | None,
    ) -> Search:
        """Return the search from a known matrix."""
        task = self.task
        full = task.form.entries(self.form.matrix(self.first.x))
        known = task.in_units(full, -1)
        inverse = task.in_units(task.form.entries(self.at.factor.inverse))
        root = GraphPart.root(task, known, inverse)
        null = null_nats(self.form) + task.shift

        def value(theta: FloatArray) -> float:
            try:
                found = evaluate_point(self.form, self.back(theta))
            except (DataError, InfeasibleError):
                return math.inf
            return found.upper + task.shift

        def allowed(upper: float) -> float:
            return 0.98 * gap * max(null - upper, 0.0)

        def report(at: Snapshot) -> object:
            value, bound = (scaled(self.form, v - task.shift) for v in (at.value, at.bound))
            return None if progress is None else progress(replace(at, value=value, bound=bound))

        return Search(
            root,
            Incumbent(task.form.sparsity, known, value),
            Recorder(gram=False, boxed=False, earlier=self.tree),
            allowed=allowed,
            deadline=deadline,
            progress=report,
            max_nodes=self._room(full.size),
        )

    def checking(self, search: Search) -> float:
        """Return the seconds that a node of the record takes to evaluate again."""
        began, record = time.perf_counter(), self._record(search)
        if record is not None:
            graph_bound(self.form, self.at.upper, record)
        return (time.perf_counter() - began) / max(search.recorder.count, 1)

    def _record(self, search: Search) -> dict[str, Any] | None:
        record = search.recorder.to_dict()
        if record is not None:
            record["units"] = None if self.task.units is None else list(self.task.units)
        return record

    def _room(self, size: int) -> int:
        """Return how many nodes the record has room for, with ``size`` numbers each."""
        return LIMIT // (size + 16) - (0 if self.tree is None else len(self.tree["nodes"]))

    def parts(self, search: Search) -> list[Node]:
        """Return where a search begins: everything, or the parts that an earlier one left."""
        root, x = search.root, search.incumbent.x
        if self.known is None or not isinstance(root, GraphPart):
            inner = self.task.form
            return [Node(root, status_of(self.form, inner), inner.sparsity.budget, x)]
        search.floor, nodes = self.known.closed, []
        for leaf in self.known.leaves:
            if leaf.bound >= search.cutoff:
                search.floor = min(search.floor, leaf.bound)
                continue
            part = root.within(leaf.facts)
            nodes.append(
                Node(part, leaf.status, leaf.k, x, bound=leaf.bound, link=leaf.link, depth=1)
            )
        return nodes

    def back(self, theta: FloatArray) -> FloatArray:
        """Return a matrix of the search as entries of the form."""
        return self.form.entries(self.task.form.matrix(self.task.in_units(theta)))

    def certificate(self, search: Search, interrupted: bool, began: float) -> PrecisionCertificate:
        """Return what the search proves."""
        form, first, tree = self.form, self.first, self._record(search)
        x, upper = self.back(search.incumbent.x), self.at.upper
        if not np.array_equal(x, first.x):
            upper = evaluate_point(form, x).upper
            first = certify_precision(
                form, x, time_limit=1.0, target=first.target, backend=first.backend
            )
        if tree is None:
            return no_worse(form, first, self.first)
        try:
            nats = graph_bound(form, upper, tree)
            first, nats = self._no_less(first, nats, upper, tree)
        except KeyboardInterrupt:
            if self.tree is not None:
                raise  # the earlier proof says more than the root
            return first  # a search that is not evaluated again proves nothing
        left = search.open
        summary: dict[str, str | int | float] = {
            "nodes": search.recorder.count,
            "open": left,
            "decided by bounds": search.fixed,
            "bound at the root": first.bound,
            "gap asked for": first.target,
            "ended": "interrupted" if interrupted else _ending(search),
        }
        proved = proved_by_search(form, first, nats, {"tree": tree, "summary": summary})
        return replace(proved, seconds=time.perf_counter() - began)

    def _no_less(
        self, first: PrecisionCertificate, nats: float, upper: float, tree: dict[str, Any]
    ) -> tuple[PrecisionCertificate, float]:
        """Return what is proved from the level of the first point or of the earlier proof.

        A better matrix makes other enclosures, in which what was written for the earlier ones may
        prove a little less.
        """
        form, best = self.form, (first, nats)
        here = max(scaled(form, nats, -1.0), first.bound)
        for earlier in (self.first, self.earlier):
            if earlier is None or not earlier.bound > here:
                continue
            level = earlier.witness.above(evaluate_point(form, earlier.x).upper)
            for start in (None, level):
                witness = replace(earlier.witness, level=start, restricted=first.witness.restricted)
                at_root = witnessed_bound(form, upper, witness)
                again = nats if start is None else graph_bound(form, level, tree)
                found = scaled(form, max(again, at_root), -1.0)
                if here < found <= scaled(form, upper, -1.0):
                    bound, here = max(first.trivial_bound, scaled(form, at_root, -1.0)), found
                    best = replace(first, bound=bound, witness=witness), again
        return best


def _ending(search: Search) -> str:
    if not search.open:
        return "closed"
    return "the file has no room for more nodes" if search.full else "time limit"
