"""Check a certificate again, from its file and the user's data alone.

Nothing here is shared with the solvers but the formulas of the losses. What is compared is named
by the line of the file it stands in; the first line that does not hold is the error.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import zip_longest
from typing import Any

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem, condensed, uncondensed
from sparsemodel.certificates.arithmetic.multipliers import dualised
from sparsemodel.certificates.arithmetic.products import with_products_alone
from sparsemodel.certificates.arithmetic.readings import forget
from sparsemodel.certificates.arithmetic.rounding import CAUTION, TWICE
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import named
from sparsemodel.certificates.dual_bounds.witness import evaluate
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PrecisionCertificate,
)
from sparsemodel.certificates.precision_matrices.verify_precision import verify_precision
from sparsemodel.certificates.proving.records.replay import checked, tree_bound
from sparsemodel.certificates.proving.records.searches import NOTHING, SEARCHED, searched
from sparsemodel.certificates.statements.certificate import WRITERS_OWN, Certificate
from sparsemodel.certificates.statements.claims import REPRODUCED, Claim
from sparsemodel.certificates.statements.comparison import (
    Verification,
    require,
    require_same,
    short,
)
from sparsemodel.certificates.statements.derived import PRODUCTS, Statement, derive
from sparsemodel.certificates.statements.objective_interval import Primal
from sparsemodel.certificates.statements.problem_facts import describe
from sparsemodel.interfaces import (
    CertificateError,
    DataError,
    Form,
    IntArray,
    SparseRegression,
)
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.progress import showing
from sparsemodel.threads import small_work

_SHOWN = 0.02
"""Share by which an allowance may differ: two of its digits are printed."""
_NAMED = 3
"""Names that are reported where they differ."""


@small_work()
@showing("Verifying")
@np.errstate(all="ignore")
@rejects_unknown_arguments
def verify(
    certificate: Certificate | PrecisionCertificate | str | os.PathLike[str],
    form: Form,
    *,
    names: Sequence[str] | None = None,
    cross_check: bool = False,
) -> Verification:
    """Recompute every line of a certificate on ``form`` and return what was checked.

    Who certified the point, when, with which versions and for how long cannot be recomputed. A file
    stores this separately, under ``writer``, and it is not compared.

    Parameters
    ----------
    certificate
        A certificate, or the path of its ``.json`` file.
    form
        The problem, declared again from the data (``problem.form``).
    names
        A name for every coordinate, ``problem.layout.names()``; compared with those in the
        certificate. By default names are not checked, because the form has none.
    cross_check
        Also solve the relaxation with CVXPY and Clarabel, independent code: no dual bound may
        exceed its value. Makes the data dense; for up to about a thousand rows and columns.

    Returns
    -------
    Verification
        Its ``claim`` is the strongest one that the numbers support; ``print`` lists every line.

    Raises
    ------
    CertificateError
        When the file is malformed, changed, of other data, or claims more than they support.
    UnsupportedProblemError
        When a cross-check is asked for and the problem has no conic form.

    Notes
    -----
    This takes a few passes over the data, and a Cholesky factorisation if curvature was taken out
    of them.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [3.0, 0.1, -2.0]) + sm.ridge(w, 0.1))
    >>> problem = sm.Problem(goal, sm.card(w) <= 1)
    >>> verify(problem.certify(), problem.form).claim.value
    'globally optimal'
    """
    return verifier_of(form)(certificate, form, names, cross_check)


Verifier = Callable[[Any, Any, Sequence[str] | None, bool], Verification]
"""Checks a certificate or its file on a form, with the coordinates' names, and CVXPY if asked."""


@singledispatch
def verifier_of(form: Form) -> Verifier:
    """Return what checks certificates about a form; every form registers its own."""
    raise CertificateError(
        "A certificate is verified on the form of a problem, `verify(file, problem.form)`, and "
        f"not on a {type(form).__name__}."
    )


@verifier_of.register
def _(form: SparseRegression) -> Verifier:
    return _verify_regression


@verifier_of.register
def _(form: SparsePrecision | JointPrecision) -> Verifier:
    return verify_precision


