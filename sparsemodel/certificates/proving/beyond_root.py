"""A search over supports that ends soon, where the bound at the root leaves a gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import condensed
from sparsemodel.certificates.arithmetic.multipliers import dualised
from sparsemodel.certificates.certify import INTERRUPTED, assemble
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.dual_bounds.bound_search import Candidate
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import named
from sparsemodel.certificates.dual_bounds.root import known_candidates
from sparsemodel.certificates.proving.dual.shared import few_supports
from sparsemodel.certificates.proving.gram.searchable import objections
from sparsemodel.certificates.proving.prove import nothing_known, prove
from sparsemodel.certificates.proving.records.searches import SEARCHED, searched
from sparsemodel.certificates.proving.search import Snapshot
from sparsemodel.certificates.short_proofs.short_proof import hopeless, root_cost
from sparsemodel.certificates.statements.certificate import Certificate
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, Claim
from sparsemodel.interfaces import DataError, SparseRegression, UnsupportedProblemError
from sparsemodel.numerics import as_sequence

_PATIENCE = 3.0
"""Seconds after which a search of all supports ends, which has no limit on its nodes."""

_OPERATIONS, _ROOT = 5e8, 6e10
"""Of all nodes together, about half a second, and of what comes before the first."""

_RELAXATIONS = 1e9
"""Of relaxations with a Gram matrix, as counted; some take a hundred times the forecast."""

_LEAST, _READ = 3, 2e7
"""Nodes of smooth losses in any case, up to so many entries: with a strong ridge few suffice."""

_COMPILED, _IN_NUMPY = (5e5, 3.0), (5e6, 50.0)
"""Operations of a node, and of each entry of the Gram matrix or the data. In NumPy 35 problems took
4 to 10 ms a node, and 50 to 200 operations an entry where there are many."""

_WIDE = 10.0
"""How many times as much the entries take where there are more columns than rows."""

_KINKS = 8.0
"""How many times as much losses with kinks take, which are minimised by homotopies."""


@final
@dataclass(frozen=True, slots=True)
class SearchGoal:
    """What a search must prove, however many nodes that takes."""

    bound: float = -np.inf
    """A lower bound that is known without a certificate."""
    decision: bool = False
    """Whether it looks at all supports, as there are few or all were tried before."""


def worth_searching(form: SparseRegression, aim: SearchGoal, *, many: bool) -> bool:
    """Return whether a search may be short; with ``many`` also where supports are.

    The bound of a sequence is exact without one.
    """
    asked = aim != SearchGoal() or few_supports(form) or (many and nodes_of(form) > 0)
    return asked and as_sequence(form) is None


def nodes_of(form: SparseRegression) -> int:
    """Return how many nodes a short search looks at: by their forecast cost, not by the clock."""
    size = float(form.sparsity.size)
    rows = sum(term.design.shape[0] for term in form.terms)
    if not objections(form):
        fixed, each = _COMPILED
        each *= _WIDE if rows < size else 1.0
        return int(_OPERATIONS / (fixed + each * size * size)) if root_cost(form) <= _ROOT else 0
    fixed, each = _IN_NUMPY
    smooth = all(t.traits.has_hessian for t in form.terms)
    columns = float(form.shape[1]) if form.matrix else 1.0
    entries = rows * size * columns
    nodes = _OPERATIONS / ((fixed + each * entries) * (1.0 if smooth else _KINKS))
    return max(int(nodes), _LEAST if smooth and entries <= _READ else 0)


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def beyond_root(
    form: SparseRegression,
    certificate: Certificate,
    *,
    names: Sequence[str] | None,
    deadline: float,
    aim: SearchGoal,
) -> Certificate:
    """Return the certificate that a short search over supports gives, where it says more.

    Parameters
    ----------
    form
        The problem.
    certificate
        What is known without a search.
    names
        A name for every coordinate.
    deadline
        On the clock of ``time.perf_counter``, for machines where nodes take very long.
    aim
        What the search must prove.

    Notes
    -----
    The certificate stays one of the same point: a better one met on the way only shows in the gap.
    """
    known = certificate.claim in (Claim.OPTIMAL, Claim.ZERO) or certificate.violations
    left, few = deadline - time.perf_counter(), few_supports(form)
    if aim.decision or few:
        left = min(left, _PATIENCE)
    if known or left <= 0.0:
        return certificate
    began = time.perf_counter()
    try:
        proof = prove(
            form,
            certificate.x,
            names=names,
            gap=OPTIMAL_GAP,
            time_limit=left,
            backend=certificate.backend,
            progress=None if aim.decision or few else _enough(form, aim.bound),
            boxable=not few,  # a box leaves a gap where rounding is not small
            known=known_candidates([certificate], form) or (nothing_known(form),),
        )
    except KeyboardInterrupt:  # before anything was searched
        return _interrupted(certificate)
    except (UnsupportedProblemError, DataError):
        return certificate
    if not proof.bound > certificate.bound or proof.proof is None or proof.proof["tree"] is None:
        # nor where the tree is too large to be checked
        return _interrupted(certificate) if ended_by_interrupt(proof) else certificate
    if not np.array_equal(proof.x, certificate.x):
        proof = _of_the_point(form, certificate, proof, names)
    seconds = certificate.seconds + time.perf_counter() - began
    moments = [p._replace(seconds=p.seconds + certificate.seconds) for p in proof.progress]
    return replace(proof, seconds=seconds, progress=(*certificate.progress, *moments))


def ended_by_interrupt(certificate: Certificate) -> bool:
    """Return whether Ctrl-C ended the search for the bound."""
    proof = certificate.proof
    searched_less = proof is not None and proof["summary"]["ended"] == "interrupted"
    return searched_less or certificate.bound_source.endswith(INTERRUPTED)


def _interrupted(certificate: Certificate) -> Certificate:
    return replace(certificate, bound_source=certificate.bound_source + INTERRUPTED)


def _enough(form: SparseRegression, aim: float) -> Callable[[Snapshot], bool]:
    """Return what ends a search: it looks long, or has had its nodes and come to a bound."""
    too_long, nodes = hopeless(form), nodes_of(form)

    def ended(now: Snapshot) -> bool:
        if now.bound < aim:
            return False
        spent = now.nodes >= nodes or now.operations >= _RELAXATIONS
        return spent or too_long(now.value, now.bound, now.nodes)

    return ended


def _of_the_point(
    form: SparseRegression,
    certificate: Certificate,
    proof: Certificate,
    names: Sequence[str] | None,
) -> Certificate:
    """Return what the search proves about the point, having found a better one."""
    problem = dualised(condensed(form, certificate.x), proof.witness.multipliers)
    bound, box = Bound(proof.bound, 0.0, SEARCHED), proof.witness.bounds
    if box is not None and problem.at_point.upper > box.level:
        return certificate  # the bounds rest on the better point, which is in no file
    bound = named(bound, box)
    tree = None if proof.proof is None else proof.proof["tree"]
    found = assemble(
        problem,
        certificate.x,
        Candidate(proof.witness, bound, proof.bound_source),
        names=names,
        backend=certificate.backend,
        progress=proof.progress,
        target=proof.target,
        seconds=proof.seconds,
        proof=proof.proof,
    )
    return replace(found, assumptions=(*found.assumptions, searched(tree)))
