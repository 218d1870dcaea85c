"""Prove a point optimal by branch and bound, with a record that can be checked again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.base import Certificate, Progress, Witness
from sparsemodel.certificates.branch_and_bound.record import Recorder, checked
from sparsemodel.certificates.branch_and_bound.search import Search, Standing
from sparsemodel.certificates.branch_and_bound.tree import region_bounds
from sparsemodel.certificates.certify import assemble, checked_point
from sparsemodel.certificates.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.coefficient_bounds.bounds import boxed
from sparsemodel.certificates.coefficient_bounds.certifying import named, within
from sparsemodel.certificates.dual import Bound, infimum_bound
from sparsemodel.certificates.gains import forced_units
from sparsemodel.certificates.primal import primal
from sparsemodel.certificates.proof.resume import better, searched, stored_tree
from sparsemodel.certificates.relaxation.regulariser import objection
from sparsemodel.certificates.scaling import scaling
from sparsemodel.certificates.search import Candidate
from sparsemodel.interfaces import (
    Conjugable,
    DataError,
    FloatArray,
    SparseRegression,
    UnsupportedProblemError,
)

METHOD = "branch and bound"


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
    inner = form
    if resume is not None:
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
    if at_point.violations:
        raise DataError("The point to start from is infeasible: " + "; ".join(at_point.violations))
    earlier = known = None
    if resume is not None:
        earlier = stored_tree(resume, form, gap)
        known = checked(inner, earlier)
        x, _ = better(form, x, at_point, resume)
    # Powers of two scale floats exactly: a bound on the scaled form is one on the form itself.
    other = scaling(inner)
    search = Search(
        inner if other is None else other.form,
        x if other is None else other.start(x),
        0.98 * gap,
        deadline=None if time_limit is None else began + time_limit,
        progress=progress,
        max_nodes=max_nodes,
        points=form if other is None else other.apply(form),
    )
    recorder = Recorder(inner, other, earlier)
    if known is None:
        search.run()
    else:
        search.resume(known.closed, known.leaves)
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
    infimum = infimum_bound(form)
    # The record alone decides; the running bound of the search must not exceed it.
    value = max(min(proved, found.upper), infimum.value)
    at_root = root.value if root.finite else -math.inf
    bound = Bound(value, root.allowance if root.finite else 0.0, METHOD)
    if not math.isfinite(value):
        bound = Bound(-math.inf, math.inf, METHOD, "nothing was proved")
    bound = named(bound, bounds)
    left, count = search.standing().open, recorder.count
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
        Candidate(
            Witness((), bounds=bounds), bound, f"{bound.method}: {count} regions, {left} open"
        ),
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
            },
            "root": at_root,
            "tree": tree,
        },
    )
    return replace(certificate, assumptions=(*certificate.assumptions, searched(tree)))


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


__all__ = ["METHOD", "objections", "prove"]
