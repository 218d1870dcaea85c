"""Prove a point optimal, or as near to it as time allows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.products import matrix_free
from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.certify import (
    assemble,
    certify,
    check_value,
    checked_point,
    solver_progress,
)
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.dual_bounds.bound_search import Candidate
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import named
from sparsemodel.certificates.dual_bounds.diagonal_shift import LIMIT
from sparsemodel.certificates.dual_bounds.root import Reserve, contradicts
from sparsemodel.certificates.dual_bounds.witness import evaluate, extracted
from sparsemodel.certificates.proving.compiled.quadratic import Quadratic
from sparsemodel.certificates.proving.compiled.resume import at_least, better, searched, stored_tree
from sparsemodel.certificates.proving.compiled.resume import resume as go_on
from sparsemodel.certificates.proving.compiled.search import Search
from sparsemodel.certificates.proving.compiled.tree import tree_bound
from sparsemodel.certificates.statements.certificate import Certificate, Progress, Witness
from sparsemodel.certificates.statements.exact_fit import exact_fit
from sparsemodel.certificates.statements.objective_interval import constant_part, primal
from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    Iteration,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.losses.residuals.quadratic import SquaredLoss
from sparsemodel.numerics.budget import Budget, gram_cost
from sparsemodel.numerics.objectives.closing import contradiction

METHOD = "branch and bound"


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def prove(
    form: SparseRegression,
    x: FloatArray,
    *,
    names: Sequence[str] | None = None,
    gap: float = 1e-4,
    time_limit: float | None = 60.0,
    duals: Sequence[tuple[FloatArray, ...]] = (),
    backend: str = "",
    history: Sequence[Iteration] = (),
    progress: Callable[[float, float, int], None] | None = None,
    resume: Certificate | None = None,
    known: Sequence[Candidate] = (),
) -> tuple[Certificate, FloatArray]:
    """Search supports until no feasible point can be better than ``x`` by more than ``gap``.

    Parameters
    ----------
    form
        Squared losses, ridge, at most ``k`` nonzero coordinates, always-in coordinates.
    x
        A feasible point to start from.
    names
        A name for every coordinate; ``x[j]`` by default.
    gap
        Relative gap to reach, at least 1e-9.
    time_limit
        Seconds after which the gap reached is reported; None for no limit.
    duals
        Gradients of the terms in their predictions that a solver met, for the bound without
        branching.
    backend
        Who found the point.
    history
        The solver's iterations, for the picture.
    progress
        Called with the best objective, the bound and the number of nodes.
    resume
        The certificate of an earlier proof of this problem. Its bounds are evaluated again, the
        parts that it closed stay closed, and the search goes on with the others.
    known
        Bounds without branching that are known already; without any, a quarter of the time is kept
        to look for one where branching leaves a gap.

    Returns
    -------
    Certificate
        Its bound is the least over all parts of the search, open ones included.
    x
        The best point: ``x`` itself, or a better one met on the way.

    Raises
    ------
    UnsupportedProblemError
        When the problem is of another kind; every reason is listed.
    DataError
        When ``x`` is infeasible or ``gap`` makes no sense.
    CertificateError
        When ``resume`` is of another problem, or holds no tree to go on with.

    Notes
    -----
    Holds the Gram matrix of the candidates, ``p^2`` numbers. Every node's bound is evaluated with
    running error bounds, so that the printed one holds for the exact problem.
    """
    began = time.perf_counter()
    reasons = objections(form)
    if reasons:
        raise UnsupportedProblemError(
            "This cannot be proved by branching: " + "; ".join(reasons), reasons
        )
    if not (math.isfinite(gap) and gap >= 1e-9):
        raise DataError(f"gap must be a number of at least 1e-9, not {gap!r}.")
    x = checked_point(form, x)
    at_point = primal(form, x)
    check_value(at_point)
    if at_point.violations:
        raise DataError("The point to start from is infeasible: " + "; ".join(at_point.violations))
    deadline = None if time_limit is None else began + time_limit
    rows = sum(term.design.shape[0] for term in form.terms)
    if resume is None and not Budget(deadline).fits(gram_cost(rows, form.sparsity.size)):
        # The Gram matrix alone would take longer: the bound of a certificate is all there is.
        return certify(
            form,
            x,
            names=names,
            duals=duals,
            backend=backend,
            history=history,
            target=gap,
            time_limit=time_limit,
        ), x
    tree = None if resume is None else stored_tree(resume, form, gap)
    if resume is not None:
        x, at_point = better(form, x, at_point, resume)
    moments = solver_progress(history)
    before = 0.0
    if resume is not None and resume.progress:
        moments, before = list(resume.progress), resume.progress[-1].seconds

    exact, constant = exact_fit(form, x, at_point.value), constant_part(form)

    def allowed(upper: float) -> float:
        # Below the rounding of the products there is nothing to be closed, and an exact fit cannot
        # be improved on.
        size = min(abs(upper), abs(upper - constant))
        return upper if exact else max(0.98 * gap * size, CAUTION * q.unit * q.aim**2)

    def report(upper: float, bound: float, nodes: int) -> None:
        moments.append(Progress(before + time.perf_counter() - began, upper, bound, "proof"))
        if progress is not None:
            progress(upper, bound, nodes)

    sparsity = form.sparsity
    loose = form.ridge[sparsity.free] == 0.0
    q = Quadratic.of(form)
    reserve = Reserve(began, time_limit, known)
    search = Search(
        q=q,
        counted=np.flatnonzero(sparsity.counted),
        ridged=sparsity.free[~loose],
        balanced=sparsity.free[loose],
        k=sparsity.budget,
        upper=at_point.upper,
        x=x,
        evaluate=lambda point: primal(form, point).upper,
        allowed=allowed,
        deadline=reserve.deadline,
        report=report,
    )
    interrupted = _run(search, form, tree)
    final = primal(form, search.x)
    if contradicts(final, search.bound):
        raise contradiction(form, search.bound, final.upper, METHOD)
    witness = _root_witness(form, search)
    at_root = evaluate(form, witness).value
    proved = at_least(search.bound, resume, lambda: tree_bound(form, tree))
    value, source = max(proved, at_root), f"{METHOD}: {search.nodes} nodes"
    source += f", {len(search.open)} open"
    root = reserve.bound(
        form,
        search.x,
        final,
        proved=value,
        gap=gap,
        duals=duals,
        interrupted=interrupted,
        began=began,
    )
    if root.best.bound.value > at_root:
        witness, at_root = root.best.witness, root.best.bound.value
        moments += root.progress
        if at_root > value:
            value, source = at_root, f"{root.best.source} ({source})"
    record = search.tree.to_dict()
    summary = {
        "method": METHOD + " on the perspective relaxation",
        "nodes": search.nodes,
        "open": len(search.open),
        "decided by bounds": search.fixed,
        "bound at the root": at_root,
        "gap asked for": gap,
        "ended": _ended(search, interrupted, final.upper - value <= allowed(final.upper)),
    }
    # No part can be better than the point itself, however far beyond it the closed ones are.
    value = min(value, final.upper)
    bound = Bound(value, 0.0, METHOD, "" if math.isfinite(value) else "nothing was proved")
    bound = named(bound, witness.bounds)
    certificate = assemble(
        form,
        search.x,
        final,
        Candidate(witness, bound, source),
        names=names,
        backend=backend,
        progress=moments,
        target=gap,
        seconds=time.perf_counter() - began,
        proof={"summary": summary, "tree": record},
    )
    return replace(certificate, assumptions=(*certificate.assumptions, searched(record))), search.x


def _run(search: Search, form: SparseRegression, tree: Any) -> bool:
    """Run a search, or go on with a stored one; return whether the user stopped it."""
    try:
        if tree is None:
            search.run()
        else:
            go_on(search, form, tree)
    except KeyboardInterrupt:
        return True
    return False


def _root_witness(form: SparseRegression, search: Search) -> Witness:
    """Return the witness of the root's relaxation."""
    if search.root is None:
        return Witness(())
    stage, w, _ = search.root
    point = np.zeros(form.shape)
    point[np.concatenate([stage.active, stage.balanced])] = stage.point(w)
    if not np.all(np.isfinite(point)):
        return Witness(())
    delta = np.zeros(form.sparsity.size)
    delta[stage.active] = stage.delta
    witness = extracted(form, point, delta)
    return witness if np.any(delta > 0.0) else Witness(witness.duals)


