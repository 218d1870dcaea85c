"""Proving a problem's solution, or the better one that the proof finds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemodel.driver import Outcome
from sparsemodel.interfaces import (
    DataTypeError,
    FloatArray,
    Iteration,
    ModelError,
    UnsupportedProblemError,
)
from sparsemodel.modelling.expressions.options import time_limit_of
from sparsemodel.modelling.expressions.values import real_number
from sparsemodel.modelling.regression.compiled import Compiled
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.reporting.progress import progress

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def prove(
    compiled: Any,
    outcome: Outcome,
    solution: Solution,
    *,
    gap: Any,
    time_limit: Any,
    verbose: bool,
    resume: Any = None,
) -> tuple[Certificate, Outcome, Solution]:
    """Return the certificate, and the outcome and solution that belong to it."""
    if not isinstance(compiled, Compiled):
        raise ModelError("prove() is for regressions; certify() has a bound for this problem.")
    gap = real_number(gap, where="gap", minimum=0.0)
    time_limit = time_limit_of(time_limit)
    earlier = _earlier(resume)
    began = time.perf_counter()
    with progress(verbose) as line:

        def show(upper: float, bound: float, nodes: int) -> None:
            if line is not None:
                left = (upper - bound) / max(abs(upper), abs(bound), 1e-300)
                elapsed = time.perf_counter() - began
                line(
                    Iteration(
                        backend="branch and bound, node",
                        index=nodes,
                        value=bound,
                        best=upper,
                        support=np.flatnonzero(outcome.x),
                        residual=left,
                        elapsed=elapsed,
                        values=outcome.x[np.flatnonzero(outcome.x)],
                    )
                )

        try:
            certificate, x = _search(
                compiled, outcome, solution.backend, gap, time_limit, show, earlier
            )
        except KeyboardInterrupt:  # before there was anything to search
            certificate, x = _at_hand(compiled, outcome, solution.backend), outcome.x
    last = compiled.certified
    if last is not None and np.array_equal(last.x, x) and last.bound > certificate.bound:
        certificate = last  # rounding, or a gap that was asked for and is wider
    bound = max(solution.bound, certificate.bound)
    if np.array_equal(x, outcome.x):
        return certificate, outcome, replace(solution, bound=bound)
    better = replace(outcome, x=x, value=certificate.value)
    return certificate, better, improved(compiled, better, solution, bound)


def enclosure(*problem: Any) -> tuple[float, float]:
    """Return proved bounds on an optimum from both sides: what a solver asks, which is seldom."""
    from sparsemodel.certificates import enclosure as enclose

    return enclose(*problem)


def _earlier(resume: Any) -> Certificate | None:
    """Return the certificate to go on from, read from its file where a path is given."""
    from sparsemodel.certificates import Certificate

    if resume is None or isinstance(resume, Certificate):
        return resume
    if isinstance(resume, (str, os.PathLike)):
        return Certificate.load(resume)
    raise DataTypeError(
        f"resume needs a certificate or the path of its .json file, not {type(resume).__name__}."
    )


def _search(
    compiled: Compiled,
    outcome: Outcome,
    backend: str,
    gap: float,
    time_limit: float | None,
    show: Callable[[float, float, int], None],
    resume: Certificate | None,
) -> tuple[Certificate, FloatArray]:
    """Run the compiled search for squared losses, the general one for everything else."""
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.proving import bounds_for_proof
    from sparsemodel.certificates.dual_bounds.root import known_candidates
    from sparsemodel.certificates.proving import branch_and_bound
    from sparsemodel.certificates.proving import compiled as proof

    form, names = compiled.form, compiled.layout.names()
    known = known_candidates([compiled.certified, resume], form)
    if resume is None:
        resume = _searched(compiled, gap)
    began = time.perf_counter()
    bounds = None if resume is not None else bounds_for_proof(form, outcome.x, time_limit)
    if time_limit is not None:
        time_limit = max(0.0, time_limit - (time.perf_counter() - began))
    if bounds is None and not (resume is not None and branch_and_bound.wrote(resume)):
        try:
            return proof.prove(
                form,
                outcome.x,
                names=names,
                gap=gap,
                time_limit=time_limit,
                duals=outcome.duals,
                backend=backend,
                history=outcome.history,
                progress=show,
                resume=resume,
                known=known,
            )
        except UnsupportedProblemError:
            pass

    def listen(at: branch_and_bound.Standing) -> bool:
        show(at.value, at.bound, at.nodes)
        return False

    certificate = branch_and_bound.prove(
        form,
        outcome.x,
        names=names,
        gap=gap,
        time_limit=time_limit,
        backend=backend,
        progress=listen,
        resume=resume,
        bounds=bounds,
        duals=outcome.duals,
        known_roots=known,
    )
    return certificate, certificate.x


def _searched(compiled: Compiled, gap: float) -> Certificate | None:
    """Return the last certificate where it rests on a search that a proof can go on with."""
    last = compiled.certified
    if last is None or last.proof is None or last.proof.get("tree") is None:
        return None
    return last if last.target <= gap else None


def _at_hand(compiled: Compiled, outcome: Outcome, backend: str) -> Certificate:
    """Return what is known without a search: the last certificate, or one from a few products."""
    from sparsemodel.certificates import certify

    if compiled.certified is not None and np.array_equal(compiled.certified.x, outcome.x):
        return compiled.certified
    return certify(
        compiled.form,
        outcome.x,
        names=compiled.layout.names(),
        duals=outcome.duals,
        backend=backend,
        history=outcome.history,
        relax=False,
    )


def improved(compiled: Compiled, outcome: Outcome, last: Solution, bound: float) -> Solution:
    """Return the solution for a better point met by a proof."""
    layout, x = compiled.layout, outcome.x
    names = layout.names()
    nonzero = x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1)
    indices, support_names = compiled.support(np.flatnonzero(nonzero & compiled.counted))
    return replace(
        last,
        value=outcome.value,
        backend=f"{last.backend} + branch and bound",
        indices=indices,
        support_names=support_names,
        coefficients={
            names[j]: float(x[j]) if x.ndim == 1 else x[j].copy() for j in np.flatnonzero(nonzero)
        },
        values={
            spec.label: value for spec, value in zip(layout.variables, layout.split(x), strict=True)
        },
        bound=bound,
        notes=(*last.notes, "the proof found a better point than the solver"),
    )


__all__ = ["enclosure", "improved", "prove"]