def _verify_regression(
    certificate: Any, form: SparseRegression, names: Sequence[str] | None, cross_check: bool
) -> Verification:
    if isinstance(certificate, PrecisionCertificate):
        raise CertificateError("This certificate is about a precision matrix, not a regression.")
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    return _verify(certificate, form, names, cross_check)


def _verify(
    c: Certificate, form: SparseRegression, names: Sequence[str] | None, cross_check: bool
) -> Verification:
    """Check a certificate on sums of products where that is enough, else on the rows."""
    if c.x.shape != form.shape or not np.all(np.isfinite(c.x)):
        _same_problem(c, form, None)
        raise CertificateError("line 'witness.x' does not hold finite entries for this problem.")
    if any(assumed.text == PRODUCTS for assumed in c.assumptions):
        form = with_products_alone(form, [t.design.startswith("probe:") for t in c.problem.terms])
    for term in form.terms:
        forget(term.design)
    # Dual points that are in the file are points of the rows: those are read.
    if all(a is None for a in c.witness.duals):
        problem = condensed(form, c.x)
        try:
            return _derived(c, problem, names, cross_check)
        except CertificateError:
            if not problem.condensed:
                raise  # else rows decide what sums may have rounded away
    return _derived(c, uncondensed(form, c.x), names, cross_check)


def _derived(
    c: Certificate, problem: CertifiedProblem, names: Sequence[str] | None, cross_check: bool
) -> Verification:
    """Derive every line again, and compare."""
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.certifying import within

    lines: list[tuple[str, str]] = []
    form = problem.form
    _same_problem(c, form, problem.fingerprints)
    lines.append(("problem", "the same data, loss, ridge and constraints"))
    problem = dualised(problem, c.witness.multipliers)
    searched, at_point, below = c.proof is not None, problem.at_point, problem.minorant
    inner = within(below, c.witness.bounds, at_point, problem.undualised)
    if c.witness.bounds is not None:
        lines.append(("witness.bounds", c.witness.bounds.statement))
    bound = _bound(c, below, inner)
    found = derive(
        problem,
        c.x,
        bound,
        c.witness,
        searched=searched,
        at_zero=c.version < 2,
    )
    _value_matches(c, at_point)
    lines.append(("value", f"P = {at_point.value!r}"))
    support = tuple(int(j) for j in at_point.support)
    require(c.violations == at_point.violations, "violations", c.violations, at_point.violations)
    require(c.support == support, "support", c.support, support)
    lines.append(("support", f"{at_point.units} units; feasible: {not at_point.violations}"))
    lines.append(("names", _names_match(c, form, names)))
    require(_close(c.null_value, found.null_value), "null_value", c.null_value, found.null_value)
    if c.version > 1:
        require(_close(c.constant, found.constant), "constant", c.constant, found.constant)
    _bound_matches(c, found, bound)
    _allowance_matches(c, below, found)
    lines.append(("bound", f"D = {found.bound.value!r} ({found.bound.method}), stored {c.bound!r}"))
    _stationarity_matches(c, found)
    found = replace(found, stationarity=c.stationarity)  # within what rounding may do
    size = found.stationarity.residual
    lines.append(("stationarity", f"relative gradient on the support {size:.1e}"))
    _assumptions_match(c, found)
    lines.append(("assumptions", "listed in full; those that can be checked hold"))
    claim, words = _claim(c, found)
    lines.append(("claim", words))
    lines.append(("not checked", "what the author of the file states: " + ", ".join(WRITERS_OWN)))
    if cross_check:
        lines.append(("cross-check", _cross_check(c, below, inner)))
    return Verification(claim, tuple(lines))


def _value_matches(c: Certificate, at_point: Primal) -> None:
    reach = TWICE * at_point.allowance
    same = c.value == at_point.value or abs(c.value - at_point.value) <= reach
    require(same, "value", c.value, at_point.value)
    same = c.upper == at_point.upper or abs(c.upper - at_point.upper) <= reach
    require(same and c.upper >= at_point.value, "upper", c.upper, at_point.upper)