def objections(form: SparseRegression) -> tuple[str, ...]:
    """Return every reason why branching does not apply to ``form``."""
    out = []
    other = sorted(
        {t.loss.name for t in form.terms if not isinstance(t.loss, (SquaredLoss, LinearLoss))}
    )
    if other:
        out.append(f"it is for squared losses and linear terms, and {', '.join(other)} is not")
    if form.matrix:
        out.append("the variable is a matrix")
    if form.sparsity.groups is not None:
        out.append("groups are counted, not coordinates")
    if form.sparsity.price > 0.0:
        out.append("the cardinality has a price in the objective")
    if form.box is not None:
        out.append("the coordinates have bounds")
    if form.region is not None:
        out.append(f"there are constraints beside the cardinality: {form.region.describe()}")
    if any(matrix_free(t.design) for t in form.terms):
        out.append("the entries of a matrix-free design cannot be read")
    if form.sparsity.size > LIMIT:
        out.append(f"there are {form.sparsity.size} coordinates, and it is for at most {LIMIT}")
    return tuple(out)


def _ended(search: Search, interrupted: bool, reached: bool) -> str:
    """Return why a search ended; where rounding decides, there may be nothing to branch on."""
    if interrupted:
        return "interrupted"
    if search.open:
        return "time limit"
    return "closed" if search.nodes or reached else "rounding leaves nothing to bound"


__all__ = ["METHOD", "objections", "prove"]
