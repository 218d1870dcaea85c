"""Prove a point optimal by branch and bound, with a record that can be checked again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.arithmetic.scaling import scaling
from sparsemodel.certificates.certify import assemble, check_value, checked_point
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.dual_bounds.bound_search import Candidate
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds, named
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed
from sparsemodel.certificates.dual_bounds.coefficient_bounds.certifying import within
from sparsemodel.certificates.dual_bounds.gains import forced_units
from sparsemodel.certificates.dual_bounds.root import Reserve, contradicts
from sparsemodel.certificates.proving.branch_and_bound.record import (
    KIND,
    Checked,
    Recorder,
    checked,
    tree_bound,
)
from sparsemodel.certificates.proving.branch_and_bound.search import Search, Standing
from sparsemodel.certificates.proving.branch_and_bound.tree import region_bounds
from sparsemodel.certificates.proving.compiled.resume import at_least, better, searched, stored_tree
from sparsemodel.certificates.relaxation.regulariser import objection
from sparsemodel.certificates.statements.certificate import Certificate, Progress, Witness
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.interfaces import (
    Conjugable,
    DataError,
    FloatArray,
    SparseRegression,
    UnsupportedProblemError,
)
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
    max_nodes: int | None = None,
    backend: str = "",
    progress: Callable[[Standing], bool] | None = None,
    resume: Certificate | None = None,
    bounds: CoefficientBounds | None = None,
    duals: Sequence[tuple[FloatArray, ...]] = (),
    known_roots: Sequence[Candidate] = (),
) -> Certificate:
    """Search until no feasible point can be better than the best one by more than ``gap``.

    Parameters
    ----------
    form
        Losses with conjugates; groups, rows of matrices, signs, bounds and prices as far as the
        relaxation understands them.
    x
        A feasible point to start from; better ones met on the way replace it.
    names
        A name for every coordinate.
    gap
        Relative gap to reach, at least 1e-9.
    time_limit
        Seconds after which the gap reached is reported; None for no limit.
    max_nodes
        Limit on the number of regions looked at.
    backend
        Who found the point.
    progress
        Called with each :class:`Standing`; returning True ends the search.
    resume
        The certificate of an earlier proof of this problem. Its dual points are evaluated again,
        the parts that it closed stay closed, and the search goes on with the others.
    bounds
        Bounds on the coefficients that the data prove; those of ``resume`` take their place.
    duals
        Gradients of the terms in their predictions that a solver met, for the bound without
        branching.
    known_roots
        Bounds without branching that are known already; without any, a quarter of the time is kept
        to look for one where branching leaves a gap.

    Returns
    -------
    Certificate
        For the best point. Its bound is the least over all regions, open ones included, each
        evaluated with its rounding allowance on the original data.

    Raises
    ------
    UnsupportedProblemError
        When the relaxation cannot be solved for this kind of problem; the reasons are listed.
    DataError
        When ``x`` is infeasible or ``gap`` makes no sense.
    CertificateError
        When ``resume`` is of another problem, or holds no tree to go on with.
    """
    began = time.perf_counter()
    inner, earlier = form, None
    if resume is not None:
        earlier = stored_tree(resume, form, gap)
        bounds = resume.witness.bounds
        inner = within(form, bounds, primal(form, checked_point(form, resume.x)))
    elif bounds is not None:
        inner = boxed(form, bounds)
    reasons = objections(inner)
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
    known = None
    if resume is not None:
        known = checked(inner, earlier, caution=CAUTION)
        x, _ = better(form, x, at_point, resume)
    # Powers of two scale floats exactly: a bound on the scaled form is one on the form itself.
    other = scaling(inner)
    reserve = Reserve(began, time_limit, known_roots)
    search = Search(
        inner if other is None else other.form,
        x if other is None else other.start(x),
        0.98 * gap,
        deadline=reserve.deadline,
        progress=progress,
        max_nodes=max_nodes,
        points=form if other is None else other.apply(form),
    )
    recorder = Recorder(inner, other, earlier)
    interrupted = _run(search, known)
    recorder.add(search.nodes, search.domains)
    regions = region_bounds(search.nodes, search.domains, search.bounds)
    root, proved = (search.bounds[0], regions[0]) if known is None else (known.root, known.closed)
    for i, leaf in enumerate(() if known is None else known.leaves):
        value = leaf.bound
        if i in search.reopened:
            recorder.follows(leaf, search.reopened[i])
            value = max(value, regions[search.reopened[i]])
        proved = min(proved, value)
    tree = recorder.to_dict()
    if bounds is not None and tree is not None:
        # Parts of a box are evaluated on fewer columns here than by whoever checks the record,
        # with smaller allowances for rounding: what is claimed is what the record proves.
        proved = min(proved, checked(inner, tree).bound)
    best = search.incumbent.x if other is None else other.restore(search.incumbent.x)
    found = primal(form, best)
    if contradicts(found, proved):
        raise contradiction(form, proved, found.upper, METHOD)
    left, count = search.standing().open + interrupted, recorder.count
    source = f"{METHOD}: {count} regions, {left} open"
    at_root = root.value if root.finite else -math.inf
    # The record alone decides; the running bound of the search must not exceed it.
    value = at_least(proved, resume, lambda: tree_bound(inner, earlier))
    witness = Witness((), bounds=bounds)
    more = reserve.bound(
        form,
        best,
        found,
        proved=proved,
        gap=gap,
        duals=duals,
        interrupted=interrupted,
        began=began,
    )
    if more.best.bound.value > value:
        witness, value = more.best.witness, more.best.bound.value
        if witness.bounds is None:  # those that the parts rest on
            witness = replace(witness, bounds=bounds)
        at_root, source = value, f"{more.best.source} ({source})"
    # No part can be better than the point itself, however far beyond it the closed ones are.
    bound = Bound(min(value, found.upper), root.allowance if root.finite else 0.0, METHOD)
    if not math.isfinite(value):
        bound = Bound(-math.inf, math.inf, METHOD, "nothing was proved")
    bound = named(bound, witness.bounds)
    moments, before = list[Progress](), 0.0
    if resume is not None and resume.progress:
        moments, before = list(resume.progress), resume.progress[-1].seconds
    moments += [
        Progress(before + s.seconds, s.value, _finite(s.bound), "proof") for s in search.history
    ]
    certificate = assemble(
        form,
        best,
        found,
        Candidate(witness, bound, source),
        names=names,
        backend=backend,
        progress=moments,
        target=gap,
        seconds=time.perf_counter() - began,
        proof={
            "summary": {
                "method": bound.method + " on the perspective relaxation",
                "regions": count,
                "open": left,
                "bound at the root": at_root,
                "gap asked for": gap,
                "ended": "interrupted" if interrupted else "time limit" if left else "closed",
            },
            "tree": tree,
        },
    )
    return replace(certificate, assumptions=(*certificate.assumptions, searched(tree)))


def _run(search: Search, known: Checked | None) -> bool:
    """Run a search, or go on with a stored one; return whether the user stopped it."""
    try:
        if known is None:
            search.run()
        else:
            search.resume(known.closed, known.leaves)
    except KeyboardInterrupt:
        return True
    return False


def objections(form: SparseRegression) -> tuple[str, ...]:
    """Return every reason why branching does not apply to ``form``."""
    out = []
    unknown = sorted({t.loss.name for t in form.terms if not isinstance(t.loss, Conjugable)})
    if unknown:
        out.append(f"the conjugate of {', '.join(unknown)} is not known")
    if np.any(forced_units(form.sparsity, form.box)):
        out.append("bounds keep counted coordinates away from zero")
    reason = objection(form, form.ridge)
    if reason and reason not in out:
        out.append(reason)
    return tuple(out)


def _finite(bound: float) -> float:
    return bound if math.isfinite(bound) else -math.inf


def wrote(certificate: Certificate) -> bool:
    """Return whether a certificate holds the record of this search, not of another one."""
    tree = None if certificate.proof is None else certificate.proof.get("tree")
    return isinstance(tree, dict) and tree.get("kind") == KIND


__all__ = ["METHOD", "objections", "prove", "wrote"]
