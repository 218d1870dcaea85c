"""Which search proves a problem: of the problem as it is, or in the box that its data prove.

A box costs far more than a few nodes, and with a ridge that is strong enough these close the
problem. So the problem as it is comes first, for a few nodes; the box where they leave a gap, and
its search goes on where its root is the better one.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.arithmetic.dualised_rows import row_term
from sparsemodel.certificates.arithmetic.multipliers import dualised
from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import (
    boxed,
    from_data,
    objection,
)
from sparsemodel.certificates.dual_bounds.diagonal_shift import LIMIT
from sparsemodel.certificates.proving.bounder import NodeBounder
from sparsemodel.certificates.proving.compiling import BOUNDS, compilable, loadable
from sparsemodel.certificates.proving.dual.part import DualPart
from sparsemodel.certificates.proving.dual.shared import few_supports, loose_coordinates, objections
from sparsemodel.certificates.proving.dual.subproblem import in_memory
from sparsemodel.certificates.proving.gram import part as gram
from sparsemodel.certificates.proving.gram.enumeration import WHOLE, applies
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.gram.searchable import TIME, WORK, loose
from sparsemodel.certificates.proving.incumbent import Incumbent
from sparsemodel.certificates.proving.node import OUT, UNDECIDED, Node
from sparsemodel.certificates.proving.quadratic import searchable as quadratic
from sparsemodel.certificates.proving.quadratic.part import QuadraticPart
from sparsemodel.certificates.proving.records.replay import Checked, checked
from sparsemodel.certificates.proving.records.writing import Recorder
from sparsemodel.certificates.proving.search import Search, Snapshot
from sparsemodel.certificates.statements.claims import relative_gap_of
from sparsemodel.certificates.statements.exact_fit import exact_fit
from sparsemodel.certificates.statements.objective_interval import (
    constant_part,
    feasible_upper,
    primal,
)
from sparsemodel.interfaces import (
    FloatArray,
    MissingDependencyError,
    SparseRegression,
    UnsupportedProblemError,
)

_MANY = 2.0
"""Observations per coefficient from which on the curvature of the data does better."""

_SMALL, _MILD, _LARGE = 0.02, 0.35, 0.5
"""Gaps at the root that need no box, that a few nodes may close, and that leave no doubt."""

_NODES, _ENTRIES = 3, 4e7
"""Nodes that are looked at before a box where the gap is mild, and entries of their matrices up to
which there may be more."""

_PAIRS = 20_000_000
"""Pairs of columns that are looked at in less time than bounds on the coefficients take."""

_MEASURED = (16, 64, 256)
"""Nodes after which a check of the record is timed: more than it begins with, but soon repeated."""

_WORTH = 0.97
"""Share of a large gap that a box may leave at the root: it does far more in the tree."""

_DOUBTFUL, _RACE = 1.1, 40
"""Ratio of two such gaps up to which the roots do not tell, and nodes of both that then do."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be proved, and what is known."""

    form: SparseRegression
    inner: SparseRegression
    """The problem within its coefficient bounds."""
    points: SparseRegression
    """The problem that points are sought for, with all linear constraints."""
    x: FloatArray
    gap: float
    tree: Any
    """Of an earlier proof; None where there is none."""
    deadline: float | None
    progress: Callable[[Snapshot], object] | None
    max_nodes: int | None
    bounds: CoefficientBounds | None = None
    """On the coefficients, where ``inner`` has them for a box."""
    boxable: bool = False
    """Whether bounds may be looked for."""
    patient: bool = True
    """Whether nothing else is tried where a part keeps a gap."""
    quadratic: Quadratic | None = None

    def search(self, *, quick: bool) -> Search:
        """Return the search, of which nothing is done yet; ``quick`` bounds nodes by compiled code.

        It begins with everything, or with the parts that an earlier one left.
        """
        known = self._known()  # before anything else reads what a file holds
        form, inner, points = self.form, self.inner, self.points
        root: NodeBounder
        held = self.bounds is not None and self.bounds.room is None
        fixed = held and row_term(form) is not None
        if quick and not fixed and not quadratic.objections(inner):
            root = QuadraticPart.root(inner, points)
        elif quick:
            declared = form if fixed else None
            root = gram.GramPart.root(inner, points, self.quadratic, declared)
        else:
            inner, points = in_memory(inner), in_memory(points)
            root = DualPart.root(inner, points)

        incumbent = Incumbent(form.sparsity, self.x, lambda x: feasible_upper(points, x))
        exact, constant = exact_fit(points, self.x, incumbent.upper), constant_part(points)

        def allowed(upper: float) -> float:
            # Nothing is to be closed below the rounding of the products, nor of an exact fit.
            size = min(abs(upper), abs(upper - constant))
            return upper if exact else max(0.98 * self.gap * size, root.rounding)

        recorder = Recorder(gram=quick, boxed=self.inner is not form, earlier=self.tree)
        search = Search(
            root,
            incumbent,
            recorder,
            allowed=allowed,
            deadline=self.deadline,
            progress=self.progress,
            max_nodes=self.max_nodes,
        )
        search.patient = self.patient
        search.begin(self._parts(search, known))
        return search

    def _known(self) -> Checked | None:
        """Return what an earlier search proves, once it is checked; None without one."""
        if self.tree is None:
            return None
        return checked(self.form, self.inner, self.tree, caution=CAUTION, bounds=self.bounds)

    def _parts(self, search: Search, known: Checked | None) -> list[Node]:
        """Return where a search begins."""
        sparsity, root = self.form.sparsity, search.root
        if known is None:
            status = np.full(sparsity.units, UNDECIDED, dtype=np.int8)
            return [Node(root, status, sparsity.budget, self.x)]
        left = [leaf for leaf in known.leaves if leaf.bound < search.cutoff]
        search.floor = min(
            [known.closed, *(leaf.bound for leaf in known.leaves if leaf.bound >= search.cutoff)]
        )
        if not left:
            return []
        alive = np.any([leaf.status != OUT for leaf in left], axis=0)
        root = root.on(np.where(alive, UNDECIDED, OUT))
        return [
            Node(
                root,
                leaf.status[root.units],
                leaf.k,
                self.x,
                bound=leaf.bound,
                link=leaf.link,
                depth=0 if len(left) == 1 else 1,
            )
            for leaf in left
        ]