def _bound_matches(c: Certificate, found: Statement, evaluated: Bound) -> None:
    """Compare the bound; that of a search over supports may be lower than what is recomputed."""
    bound = found.bound
    slack = _slack(c, evaluated)
    unchecked = c.proof is not None and c.proof.get("tree") is None
    if unchecked and c.bound > evaluated.value + slack:
        raise CertificateError(
            f"line 'proof' cannot be checked: the bound {short(c.bound)} rests on a search over "
            "supports whose regions are not in the file; what the file proves by itself is "
            f"{short(evaluated.value)}. Run the proof again on the data to check it."
        )
    if bound.finite and math.isfinite(c.bound):
        reach = slack + REPRODUCED * (abs(bound.value) + abs(found.null_value - bound.value))
        same = c.bound <= evaluated.value + slack
        same = same and (_one_sided(c) or c.bound >= bound.value - reach)
    else:
        same = c.bound == bound.value
    require(same, "bound", c.bound, bound.value)
    require(c.bound_method == bound.method, "bound_method", c.bound_method, bound.method)
    reason = bound.reason if not bound.finite else ""
    require(c.bound_reason == reason, "bound_reason", c.bound_reason, reason)


def _one_sided(c: Certificate) -> bool:
    """Return whether the writer may have proved less: by parts, or from sums in place of rows."""
    return c.proof is not None or any(a is None for a in c.witness.duals)


def _slack(c: Certificate, evaluated: Bound) -> float:
    """Return by how much a bound may be above the one found here, on a machine that rounds so.

    The writer subtracted :data:`CAUTION` allowances. A search is evaluated here with one, which
    never proves less; a dual point as the writer did, and two computations differ by two
    allowances at most, half of what was subtracted. Either way no bound is accepted that is not
    below the exact one. Files of the first version subtracted a single allowance.
    """
    if not evaluated.finite:
        return 0.0
    if c.version < 2:
        return evaluated.allowance
    return 0.5 * evaluated.allowance if c.proof is None else 0.0


def _allowance_matches(c: Certificate, form: SparseRegression, found: Statement) -> None:
    """Compare what was given away for rounding; of sums it is not what it is of rows."""
    if c.proof is None and _one_sided(c):
        return
    expected = [found.allowance if c.proof is None else found.at_point.allowance]
    if c.proof is not None and c.version < 2:  # with that of the bound at the root
        expected.append(found.at_point.allowance + _root(c, form, form).allowance)
    # A difference of numbers as large as these, some of it rounding that was met and not bounded.
    digits = 8.0 * np.spacing(max(abs(v) for v in (c.upper, c.bound, 1e-300) if math.isfinite(v)))
    same = any(c.allowance == e or abs(c.allowance - e) <= _SHOWN * e + digits for e in expected)
    require(same, "allowance", c.allowance, expected[0])


def _claim(c: Certificate, found: Statement) -> tuple[Claim, str]:
    """Return the strongest claim that the numbers support, and a word on the one in the file."""
    strongest = found.claim(c.upper, c.bound)
    if c.claim is strongest:
        return strongest, strongest.value
    if c.version < 2:
        if c.claim in found.claims(c.upper, c.bound):
            return strongest, f"{strongest.value}; the file says '{c.claim.value}', which holds too"
        raise CertificateError(
            f"line 'claim' does not hold: the file says '{c.claim.value}' by a rule of an earlier "
            f"release that is not applied any more. Its numbers hold, and they support "
            f"'{strongest.value}': the objective is {c.value!r}, the lower bound {c.bound!r}. "
            "Certify the point again to get a certificate that says so."
        )
    require(False, "claim", c.claim.value, strongest.value)
    return strongest, strongest.value


def _root(c: Certificate, form: SparseRegression, inner: SparseRegression) -> Bound:
    """Return the bound at the root of a search, evaluated again."""
    tree = None if c.proof is None else c.proof.get("tree")
    root = None if tree is None else checked(form, inner, tree, bounds=c.witness.bounds).root
    return evaluate(inner, c.witness, caution=1.0) if root is None else root


