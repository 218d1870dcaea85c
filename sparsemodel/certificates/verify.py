"""Check a certificate again, from its file and the user's data alone.

Nothing here is shared with the solvers but the formulas of the losses. What is compared is named
by the line of the file it stands in; the first line that does not hold is the error.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.base import Certificate
from sparsemodel.certificates.certify import list_assumptions
from sparsemodel.certificates.claims import Claim, decide
from sparsemodel.certificates.coefficient_bounds.base import STATEMENT
from sparsemodel.certificates.comparison import require, short
from sparsemodel.certificates.description import describe
from sparsemodel.certificates.dual import nothing
from sparsemodel.certificates.precision_certificate import PrecisionCertificate
from sparsemodel.certificates.primal import null_value, primal
from sparsemodel.certificates.stationarity import TOLERANCE, stationarity
from sparsemodel.certificates.witness import evaluate
from sparsemodel.interfaces import (
    CertificateError,
    Form,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.interfaces.precision import SparsePrecision

_RELATIVE = 1e-9
"""How far two computations of the same quantity may differ, as another machine rounds otherwise."""


@final
@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked: lines of the file with a word on each."""

    claim: Claim
    lines: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        body = "\n".join(f"  {name:<{width}}  {note}" for name, note in self.lines)
        return f"verified: {self.claim.value}\n{body}"


@np.errstate(all="ignore")
def verify(
    certificate: Certificate | PrecisionCertificate | str | os.PathLike[str],
    form: Form,
    *,
    cross_check: bool = False,
) -> Verification:
    """Recompute every number of a certificate on ``form`` and return what was checked.

    Parameters
    ----------
    certificate
        A certificate, or the path of its ``.json`` file.
    form
        The problem, declared again from the data (``problem.form``).
    cross_check
        Also solve the relaxation from its algebraic form with CVXPY and Clarabel, which share no
        line of code with this package: no dual bound may exceed its value. Makes the data dense;
        meant for regressions of up to about a thousand rows and columns.

    Raises
    ------
    CertificateError
        When the file is malformed or was changed, belongs to other data, or claims more than
        the data support; the message names the line.
    UnsupportedProblemError
        When a cross-check is asked for and the problem has no conic form.

    Notes
    -----
    A few passes over the data; a Cholesky factorisation when curvature was taken out of it.
    """
    from sparsemodel.certificates.coefficient_bounds.certifying import named, within

    if isinstance(form, SparsePrecision):
        from sparsemodel.certificates.precision_verify import verify_precision

        if isinstance(certificate, Certificate):
            raise CertificateError("This certificate is about no precision matrix.")
        if cross_check:
            raise UnsupportedProblemError("The cross-check is for certificates of regressions.")
        return verify_precision(certificate, form)
    if not isinstance(form, SparseRegression):
        raise CertificateError(f"Nothing is certified about a {type(form).__name__}.")
    if isinstance(certificate, PrecisionCertificate):
        raise CertificateError("This certificate is about a precision matrix, not a regression.")
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    c = certificate
    lines: list[tuple[str, str]] = []
    _same_problem(c, form)
    lines.append(("problem", "the same data, loss, ridge and constraints"))
    at_point = primal(form, c.x)
    tolerance = 2.0 * at_point.allowance + 1e-300
    require(
        abs(c.value - at_point.value) <= tolerance,
        "value",
        c.value,
        at_point.value,
    )
    require(c.upper >= at_point.value, "upper", c.upper, at_point.upper)
    lines.append(("value", f"P = {at_point.value!r}"))
    require(c.violations == at_point.violations, "violations", c.violations, at_point.violations)
    require(
        c.support == tuple(int(j) for j in at_point.support),
        "support",
        c.support,
        tuple(int(j) for j in at_point.support),
    )
    _names_match(c, form)
    lines.append(("support", f"{at_point.units} units; feasible: {not at_point.violations}"))
    null = null_value(form)
    require(_close(c.null_value, null), "null_value", c.null_value, null)
    inner = within(form, c.witness.bounds, at_point)
    if c.witness.bounds is not None:
        lines.append(("witness.bounds", STATEMENT))
    bound = named(_bound(c, inner), c.witness.bounds)
    slack = bound.allowance if bound.finite else 0.0
    if c.proof is not None and c.bound > bound.value + slack:
        raise CertificateError(
            f"line 'proof' cannot be checked: the bound {short(c.bound)} rests on a search over "
            "supports whose regions are not in the file; what the file proves by itself is "
            f"{short(bound.value)}. Run the proof again on the data to check it."
        )
    require(
        c.bound == -math.inf or c.bound <= bound.value + slack,
        "bound",
        c.bound,
        bound.value,
    )
    lines.append(("bound", f"D = {bound.value!r} ({bound.method}), stored {c.bound!r}"))
    facts = stationarity(form, c.x, extraction=c.witness.extraction)
    _stationarity_matches(c, facts)
    lines.append(("stationarity", f"gradient on the support {facts.residual:.1e} of that at zero"))
    claim = decide(
        feasible=not at_point.violations,
        stationary=facts.stationary,
        upper=c.upper,
        bound=c.bound,
        null_value=c.null_value,
        target=c.target,
    )
    require(c.claim is claim, "claim", c.claim.value, claim.value)
    lines.append(("claim", claim.value))
    _assumptions_match(c, form, at_point, bound)
    lines.append(("assumptions", "listed in full; those that can be checked hold"))
    if cross_check:
        lines.append(("cross-check", _cross_check(c, inner)))
    return Verification(claim, tuple(lines))