class Attempt(NamedTuple):
    """A task, its search, and whether the user stopped it."""

    task: Task
    search: Search
    interrupted: bool = False


def attempted(task: Task, quick: bool) -> Attempt:
    """Search, or go on with a stored search, in the box that the data prove where that helps."""
    if not quick:
        task = _held(task)
        reasons = objections(task.inner)
        if reasons:
            raise UnsupportedProblemError(
                "This cannot be proved by branching: " + "; ".join(reasons), reasons
            )
    large = quick and task.tree is None and task.form.sparsity.size > LIMIT and not loose(task.form)
    first = attempt = Attempt(task, task.search(quick=quick and not large))
    try:
        if large:
            # A strong ridge needs no matrix.
            first.search.run(1)
            if first.search.over or _gap(first.search) <= _MILD:
                first.search.run()
                return first
            attempt = Attempt(task, task.search(quick=True))
        bare = attempt.search
        root = bare.root
        if task.boxable and isinstance(root, gram.GramPart) and _boxable(task, root):
            attempt = _chosen(attempt, root, _gap(first.search) if large else math.inf)
        if _stuck(attempt):
            return attempted(_later(task, bare), False)
        _run(attempt)
        if quick and _fruitless(attempt):
            return attempted(_later(task, bare), False)
    except KeyboardInterrupt:
        return _ahead(first, attempt)._replace(interrupted=True)
    except MissingDependencyError as missing:
        if objections(task.inner) or task.tree is not None:
            raise
        warnings.warn(f"Proofs are slower without Numba: {missing}", RuntimeWarning, stacklevel=2)
        return attempted(task, False)
    return _ahead(first, attempt)