def _cross_check(c: Certificate, form: SparseRegression, inner: SparseRegression) -> str:
    """Compare the bound with the relaxation's value from a conic solver."""
    from sparsemodel.cvx.relaxations import relaxation_value

    at_root, what = c.bound, "the bound"
    if c.proof is not None:
        at_root, what = _root(c, form, inner).value, "the bound at the root of the proof"
    if not math.isfinite(at_root):
        return "there is no bound of the relaxation to compare with"
    value = relaxation_value(inner, extraction=c.witness.extraction)
    # A conic solver stops at relative accuracies of 1e-8; kinks and scales cost some digits.
    slack = 1e-5 * max(abs(value), c.null_value - value, 0.0)
    require(at_root <= value + slack, "bound", at_root, value)
    return f"CVXPY finds the relaxation worth {value:.9g}; {what}, {at_root:.9g}, is not above it"


def _bound(c: Certificate, form: SparseRegression, inner: SparseRegression) -> Bound:
    """Return the bound evaluated again; ``inner`` is the problem within the bounds of the file."""
    if c.proof is not None and c.proof.get("tree") is not None:
        bound = tree_bound(form, inner, c.proof["tree"], c.witness.bounds)
        # The bound without branching may be the better one.
        if c.witness.duals:
            root = evaluate(inner, c.witness, caution=1.0)
            if not root.finite:
                raise CertificateError("line 'witness' proves nothing on these data.")
            bound = max(bound, root, key=lambda b: b.value)
    else:
        single = c.version < 2 or c.proof is not None
        bound = evaluate(inner, c.witness, caution=1.0 if single else CAUTION)
    if c.proof is not None:
        bound = replace(bound, method=SEARCHED, reason="" if bound.finite else NOTHING)
    return named(bound, c.witness.bounds)


def _same_problem(
    c: Certificate, form: SparseRegression, blocks: list[list[tuple[IntArray, str]]] | None
) -> None:
    require_same(c.problem.differences(describe(form, blocks, c.problem)), form.parameters)


def _names_match(c: Certificate, form: SparseRegression, names: Sequence[str] | None) -> str:
    expected = {*c.support, *(int(j) for j in form.sparsity.free)}
    require(set(c.names) == expected, "names", sorted(c.names), sorted(expected))
    if names is None:
        return "not compared; pass names= to compare those in the file"
    if len(names) != form.sparsity.size:
        raise DataError(f"names must hold {form.sparsity.size} names, not {len(names)}.")
    other = [(name, str(names[j])) for j, name in c.names.items() if name != str(names[j])]
    if other:
        said = "; ".join(f"{short(old)} is {short(new)} here" for old, new in other[:_NAMED])
        more = f"; and {len(other) - _NAMED} more" if len(other) > _NAMED else ""
        raise CertificateError(
            f"line 'names' does not hold: the problem calls {len(other)} of {len(c.names)} "
            f"coordinates otherwise than the certificate: {said}{more}."
        )
    return "as declared"


def _stationarity_matches(c: Certificate, found: Statement) -> None:
    one, two = c.stationarity, found.stationarity
    require(one.smooth == two.smooth, "stationarity.smooth", one.smooth, two.smooth)
    # Gradients that vanish are rounding noise; what they are relative to is known.
    noise = dict(zip(("residual", "largest"), found.gradient_noise, strict=True))
    for name in ("residual", "smallest", "largest", "threshold"):
        stored, value = getattr(one, name), getattr(two, name)
        same = _close(stored, value) or abs(stored - value) <= noise.get(name, 0.0)
        require(same, f"stationarity.{name}", stored, value)


def _assumptions_match(c: Certificate, found: Statement) -> None:
    needed = found.assumptions
    if c.proof is not None:
        needed = (*needed, searched(c.proof.get("tree")))
    for stored, expected in zip_longest(c.assumptions, needed):
        words = "no such entry"
        require(stored == expected, "assumptions", str(stored or words), str(expected or words))


def _close(one: float, two: float) -> bool:
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    if not (math.isfinite(one) and math.isfinite(two)):
        return False
    return abs(one - two) <= REPRODUCED * max(abs(one), abs(two), 1e-300)