def _cross_check(c: Certificate, form: SparseRegression) -> str:
    """Compare the bound with the relaxation's value from a conic solver."""
    from sparsemodel.cvx.relaxations import relaxation_value

    at_root, what = c.bound, "the bound"
    if c.proof is not None:
        stored = c.proof.get("root", c.proof.get("summary", {}).get("bound at the root"))
        at_root = float(stored) if isinstance(stored, (int, float)) else -math.inf
        what = "the bound at the root of the proof"
    if not math.isfinite(at_root):
        return "there is no bound of the relaxation to compare with"
    value = relaxation_value(form, extraction=c.witness.extraction)
    # A conic solver stops at relative accuracies of 1e-8; kinks and scales cost some digits.
    slack = 1e-5 * max(abs(value), c.null_value - value, 0.0)
    require(at_root <= value + slack, "bound", at_root, value)
    return f"CVXPY finds the relaxation worth {value:.9g}; {what}, {at_root:.9g}, is not above it"


def _bound(c: Certificate, form: SparseRegression) -> Any:
    if c.bound == -math.inf:
        return nothing(c.bound_reason)
    if c.proof is not None and c.proof.get("tree") is not None:
        from sparsemodel.certificates.branch_and_bound import record
        from sparsemodel.certificates.proof import tree

        stored = c.proof["tree"]
        general = isinstance(stored, dict) and stored.get("kind") == record.KIND
        return record.tree_bound(form, stored) if general else tree.tree_bound(form, stored)
    return evaluate(form, c.witness)


def _same_problem(c: Certificate, form: SparseRegression) -> None:
    for line, stored, found in c.problem.differences(describe(form)):
        raise CertificateError(
            f"line '{line}' does not fit: the certificate says {short(stored)}, the problem "
            f"at hand {short(found)}. It was made for other data or another model."
        )


def _names_match(c: Certificate, form: SparseRegression) -> None:
    expected = {*c.support, *(int(j) for j in form.sparsity.free)}
    require(set(c.names) == expected, "names", sorted(c.names), sorted(expected))


def _stationarity_matches(c: Certificate, facts: Any) -> None:
    stored = c.stationarity
    require(stored.smooth == facts.smooth, "stationarity.smooth", stored.smooth, facts.smooth)
    if not facts.smooth:
        return
    # Residuals are rounding noise; what matters is on which side of the tolerance they lie.
    require(
        stored.stationary == facts.stationary
        or abs(stored.residual - facts.residual) <= 1e-3 * TOLERANCE,
        "stationarity.residual",
        stored.residual,
        facts.residual,
    )
    for name in ("smallest", "threshold"):
        one, two = getattr(stored, name), getattr(facts, name)
        require(_close(one, two), f"stationarity.{name}", one, two)


def _assumptions_match(c: Certificate, form: SparseRegression, at_point: Any, bound: Any) -> None:
    if c.bound == -math.inf:
        return
    stored = {(a.text, a.checked, a.holds) for a in c.assumptions}
    for needed in list_assumptions(form, at_point, bound, c.witness):
        require(
            (needed.text, needed.checked, needed.holds) in stored,
            "assumptions",
            "no such entry",
            str(needed),
        )


def _close(one: float, two: float) -> bool:
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    return abs(one - two) <= _RELATIVE * max(abs(one), abs(two), 1e-300)


__all__ = ["Verification", "verify"]