def _run(attempt: Attempt) -> None:
    """Search to the end; a bound that the record is evaluated for has its part of the time.

    How much that is, is measured while there are few nodes.
    """
    task, search, _ = attempt
    if task.deadline is not None and isinstance(search.root, QuadraticPart):
        count, known = 0, 0.0
        for nodes in _MEASURED:
            search.run(nodes)
            record = search.recorder.to_dict()
            if search.nodes < nodes or not search.open or record is None:
                break  # it has ended, or there is nothing to evaluate: too much for a file
            began = time.perf_counter()
            checked(task.form, task.inner, record, caution=CAUTION, bounds=task.bounds)
            seconds = time.perf_counter() - began
            if count:
                search.check = max(seconds - known, 0.0) / max(search.recorder.count - count, 1)
            search.opening = max(seconds - search.check * search.recorder.count, 0.0)
            count, known = search.recorder.count, seconds
    search.run()


def _ahead(first: Attempt, last: Attempt) -> Attempt:
    """Return the last search, or the first where time ended before the last came as far."""
    if not _gap(first.search) < _gap(last.search):
        return last
    first.search.incumbent.take(last.search.incumbent.x)
    return first


def resumed(attempt: Attempt, x: FloatArray | None) -> Attempt:
    """Go on with a search that gave up, where something else was tried and found ``x``."""
    search = attempt.search
    search.patient = True
    if x is not None:
        search.incumbent.take(x)
    try:
        search.run()
    except KeyboardInterrupt:
        return attempt._replace(interrupted=True)
    return attempt


def root_slopes(found: Attempt, problem: CertifiedProblem) -> tuple[Attempt, CertifiedProblem]:
    """Return what was found with the slopes of the whole problem's relaxation, where it has own.

    Not where bounds on the coefficients hold for those that there are.
    """
    held, first, bounds = problem.multipliers, found.search.first, found.task.bounds
    fixed = bounds is not None and bounds.room is None
    own = first is not None and first.stage is not None and first.stage.stiffness is not None
    if held is None or first is None or first.slopes is None or fixed or own:
        return found, problem
    problem = dualised(problem, replace(held, slopes=first.slopes))
    task = replace(found.task, form=problem.minorant, inner=problem.minorant)
    if task.bounds is not None:
        task = replace(task, inner=boxed(task.form, task.bounds))
    return found._replace(task=task), problem


def _later(task: Task, search: Search) -> Task:
    """Return a task for another search than one that took time to compile, which is not counted."""
    if task.deadline is None:
        return task
    return replace(task, deadline=task.deadline + search.delay)


def _stuck(attempt: Attempt) -> bool:
    """Return whether nodes have no relaxation, nor supports that could be looked at one by one."""
    task, root = attempt.task, attempt.search.root
    if not isinstance(root, gram.GramPart) or task.tree is not None:
        return False
    units, budget = task.form.sparsity.units, task.form.sparsity.budget
    if root.enumerable and (applies(units, budget, WHOLE) or objections(task.inner)):
        return False  # dual points of all parts do not say more, or cannot be had
    fresh = bool(attempt.search.open) and not attempt.search.nodes
    return fresh and not root.curved(task.deadline)


def _fruitless(attempt: Attempt) -> bool:
    """Return whether compiled code ended with nothing, as among equal columns; others may not."""
    task, search, _ = attempt
    nothing = search.bound == -math.inf and not search.nodes and not search.over
    fresh = nothing and task.tree is None and few_supports(task.form)
    return fresh and not objections(task.inner)


