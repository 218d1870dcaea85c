"""Check the certificate of a precision matrix again, from its file and the covariance alone."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import TWICE
from sparsemodel.certificates.precision_matrices.ascent import rescaled
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PRECISION_WRITERS_OWN,
    PrecisionCertificate,
    PrecisionFacts,
    precision_claims,
)
from sparsemodel.certificates.precision_matrices.certify_precision import (
    RELAXED,
    SEARCHED,
    TRIVIAL,
    restricted_bound,
    witnessed_bound,
)
from sparsemodel.certificates.precision_matrices.evaluated import Point, edges_at, evaluate
from sparsemodel.certificates.precision_matrices.proving.record import graph_bound
from sparsemodel.certificates.precision_matrices.trivial import (
    null_value,
    precision_assumptions,
    scaled,
    trivial_nats,
)
from sparsemodel.certificates.statements.claims import REPRODUCED, Claim
from sparsemodel.certificates.statements.comparison import Verification, require, require_same
from sparsemodel.interfaces import (
    CertificateError,
    DataError,
    FloatArray,
    InfeasibleError,
    UnsupportedProblemError,
)
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision
from sparsemodel.numerics.precision import eigenvalues
from sparsemodel.threads import small_work


@small_work()
def verify_precision(
    certificate: Any,
    form: AnyPrecision,
    names: Sequence[str] | None = None,
    cross_check: bool = False,
) -> Verification:
    """Recompute every number of a certificate on ``form`` and return what was checked.

    Parameters
    ----------
    certificate
        A certificate, or the path of its ``.json`` file.
    form
        The problem, declared again from the data (``problem.form``). It knows its names.
    cross_check
        There is none for precision matrices.

    Raises
    ------
    CertificateError
        When the file is malformed or was changed, belongs to other data, or claims more than
        the data support; the message names the line.

    Notes
    -----
    At most eight eigendecompositions of each matrix, and of several ``m^2`` to ``4 m^2``: nothing
    is searched for.
    """
    if cross_check:
        raise UnsupportedProblemError("The cross-check is for certificates of regressions.")
    c = _about(certificate, form)
    lines = [("problem", "the same covariance, edges and eigenvalue bounds")]
    try:
        at = evaluate(form, c.x)
    except (DataError, InfeasibleError) as error:
        raise CertificateError(f"line 'witness.x' is not a feasible matrix: {error}") from error
    lines.append(_value(c, form, at))
    _same_edges(c, form, at)
    lines.append(
        ("edges", f"{len(c.edges)} edges, at most {form.sparsity.k} beside the required ones")
    )
    # A writer without time for the eigenvalues of S gives no bound at all.
    late = c.trivial_bound == c.bound == c.restricted_bound == -math.inf
    sigmas = None if late else [eigenvalues(part.covariance) for part in form.parts]
    compared, proved = _bounds(c, form, at, sigmas)
    lines += compared
    _derived(c, form, at)
    needed = precision_assumptions(form, sigmas)
    require(
        c.assumptions == needed,
        "assumptions",
        [str(a) for a in c.assumptions],
        [str(a) for a in needed],
    )
    lines.append(("assumptions", "listed in full; those that can be checked hold"))
    claim, words = _claim(c, form, proved)
    lines.append(("claim", words))
    lines.append(
        ("not checked", "what the author of the file states: " + ", ".join(PRECISION_WRITERS_OWN))
    )
    return Verification(claim, tuple(lines))


def _about(certificate: Any, form: AnyPrecision) -> PrecisionCertificate:
    """Return a certificate that is about the problem at hand, with numbers of the right shapes."""
    c = certificate
    if isinstance(certificate, (str, os.PathLike)):
        c = PrecisionCertificate.load(certificate)
    if not isinstance(c, PrecisionCertificate):
        raise CertificateError("This certificate is about no precision matrix.")
    require_same(c.problem.differences(PrecisionFacts.of(form)), form.parameters)
    check_shapes(c, form)
    return c


def _value(c: PrecisionCertificate, form: AnyPrecision, at: Point) -> tuple[str, str]:
    """Check the objective at the point, and what rounding may have added to it."""
    value, upper = scaled(form, at.value), scaled(form, at.upper, 1.0)
    reach = TWICE * (upper - value)
    require(abs(c.value - value) <= reach, "value", c.value, value)
    require(value <= c.upper <= upper + reach, "upper", c.upper, upper)
    return "value", f"P = {value!r}"


def _bounds(
    c: PrecisionCertificate, form: AnyPrecision, at: Point, sigmas: list[FloatArray] | None
) -> tuple[list[tuple[str, str]], dict[str, float]]:
    """Check the bounds from the witnesses and the record of a search, and which one it was.

    Returns what is proved, too: the stored ones may be above that by what roots are found to.
    """
    lines, lower = [], {}
    trivial = -math.inf if sigmas is None else trivial_nats(form, sigmas)
    proved = max(trivial, witnessed_bound(form, at.upper, c.witness))
    tree = None if c.proof is None else c.proof.get("tree")
    if tree is not None and isinstance(form, SparsePrecision):
        proved = max(proved, graph_bound(form, c.witness.above(at.upper), tree))
        lines.append(("proof", f"{len(tree['nodes'])} parts of the search, each evaluated again"))
    within = max(proved, restricted_bound(form, at, c.witness.restricted))
    for line, stored, nats in (
        ("trivial_bound", c.trivial_bound, trivial),
        ("bound", c.bound, proved),
        ("restricted_bound", c.restricted_bound, within),
    ):
        found = scaled(form, nats, -1.0)
        same = stored == found or abs(stored - found) <= _slack(form, found)
        # Without time for another one, the bound over the support is that over all supports.
        same = same or (line == "restricted_bound" and stored == c.bound <= found)
        require(same, line, stored, found)
        lines.append((line, f"{found!r}, stored {stored!r}"))
        lower[line] = min(stored, found)
    method = TRIVIAL if c.witness.final is None else RELAXED
    method = method if tree is None else SEARCHED
    require(c.method == method, "method", c.method, method)
    return lines, lower


def _derived(c: PrecisionCertificate, form: AnyPrecision, at: Point) -> None:
    """Check the lines that follow from the problem and the point without a search."""
    null = null_value(form)
    require(abs(c.null_value - null) <= _slack(form, null), "null_value", c.null_value, null)
    active = at.active(form)
    require(c.active == active, "active", c.active, active)


def _claim(
    c: PrecisionCertificate, form: AnyPrecision, proved: dict[str, float]
) -> tuple[Claim, str]:
    """Return the strongest claim that the numbers support, and a word on the one in the file."""
    found = precision_claims(
        upper=c.upper,
        bound=proved["bound"],
        restricted_bound=proved["restricted_bound"],
        null_value=c.null_value,
        weight=form.weight,
    )
    strongest = max(found, key=list(Claim).index)
    if c.claim is strongest:
        return strongest, strongest.value
    # Files of the first version were written by a rule that made less of the same numbers.
    held = c.version < 2 and c.claim in found
    require(held, "claim", c.claim.value, strongest.value)
    return strongest, f"{strongest.value}; the file says '{c.claim.value}', which holds too"


def check_shapes(c: PrecisionCertificate, form: AnyPrecision) -> None:
    """Raise CertificateError where a witness does not fit the problem."""
    vectors: list[tuple[str, FloatArray | None]] = [
        ("x", c.x),
        ("final", c.witness.final),
        ("restricted", c.witness.restricted),
        *((f"enclosing[{i}]", U) for i, U in enumerate(c.witness.enclosing)),
    ]
    for line, vector in vectors:
        shapes = [form.shape]
        if line == "restricted":  # of all entries where edges are forbidden
            shapes.append((form.order * (form.order + 1) // 2, *form.shape[1:]))
        if vector is not None and (vector.shape not in shapes or not np.all(np.isfinite(vector))):
            shape = " x ".join(map(str, shapes[-1]))
            raise CertificateError(f"line 'witness.{line}' must hold {shape} finite numbers.")
    mu, level, m = c.witness.modulus, c.witness.level, len(form.parts)
    moduli, rounds = c.witness.moduli, len(c.witness.enclosing) + 1
    if m > 1 and c.witness.final is not None:
        fits = moduli is not None and len(moduli) == rounds * m
        if not (fits and all(math.isfinite(v) and v >= 0.0 for v in moduli or ())):
            raise CertificateError(
                f"line 'witness.moduli' must hold {rounds * m} numbers of at least 0."
            )
    elif moduli is not None:
        raise CertificateError("line 'witness.moduli' is for several matrices.")
    if level is not None and not math.isfinite(level):
        raise CertificateError(f"line 'witness.level' must be a finite number, not {level}.")
    if mu is not None and not (math.isfinite(mu) and mu >= 0.0):
        raise CertificateError(f"line 'witness.modulus' must be a number of at least 0, not {mu}.")
    try:
        for part, units in zip(form.parts, c.witness.units_of(m), strict=True):
            rescaled(part, 0.0, units)
    except ValueError as error:
        raise CertificateError(f"line 'witness.units' {error}") from error


def _same_edges(c: PrecisionCertificate, form: AnyPrecision, at: Point) -> None:
    found = edges_at(form, c.x, at)
    pairs = tuple((edge.one, edge.other) for edge in found)
    require(c.pairs == pairs, "edges", c.pairs, pairs)
    for edge, stored in zip(found, c.edges, strict=True):
        for mine, theirs in zip(edge.correlations, stored.correlations, strict=True):
            near = abs(theirs - mine) <= REPRODUCED
            require(near, f"edges ({edge.one}, {edge.other})", theirs, mine)


def _slack(form: AnyPrecision, value: float) -> float:
    """Return how far a bound may be from the one found here.

    Enclosures of eigenvalues end at roots that are found to 1e-9, and another machine's rounding
    may end them elsewhere. No claim rests on that: the lower of both decides.
    """
    if not math.isfinite(value):
        return 0.0
    return REPRODUCED * (form.weight + abs(value - form.constant)) + 1e-15 * abs(form.constant)
