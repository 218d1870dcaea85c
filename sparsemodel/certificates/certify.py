"""Certify a point: find the best bound there is, and write down what is proved."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sparsemodel._version import __version__
from sparsemodel.certificates.base import Certificate, Progress, Witness
from sparsemodel.certificates.claims import DEFAULT_TARGET, Assumption, Claim, decide
from sparsemodel.certificates.coefficient_bounds.base import STATEMENT
from sparsemodel.certificates.description import describe
from sparsemodel.certificates.dual import Bound, infimum_bound
from sparsemodel.certificates.equality import unbounded_coordinates
from sparsemodel.certificates.primal import FEASIBLE, Primal, null_value, primal
from sparsemodel.certificates.products import column_norms, matrix_free
from sparsemodel.certificates.search import Candidate, Found, extractable, search
from sparsemodel.certificates.stationarity import stationarity
from sparsemodel.certificates.witness import evaluate
from sparsemodel.interfaces import (
    Conjugable,
    DataError,
    FloatArray,
    Iteration,
    Loss,
    SparseRegression,
)

_KEPT_PROGRESS = 200


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def certify(
    form: SparseRegression,
    x: FloatArray,
    *,
    names: Sequence[str] | None = None,
    duals: Sequence[tuple[FloatArray, ...]] = (),
    backend: str = "",
    history: Sequence[Iteration] = (),
    target: float = DEFAULT_TARGET,
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
        Relative gap up to which the claim is "within gap".
    time_limit
        Seconds for the search of the bound; None lets it end by its own rules.
    relax
        Whether to maximise the dual bound when the free ones leave a gap.

    Returns
    -------
    Certificate

    Raises
    ------
    DataError
        When ``x`` does not fit the form.
    """
    from sparsemodel.certificates.coefficient_bounds.certifying import search_within

    began = time.perf_counter()
    x = checked_point(form, x)
    at_point = primal(form, x)
    norms = tuple(column_norms(term.design) for term in form.terms)
    candidates: list[Candidate] = [Candidate(Witness(()), infimum_bound(form), "nothing to search")]
    deadline = None if time_limit is None else began + time_limit
    progress = solver_progress(history)

    def take(found: Found) -> bool:
        """Keep what was found; return whether that was anything."""
        candidates.extend(found.candidates)
        progress.extend(found.progress)
        return bool(found.candidates)

    def look(known: Sequence[tuple[FloatArray, ...]], relax: bool) -> Found:
        return search(
            form,
            x,
            at_point,
            norms=norms,
            gradients=known,
            deadline=deadline,
            relax=relax,
            began=began,
        )

    def look_within() -> Found:
        best = max(candidates, key=lambda c: c.bound.value)
        return search_within(form, x, at_point, best, norms=norms, deadline=deadline, began=began)

    # In a box that the data prove every dual point is worth at least as much, so that comes first
    # where curvature cannot be taken out.
    boxable = relax and not extractable(form)
    take(look(duals, relax and not boxable))
    within = relax and take(look_within())
    if boxable and not within:
        take(look((), True))
    best = max(candidates, key=lambda c: c.bound.value)
    return assemble(
        form,
        x,
        at_point,
        best,
        names=names,
        backend=backend,
        progress=progress,
        target=target,
        seconds=time.perf_counter() - began,
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


def assemble(
    form: SparseRegression,
    x: FloatArray,
    at_point: Primal,
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
    bound, witness = best.bound, best.witness
    facts = stationarity(form, x, extraction=witness.extraction)
    null = null_value(form)
    assumptions = list_assumptions(form, at_point, bound, witness)
    if bound.value > at_point.upper and not at_point.violations:
        # Impossible for convex losses with right conjugates: one of the two was broken.
        assumptions.append(
            Assumption("no point lies below the bound (a loss is not what it says)", True, False)
        )
        bound = Bound(-math.inf, math.inf, bound.method, "the bound contradicts the point")
        witness = Witness(())
    claim = decide(
        feasible=not at_point.violations,
        stationary=facts.stationary,
        upper=at_point.upper,
        bound=bound.value,
        null_value=null,
        target=target,
    )
    shown = sorted({*at_point.support.tolist(), *form.sparsity.free.tolist()})
    label: Callable[[int], str] = (
        (lambda j: f"x[{j}]") if names is None else (lambda j: str(names[j]))
    )
    return Certificate(
        claim=claim,
        value=at_point.value,
        upper=at_point.upper,
        bound=bound.value,
        allowance=at_point.allowance + (bound.allowance if bound.finite else 0.0),
        null_value=null,
        target=target,
        bound_method=bound.method,
        bound_source=best.source,
        bound_reason=bound.reason,
        assumptions=tuple(assumptions),
        stationarity=facts,
        violations=at_point.violations,
        x=x,
        support=tuple(int(j) for j in at_point.support),
        names={int(j): label(int(j)) for j in shown},
        problem=describe(form),
        witness=witness,
        backend=backend,
        progress=thinned(progress),
        seconds=seconds,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        proof=proof,
    )


def list_assumptions(
    form: SparseRegression, at_point: Primal, bound: Bound, witness: Witness
) -> list[Assumption]:
    """Return what the numbers rest on, each with whether it was checked."""
    bad = "; ".join(at_point.violations)
    exact = form.box is None and form.region is None
    words = "the point is feasible" + ("" if exact else f" (constraints kept to {FEASIBLE:g})")
    out = [Assumption(words + (": " + bad if bad else ""), True, not at_point.violations)]
    if not bound.finite:
        return out
    if witness.duals:
        out.append(Assumption("the dual point lies in the domain of every conjugate", True))
        out.append(conjugates_agree(form, witness))
        if unbounded_coordinates(form, witness.extraction).size:
            out.append(
                Assumption(
                    "a dual point that balances the coordinates without ridge exactly lies "
                    "within the allowance",
                    True,
                )
            )
    if witness.bounds is not None:
        out.append(Assumption(STATEMENT, True))
    if witness.extraction is not None:
        out.append(
            Assumption(
                "the data have the extracted curvature (Cholesky with a safety margin)", True
            )
        )
    unknown = sorted(
        {t.loss.name for t, a in zip(form.terms, witness.duals, strict=False) if a is None}
    )
    if unknown:
        out.append(
            Assumption(
                f"{', '.join(unknown)}: convex, with gradients right to 64 units in the last place",
                False,
            )
        )
    if any(matrix_free(term.design) for term in form.terms):
        out.append(
            Assumption(
                "products of the matrix-free design are as accurate as sums of products", False
            )
        )
    out.append(
        Assumption("float64 arithmetic rounds to nearest, library functions to a few ulp", False)
    )
    return out


def conjugates_agree(form: SparseRegression, witness: Witness) -> Assumption:
    """Check the Fenchel-Young inequality ``l(u) + l*(a) >= a u`` at the dual point, u = 0 and y."""
    text = "values and conjugates of the losses satisfy the Fenchel-Young inequality there"
    for term, a in zip(form.terms, witness.duals, strict=True):
        loss = term.loss
        if a is None or not (isinstance(loss, Loss) and isinstance(loss, Conjugable)):
            continue
        for u in (np.zeros(a.shape), -a):
            values, conjugates = loss.value(u, term.target), loss.conjugate(a, term.target)
            products = a * u if a.ndim == 1 else np.einsum("ij,ij->i", a, u)
            size = 1.0 + np.abs(values) + np.abs(conjugates) + np.abs(products)
            if np.any(values + conjugates - products < -1e-10 * size):
                return Assumption(text, True, False)
    return Assumption(text, True)


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


__all__ = ["Claim", "assemble", "certify", "checked_point", "evaluate", "solver_progress"]
