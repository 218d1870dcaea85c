"""Prove a point optimal by branch and bound, with a record that can be checked again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem, condensed, uncondensed
from sparsemodel.certificates.arithmetic.multipliers import dualised
from sparsemodel.certificates.arithmetic.rounding import CAUTION, U
from sparsemodel.certificates.certify import (
    assemble,
    carried,
    certify,
    check_value,
    checked_point,
    solver_progress,
    with_multipliers,
)
from sparsemodel.certificates.dual_bounds.bound import Bound, infimum_bound
from sparsemodel.certificates.dual_bounds.bound_search import Candidate
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds, named
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed
from sparsemodel.certificates.dual_bounds.coefficient_bounds.certifying import within
from sparsemodel.certificates.dual_bounds.root import Reserve, contradicts
from sparsemodel.certificates.dual_bounds.witness import evaluate, extracted
from sparsemodel.certificates.proving.attempts import Attempt, Task, attempted, resumed, root_slopes
from sparsemodel.certificates.proving.compiling import NODES, QUADRATIC, loadable
from sparsemodel.certificates.proving.dual.shared import loose_coordinates
from sparsemodel.certificates.proving.gram.searchable import (
    every_slope,
    fixed_slopes,
    objections,
    searchable,
)
from sparsemodel.certificates.proving.quadratic import searchable as quadratic
from sparsemodel.certificates.proving.records.replay import checked, tree_bound, upgraded
from sparsemodel.certificates.proving.records.resuming import at_least, better, stored_tree
from sparsemodel.certificates.proving.records.searches import NOTHING, SEARCHED, searched
from sparsemodel.certificates.proving.search import Search, Snapshot
from sparsemodel.certificates.statements.certificate import Certificate, Progress, Witness
from sparsemodel.certificates.statements.derived import stated
from sparsemodel.certificates.statements.exact_fit import exact_fit
from sparsemodel.certificates.statements.objective_interval import (
    Primal,
    primal,
)
from sparsemodel.certificates.statements.problem_facts import describe
from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    Iteration,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.numerics.budget import Budget, ending_by
from sparsemodel.numerics.objectives.optimality import contradiction


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def prove(
    form: SparseRegression,
    x: FloatArray,
    *,
    names: Sequence[str] | None = None,
    gap: float = 1e-4,
    time_limit: float | None = 60.0,
    max_nodes: int | None = None,
    duals: Sequence[tuple[FloatArray, ...]] = (),
    backend: str = "",
    history: Sequence[Iteration] = (),
    progress: Callable[[Snapshot], object] | None = None,
    resume: Certificate | None = None,
    bounds: CoefficientBounds | None = None,
    boxable: bool = False,
    known: Sequence[Candidate] = (),
    sloped: bool = False,
) -> Certificate:
    """Search supports until no feasible point can be better than the best one by more than ``gap``.

    Parameters
    ----------
    form
        Losses with conjugates; groups, rows of matrices, signs, bounds and prices as far as the
        relaxation understands them.
    x
        A feasible point to start from; better ones replace it.
    names
        A name for every coordinate; ``x[j]`` by default.
    gap
        Relative gap to reach, at least 1e-9.
    time_limit
        Seconds after which the gap reached is reported; None for no limit. Compiling is not
        counted.
    max_nodes
        Limit on the number of nodes looked at.
    duals
        Gradients of the terms in their predictions that a solver met, for the bound without
        branching.
    backend
        Who found the point.
    history
        The solver's iterations, for the picture.
    progress
        Called with each :class:`Snapshot`; returning True ends the search.
    resume
        The certificate of an earlier proof of this problem. Its bounds are evaluated again, the
        parts that it closed stay closed, and the search goes on with the others.
    bounds
        Bounds on the coefficients that the data prove; those of ``resume`` take their place.
    boxable
        Whether to look for such bounds where there are none and they may help.
    known
        Bounds without branching that are known already; without any, a quarter of the time is kept.
    sloped
        Whether parts have multipliers of their own from the beginning, also for limits on norms,
        not only where those of the solution leave a part with a gap.

    Returns
    -------
    Certificate
        For the best point. Its bound is the least over all parts of the search, open ones included.

    Raises
    ------
    UnsupportedProblemError
        When the relaxation cannot be solved for this kind of problem; the reasons are listed.
    DataError
        When ``x`` is infeasible or ``gap`` makes no sense.
    CertificateError
        When ``resume`` is of another problem, or holds no tree to go on with.

    Notes
    -----
    Squared losses hold the Gram matrix of the candidates, ``p^2`` numbers. Nodes' bounds are
    evaluated with running error bounds: the printed one holds for the exact problem.
    """
    began = time.perf_counter()
    tree, deadline = None, None if time_limit is None else began + time_limit
    x, problem = _start(form, x, gap, deadline)
    if resume is None:
        problem, bounds = searchable(problem, x, bounds, sloped=sloped, deadline=deadline)
    else:
        problem = dualised(problem, resume.witness.multipliers)
    declared, form = form, problem.minorant
    inner = form if bounds is None else boxed(form, bounds)
    if resume is not None:
        facts = describe(problem.form, problem.fingerprints, resume.problem)
        tree = upgraded(problem.form, stored_tree(resume, facts, gap))
        bounds = resume.witness.bounds if tree["boxed"] else None
        at = primal(form, checked_point(form, resume.x))
        inner = within(form, bounds, at, problem.undualised)
    rows = not quadratic.objections(inner)
    quick = (rows or not objections(inner)) and (tree is None or tree["gram"] is True)
    left, products = Budget(deadline), sum(term.design.gram_operations for term in form.terms)
    # Nothing is left to gain, or the Gram matrix or the compiled code alone would take longer.
    ready = resume is None and infimum_bound(declared).value >= 0.0
    ready = ready and exact_fit(problem.equivalent, x, problem.at_point.value)
    late = (
        quick
        and tree is None
        and not (left.fits(products) and loadable(QUADRATIC if rows else NODES, deadline))
    )
    if ready or late:
        return certify(
            declared,
            x,
            names=names,
            duals=duals,
            backend=backend,
            history=history,
            target=gap,
            time_limit=left.limit,
        )
    if resume is not None:
        x, problem = better(x, problem, resume)
    # What searches with linear constraints find at their root is the best bound without branching.
    reserve = Reserve(began, time_limit, known or ((nothing_known(form),) if rows else ()))
    task = Task(
        form,
        inner,
        problem.points,
        x,
        gap,
        tree,
        reserve.deadline,
        progress,
        max_nodes,
        bounds,
        boxable and bounds is None and resume is None and fixed_slopes(problem),
        every_slope(problem, form),
    )
    found, again = attempted(task, quick), None
    if found.search.gives_up and not (found.interrupted or sloped):
        again = _with_slopes(problem, found, began, time_limit, known, names, backend, history)
        if again is not None and again.relative_gap <= gap:
            return again
        found = resumed(found, None if again is None else again.x)
    found, problem = root_slopes(found, problem)
    certificate = _Conclusion(*found, began, resume, problem, x).certificate(
        reserve, duals if problem.minorant is declared else (), names, backend, history
    )
    return certificate if again is None or again.bound <= certificate.bound else again


def nothing_known(form: SparseRegression) -> Candidate:
    """Return a bound that is known at once: that of the root is looked for when a search ends."""
    return Candidate(Witness(()), infimum_bound(form), "infimum of the losses")


def _with_slopes(
    problem: CertifiedProblem, found: Attempt, began: float, time_limit: float | None, *words: Any
) -> Certificate | None:
    """Return a proof whose parts have multipliers of their own; None where none is."""
    task, (known, names, backend, history) = found.task, words
    try:
        return prove(
            problem.form,
            found.search.incumbent.x,
            names=names,
            gap=task.gap,
            time_limit=None if time_limit is None else began + time_limit - time.perf_counter(),
            max_nodes=None if task.max_nodes is None else task.max_nodes - found.search.nodes,
            backend=backend,
            history=history,
            progress=task.progress,
            known=known,
            sloped=True,
        )
    except UnsupportedProblemError:
        return None


def _start(
    form: SparseRegression, x: FloatArray, gap: float, deadline: float | None
) -> tuple[FloatArray, CertifiedProblem]:
    """Return the point to start from, checked, and what is searched."""
    if not (math.isfinite(gap) and gap >= 1e-9):
        raise DataError(f"gap must be a number of at least 1e-9, not {gap!r}.")
    x = checked_point(form, x)
    with ending_by(deadline):
        problem = uncondensed(form, x) if objections(form) else condensed(form, x)
    check_value(problem.at_point)
    if problem.at_point.violations:
        bad = "; ".join(problem.at_point.violations)
        raise DataError("The point to start from is infeasible: " + bad)
    return x, problem


def _beyond(problem: CertifiedProblem, x: FloatArray, proved: float) -> bool:
    """Return whether a bound contradicts a point, also less what it breaks its constraints by."""
    if not contradicts(problem.ceiling(x), proved):
        return False
    own = with_multipliers(problem, x, own=True, sloped=True)
    return own.multipliers is None or contradicts(own.ceiling(x), proved)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Conclusion:
    """A search that has ended, and what it proves."""

    task: Task
    search: Search
    interrupted: bool
    began: float
    resume: Certificate | None
    problem: CertifiedProblem
    start: FloatArray

    def certificate(
        self,
        reserve: Reserve,
        duals: Sequence[tuple[FloatArray, ...]],
        names: Sequence[str] | None,
        backend: str,
        history: Sequence[Iteration],
    ) -> Certificate:
        """Return the certificate of the best point."""
        task, search = self.task, self.search
        form, x = task.form, search.incumbent.x
        problem = self.problem if np.array_equal(x, self.start) else self.problem.at(x)
        final = problem.at_point
        record = search.recorder.to_dict()
        proved = self._proved(record)
        if not final.violations and _beyond(problem, x, proved):
            raise contradiction(form, proved, final.upper, SEARCHED)
        witness = problem.portable(self._root_witness())
        at_root = evaluate(task.inner, witness).value if witness.duals else -math.inf
        if at_root == -math.inf:  # curvature of what fixing left is not that of the whole problem
            witness = Witness((), bounds=task.bounds)
        at_root, proved = at_root - problem.margin, proved - problem.margin
        value = max(proved, at_root)
        source = f"{SEARCHED}: {search.recorder.count} nodes, {search.open} open"
        root = reserve.bound(
            form,
            x,
            final,
            proved=value,
            gap=task.gap,
            duals=duals,
            interrupted=self.interrupted,
            began=self.began,
        )
        best = root.best
        if task.bounds is not None:
            # What the parts rest on, the bound at the root rests on too.
            again = replace(best.witness, bounds=task.bounds)
            best = replace(best, witness=again, bound=evaluate(task.inner, again))
        best = carried(problem, best)
        if best.bound.value > at_root:
            witness, at_root = best.witness, best.bound.value
            if at_root > value:
                value, source = at_root, f"{best.source} ({source})"
        # No part can be better than the point itself, however far beyond it the closed ones are.
        value = stated(problem, value)
        bound = Bound(value, 0.0, SEARCHED, "" if math.isfinite(value) else NOTHING)
        bound = named(bound, witness.bounds)
        certificate = assemble(
            problem,
            x,
            Candidate(witness, bound, source),
            names=names,
            backend=backend,
            progress=self._moments(history, root.progress if best.bound.value >= value else ()),
            target=task.gap,
            seconds=time.perf_counter() - self.began,
            proof={"summary": self._summary(bound, at_root, final), "tree": record},
        )
        return replace(certificate, assumptions=(*certificate.assumptions, searched(record)))

    def _proved(self, record: dict[str, Any] | None) -> float:
        """Return the bound of the parts, no higher than what the record proves."""
        task, sparsity = self.task, self.task.form.sparsity
        prices = np.sort(np.broadcast_to(sparsity.unit_price, (sparsity.units,)))
        # Whoever checks it adds prices up in another order.
        proved = self.search.bound - 8.0 * U * float(prices[-max(sparsity.budget, 1) :].sum())
        if self.search.root.needs_record:
            proved = -math.inf
            if record is not None:
                form, inner, bounds = task.form, task.inner, task.bounds
                proved = checked(form, inner, record, caution=CAUTION, bounds=bounds).bound
        dual = record is not None and not record["gram"]
        loose = loose_coordinates(task.form)[task.form.sparsity.counted]
        if dual and (task.inner is not task.form or np.any(loose)):
            # Parts of a box are evaluated on fewer columns here than by whoever checks the
            # record, with smaller allowances for rounding; so are slopes that must vanish.
            again = checked(
                task.form, task.inner, record, quadratic=task.quadratic, bounds=task.bounds
            )
            proved = min(proved, again.bound)
        if self.resume is None:
            return proved
        return at_least(
            proved,
            self.resume,
            lambda: tree_bound(task.form, task.inner, task.tree, task.bounds),
        )

    def _root_witness(self) -> Witness:
        """Return the witness of the root's relaxation, where it is not in the record anyway."""
        first, size = self.search.first, self.task.form.sparsity.size
        bare = Witness((), bounds=self.task.bounds)
        if first is None or first.stage is None or first.duals is not None:
            return bare
        if first.stage.stiffness is not None:
            return bare
        at = first.x if first.at is None else first.at
        if not np.all(np.isfinite(at)):
            return bare
        delta = np.zeros(size)
        delta[first.stage.active] = first.stage.delta
        witness = replace(extracted(self.task.inner, at, delta), bounds=self.task.bounds)
        if np.any(delta > 0.0):
            return witness
        # Without rows the point stays: it is what its gradient is known by.
        return replace(witness, at=at if self.problem.condensed else None, extraction=None)

    def _moments(self, history: Sequence[Iteration], last: Sequence[Progress]) -> list[Progress]:
        """Return the solver's and the search's moments, then those of the bound at the root."""
        moments, before = solver_progress(history), 0.0
        if self.resume is not None and self.resume.progress:
            moments, before = list(self.resume.progress), self.resume.progress[-1].seconds
        for s in self.search.history:
            bound = s.bound if s.bound < math.inf else s.value
            moments.append(Progress(before + s.seconds, s.value, bound, "proof"))
        return moments + [p._replace(seconds=before + p.seconds) for p in last]

    def _summary(self, bound: Bound, at_root: float, final: Primal) -> dict[str, Any]:
        search, left = self.search, self.search.open
        if self.interrupted:
            ended = "interrupted"
        elif left and search.stopped:
            ended = "end of a short search"
        elif left and (search.over or left > search.given_up):
            full = search.root.needs_record and search.recorder.full
            ended = "the file has no room for more nodes" if full else "time limit"
        elif left:
            ended = "no bound is known on some parts"
        elif final.upper - bound.value <= final.upper - search.cutoff:
            ended = "closed"
        elif search.nodes:
            ended = "closed" if search.bound >= search.cutoff else "bounds of parts leave a gap"
        else:  # where rounding decides there may be nothing to branch on
            ended = "rounding leaves nothing to bound"
        return {
            "method": bound.method + " on the perspective relaxation",
            "nodes": search.recorder.count,
            "open": left,
            "decided by bounds": search.fixed,
            "bound at the root": at_root,
            "gap asked for": self.task.gap,
            "ended": ended,
        }