def _held(task: Task) -> Task:
    """Return a task of dual points in the box that the data prove, where one is needed."""
    form = task.form
    held = not np.any(loose_coordinates(form)[form.sparsity.counted])
    # Of linear constraints the slopes are others in every part.
    if not task.boxable or held or row_term(form) is not None or objection(form):
        return task
    if not compilable():
        return task
    return _in_box(task, task.x, None, task.max_nodes) or task


def _boxable(task: Task, root: gram.GramPart) -> bool:
    """Return whether a proof may gain by bounds on the coefficients."""
    form = task.form
    if objection(form):
        return False
    rows = sum(t.design.shape[0] for t in form.terms)
    return rows < _MANY * form.sparsity.size or not root.curved(task.deadline)


def _chosen(attempt: Attempt, root: gram.GramPart, gap: float) -> Attempt:
    """Return what goes on: the search with the ridge alone, or that in the box the data prove.

    Either is looked at for some nodes only, unless these close it; that with the ridge alone for
    none where its root is known to leave a large ``gap``.
    """
    task, search, _ = attempt
    form, gap = task.form, gap if _LARGE <= gap < math.inf else math.inf
    afford = int(_ENTRIES / float(form.sparsity.size) ** 2)
    without = loose(form)
    if _enumerable(form, without):
        search.run()
        if _gap(search) <= task.gap:
            return attempt
    elif gap == math.inf and (not without or root.curved(task.deadline)):
        search.run(1)
        gap = _gap(search)
        if gap <= _MILD:
            search.run(max(_NODES, afford))
        if gap <= _SMALL:
            search.run()
        if not search.open:
            return attempt
    if search.over:
        return attempt
    search.waited += _compiled(_later(task, search).deadline)  # whichever search goes on
    nodes = None if task.max_nodes is None else task.max_nodes - search.nodes
    other = _in_box(_later(task, search), search.incumbent.x, root.quadratic, nodes)
    if other is None:
        return attempt
    within = other.search(quick=True)
    within.run(1)
    worth = _WORTH if gap >= _LARGE else 0.8
    if gap >= _LARGE and math.isfinite(gap) and worth < _gap(within) / gap <= _DOUBTFUL:
        within.run(_RACE)
        if within.open and not within.over:
            search.run(min(_RACE, afford))
        gap, worth = min(gap, _gap(search)), 1.0
    if math.isfinite(gap) and _gap(within) > worth * gap:
        return attempt
    return Attempt(other, within)


def _in_box(
    task: Task, x: FloatArray, quadratic: Quadratic | None, nodes: int | None
) -> Task | None:
    """Return the task in the box that the data prove; None where they prove none."""
    form, deadline = task.form, task.deadline
    if not loadable(BOUNDS, deadline):
        return None
    compiled, now = _compiled(deadline), time.perf_counter()
    if deadline is not None:
        deadline += compiled
    bounds = from_data(
        form,
        primal(task.points, x),
        work=WORK,
        deadline=None if deadline is None else now + TIME * (deadline - now),
        quadratic=quadratic,
    )
    if isinstance(bounds, str):
        return None
    return replace(
        task,
        inner=boxed(form, bounds),
        x=x,
        bounds=bounds,
        quadratic=quadratic,
        deadline=deadline,
        max_nodes=nodes,
    )


def _compiled(deadline: float | None) -> float:
    """Compile what finds bounds, where there is time for it; return the seconds that this took."""
    if not loadable(BOUNDS, deadline):
        return 0.0
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.rows_compiled import compiling

    return compiling()


def _gap(search: Search) -> float:
    """Return the relative gap that a search has come to."""
    bound = search.bound
    return relative_gap_of(search.incumbent.upper, bound) if math.isfinite(bound) else math.inf


def _enumerable(form: SparseRegression, without: bool) -> bool:
    """Return whether every support is tried, which is faster where there is no ridge."""
    sparsity = form.sparsity
    return without and sparsity.budget <= 2 and math.comb(sparsity.units, 2) <= _PAIRS
