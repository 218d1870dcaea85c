"""Resume a proof that was stopped from its certificate, every line of which is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.certify import checked_point
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.statements.certificate import Certificate
from sparsemodel.interfaces import CertificateError, DataError, FloatArray


def stored_tree(certificate: Any, facts: Any, gap: float) -> Any:
    """Return the tree that a certificate of a regression or a precision matrix holds.

    ``facts`` are those of the problem at hand.

    Raises
    ------
    CertificateError
        When the certificate belongs to another problem, or holds no tree.
    DataError
        When its parts were closed at a larger gap than the one asked for.
    """
    for line, stored, found in certificate.problem.differences(facts):
        raise CertificateError(
            f"The certificate to resume from belongs to another problem: its line {line!r} says "
            f"{stored!r}, and here it is {found!r}."
        )
    if certificate.proof is None:
        raise CertificateError(
            "The certificate to resume from holds no proof: it comes from certify(), or from a "
            "prove() whose time was up before it searched. Call prove() without it."
        )
    tree = certificate.proof.get("tree")
    if tree is None:
        raise CertificateError(
            "The proof to resume from was kept without its tree, which was too large. Call prove() "
            "without it, with a longer time limit."
        )
    if gap < certificate.target:
        raise DataError(
            f"The proof to resume from closed its parts at a gap of {certificate.target:g}; ask "
            f"for a gap of at least that (not {gap:g}), or prove from the beginning."
        )
    return tree


def better(
    x: FloatArray, problem: CertifiedProblem, resume: Certificate
) -> tuple[FloatArray, CertifiedProblem]:
    """Return the better of the point at hand and the one that a certificate holds."""
    stored = checked_point(problem.form, resume.x)
    if np.array_equal(stored, x):
        return x, problem
    there = problem.at(stored)
    if there.at_point.violations or there.at_point.upper >= problem.at_point.upper:
        return x, problem
    return stored, there


def at_least(value: float, earlier: Certificate | None, proved: Callable[[], Bound]) -> float:
    """Return a bound that is not below the one to go on from, where that is proved again.

    Going on evaluates the record in another order than the search that wrote it, with the same
    caution; the sums differ in their last digits. ``proved`` is what the record proves with no
    more caution than a check of it takes, and is asked only where the bound has dropped.
    """
    if earlier is None or not earlier.bound > value:
        return value
    return max(value, min(earlier.bound, proved().value))
