"""Certify a point: find the best bound there is, and write down what is proved."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sparsemodel._version import __version__
from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem, condensed
from sparsemodel.certificates.arithmetic.multipliers import (
    MILD,
    dualised,
    multipliers_at,
    no_multipliers,
)
from sparsemodel.certificates.dual_bounds.bound import infimum_bound
from sparsemodel.certificates.dual_bounds.bound_search import Candidate
from sparsemodel.certificates.dual_bounds.coefficient_bounds.slopes_of_equations import (
    ROUNDS,
    relaxed_slopes,
)
from sparsemodel.certificates.dual_bounds.root import Root, evaluated, root_bound
from sparsemodel.certificates.statements.certificate import Certificate, Progress
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, relative_gap_of
from sparsemodel.certificates.statements.derived import derive
from sparsemodel.certificates.statements.fingerprint import block_fingerprints
from sparsemodel.certificates.statements.objective_interval import Primal, constant_part
from sparsemodel.certificates.statements.problem_facts import describe
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    Iteration,
    SparseModelError,
    SparseRegression,
)
from sparsemodel.numerics import satisfied
from sparsemodel.numerics.budget import budget, ending_by
from sparsemodel.threads import small_work

_KEPT_PROGRESS = 200

INTERRUPTED = " (interrupted before the search ended)"
"""What the source of a bound ends with, where Ctrl-C ended the search for a better one."""


@small_work()
@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def certify(
    form: SparseRegression,
    x: FloatArray,
    *,
    names: Sequence[str] | None = None,
    duals: Sequence[tuple[FloatArray, ...]] = (),
    backend: str = "",
    history: Sequence[Iteration] = (),
    target: float = OPTIMAL_GAP,
    time_limit: float | None = None,
    relax: bool = True,
) -> Certificate:
    """Return what can be proved about ``x`` as a solution of ``form``, without branching.

    Parameters
    ----------
    form
        The canonical problem on the user's data, before any reduction.
    x
        The point, in the shape of the form.
    names
        A name for every coordinate; ``x[j]`` by default.
    duals
        Gradients of the terms in their predictions (weights inside) that a solver met; each is
        tried as a dual point.
    backend
        Who found the point, for the report.
    history
        The solver's iterations, for the picture.
    target
        Relative gap that is good enough: the search for a better bound ends there.
    time_limit
        Seconds for the search of the bound; None lets it end by its own rules. What Numba compiles
        on the first call after an installation is not counted.
    relax
        Whether to maximise the dual bound when the free ones leave a gap.

    Returns
    -------
    Certificate
        With the best bound so far where the search is interrupted (Ctrl-C).

    Raises
    ------
    DataError
        When ``x`` does not fit the form, or ``target`` makes no sense.
    """
    began = time.perf_counter()
    x = checked_point(form, x)
    if not (math.isfinite(target) and target >= 0.0):
        raise DataError(f"target must be a number of at least 0, not {target!r}.")
    deadline = None if time_limit is None else began + time_limit
    with ending_by(deadline):
        problem = condensed(form, x)
    check_value(problem.at_point)
    if problem.fingerprints is None:  # before the search: nothing is stated without
        known = [block_fingerprints(term.design) for term in form.terms]
        problem = replace(problem, fingerprints=known)

    def root_of(problem: CertifiedProblem) -> Root:
        return root_bound(
            problem.minorant,
            x,
            problem.at_point,
            duals=duals if problem.minorant is form else (),
            deadline=deadline,
            relax=relax,
            began=began,
            target=target,
        )

    problem = with_multipliers(problem, x)
    root = root_of(problem)
    if not _suffices(problem, root, target):
        plain = no_multipliers(problem)
        other = root_of(plain)
        if other.best.bound.value >= root.best.bound.value:
            problem, root = plain, other
    for _ in range(ROUNDS):
        bounds = root.best.witness.bounds
        better = None if bounds is None else relaxed_slopes(problem, x, bounds, deadline)
        if better is None or root.interrupted:
            break
        again = root_of(better)
        if not again.best.bound.value > root.best.bound.value:
            break
        problem, root = better, again
    best = carried(problem, root.best)
    if root.interrupted:
        best = replace(best, source=f"{best.source} (interrupted before the search ended)")
    return assemble(
        problem,
        x,
        best,
        names=names,
        backend=backend,
        progress=[*solver_progress(history), *root.progress],
        target=target,
        seconds=time.perf_counter() - began,
    )


def _suffices(problem: CertifiedProblem, root: Root, target: float) -> bool:
    """Return whether a bound with multipliers is likely to be the better one.

    Of inequalities they are those of one support, and others may do better without.
    """
    if problem.multipliers is None or root.interrupted:
        return True
    bound, upper = root.best.bound.value, problem.at_point.upper
    held = problem.multipliers
    equations = np.count_nonzero(held.slopes) == np.count_nonzero(held.stiffness)
    equations &= held.norms is None or not np.any(held.norms)
    better = bound > infimum_bound(problem.form).value
    return better and (
        equations or relative_gap_of(upper, bound, constant_part(problem.form)) <= target
    )


def with_multipliers(
    problem: CertifiedProblem,
    x: FloatArray,
    stiffness: float = MILD,
    *,
    own: bool = False,
    sloped: bool = False,
) -> CertifiedProblem:
    """Return the problem with its constraints in the objective that bounds are sought for.

    Not where bounds rest on sums of products, nor for a point that is not feasible. With ``own``
    the parts of a search may have slopes of their own, also of norms with ``sloped``.
    """
    if problem.condensed or problem.at_point.violations:
        return problem
    held = multipliers_at(problem.form, x, stiffness, sloped=sloped)
    return dualised(
        problem, None if held is None else replace(held, own=own and held.slopes.size > 0)
    )


def check_value(at_point: Primal) -> None:
    """Raise :class:`DataError` where the objective at the point is not a number."""
    if np.isnan(at_point.value):
        raise DataError(
            "The objective is not a number at the point: the data hold NaN, or were changed after "
            "the problem was declared. There is nothing to certify."
        )


def checked_point(form: SparseRegression, x: Any) -> FloatArray:
    """Return a float64 copy of ``x``, or raise :class:`DataError`."""
    point = np.array(x, dtype=np.float64)
    if point.shape != form.shape:
        raise DataError(
            f"The point has shape {point.shape}, and the problem's coordinates {form.shape}."
        )
    if not np.all(np.isfinite(point)):
        raise DataError("The point has entries that are not finite; there is nothing to certify.")
    return point


def carried(problem: CertifiedProblem, found: Candidate) -> Candidate:
    """Return a candidate found on less data as one for all of them, its bound evaluated again."""
    witness = problem.portable(found.witness)
    if witness is found.witness:
        return found
    again = evaluated(problem.minorant, replace(found, witness=witness), problem.at_point)
    lower = replace(again.bound, value=again.bound.value - problem.margin)
    return replace(again, bound=lower)


def _without_features(form: SparseRegression) -> float:
    """Return the objective of the coefficients that are not counted alone; infinite without any.

    Where time is up it is that at zero.
    """
    objective = objective_of(form)
    origin = objective.origin()
    free = form.sparsity.free
    forced = form.sparsity.forced_units or not (satisfied(form, origin.x) or free.size)
    if forced or budget().over():
        return math.inf if forced or not satisfied(form, origin.x) else float(origin.value)
    try:
        point = restricted_of(form)(objective, free, origin) if free.size else origin
    except SparseModelError:  # such a model has no minimum
        return math.inf
    fits = np.isfinite(point.value) and satisfied(form, point.x)
    return float(point.value) if fits else math.inf


def assemble(
    problem: CertifiedProblem,
    x: FloatArray,
    best: Candidate,
    *,
    names: Sequence[str] | None,
    backend: str,
    progress: Sequence[Progress],
    target: float,
    seconds: float,
    proof: dict[str, Any] | None = None,
) -> Certificate:
    """Return the certificate for a point and the best candidate for its bound."""
    searched = proof is not None
    form, at_point = problem.form, problem.at_point
    found = derive(problem, x, best.bound, best.witness, searched=searched)
    bound = found.bound
    shown = sorted({*at_point.support.tolist(), *form.sparsity.free.tolist()})
    label: Callable[[int], str] = (
        (lambda j: f"x[{j}]") if names is None else (lambda j: str(names[j]))
    )
    return Certificate(
        claim=found.claim(at_point.upper, bound.value),
        value=at_point.value,
        upper=at_point.upper,
        bound=bound.value,
        allowance=at_point.allowance if searched else found.allowance,
        null_value=found.null_value,
        constant=found.constant,
        target=target,
        bound_method=bound.method,
        bound_source=best.source,
        bound_reason=bound.reason,
        assumptions=found.assumptions,
        stationarity=found.stationarity,
        violations=at_point.violations,
        x=x,
        support=tuple(int(j) for j in at_point.support),
        names={int(j): label(int(j)) for j in shown},
        problem=describe(form, problem.fingerprints),
        witness=replace(best.witness, multipliers=problem.multipliers),
        backend=backend,
        progress=thinned(progress),
        without=_without_features(form),
        seconds=seconds,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        proof=proof,
    )


def versions() -> dict[str, str]:
    """Return the versions of what the numbers were computed with."""
    import scipy

    return {
        "sparsemodel": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def thinned(progress: Sequence[Progress]) -> tuple[Progress, ...]:
    """Return at most a few hundred moments, the first and the last among them."""
    if len(progress) <= _KEPT_PROGRESS:
        return tuple(progress)
    keep = np.unique(np.linspace(0, len(progress) - 1, _KEPT_PROGRESS).round().astype(int))
    return tuple(progress[i] for i in keep)


def solver_progress(history: Sequence[Iteration]) -> list[Progress]:
    """Return a solver's iterations with the best objective so far, over all of its stages."""
    out, best = [], math.inf
    for event in history:
        best = min(best, event.best)
        out.append(Progress(float(event.elapsed), float(best), -math.inf, event.backend))
    return out
