"""Go on with a proof that was stopped: from its certificate, believing nothing in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.certify import checked_point
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.proving.compiled.nodes import UNDECIDED, Node
from sparsemodel.certificates.proving.compiled.search import Search
from sparsemodel.certificates.proving.compiled.stage import Stage, make_stage
from sparsemodel.certificates.proving.compiled.tree import (
    MALFORMED,
    Checked,
    Leaf,
    Recorder,
    checked,
)
from sparsemodel.certificates.proving.searches import searched
from sparsemodel.certificates.statements.certificate import Certificate
from sparsemodel.certificates.statements.objective_interval import Primal, primal
from sparsemodel.certificates.statements.problem_facts import describe
from sparsemodel.interfaces import CertificateError, DataError, FloatArray, SparseRegression


def stored_tree(certificate: Certificate, form: SparseRegression, gap: float) -> Any:
    """Return the tree that a certificate holds.

    Raises
    ------
    CertificateError
        When the certificate belongs to another problem, or holds no tree.
    DataError
        When its parts were closed at a larger gap than the one asked for.
    """
    for line, stored, found in certificate.problem.differences(describe(form)):
        raise CertificateError(
            f"The certificate to resume from belongs to another problem: its line {line!r} says "
            f"{stored!r}, and here it is {found!r}."
        )
    if certificate.proof is None:
        raise CertificateError(
            "The certificate to resume from holds no proof; it comes from certify(). Call prove() "
            "without it."
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
    form: SparseRegression, x: FloatArray, at_point: Primal, resume: Certificate
) -> tuple[FloatArray, Primal]:
    """Return the better of the point at hand and the one that a certificate holds."""
    stored = checked_point(form, resume.x)
    there = primal(form, stored)
    if there.violations or there.upper >= at_point.upper:
        return x, at_point
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


def resume(search: Search, form: SparseRegression, tree: Any) -> None:
    """Run ``search`` from the parts that a stored tree leaves open.

    Every bound in the tree is evaluated again on the data first; nothing that is closed is looked
    at again.
    """
    known = checked(form, tree, caution=CAUTION)
    try:
        _continue(search, tree, known)
    except MALFORMED as error:
        if isinstance(error, CertificateError):
            raise
        raise CertificateError(f"line 'proof.tree' is malformed: {error!r}.") from error


def _continue(search: Search, tree: Any, known: Checked) -> None:
    q, balanced = search.q, search.balanced
    stages = []
    for entry in tree["stages"]:
        active = np.array(entry["active"], dtype=np.intp)
        stage = make_stage(q, active, balanced, np.array(entry["delta"], dtype=np.float64))
        if stage is None:
            raise CertificateError("line 'proof.tree.stages' leaves a coordinate without ridge.")
        stages.append(stage)
    records = tree["nodes"]
    search.tree = Recorder.continued(stages, records)
    search.nodes = len(records)
    search.floor = known.closed
    first = records[0]
    if "x" in first:
        stage = stages[first["stage"]]
        search.root = (stage, _scaled(stage, first), -np.inf)
    search.resume([_part(leaf, records[leaf.record], stages) for leaf in known.leaves])


def _part(leaf: Leaf, record: dict[str, Any], stages: list[Stage]) -> Node:
    stage = stages[record["stage"]]
    node = Node(leaf.status[stage.active], leaf.k, _scaled(stage, record), 0.0, leaf.bound)
    node.w[node.status == -1] = 0.0
    if leaf.k == 0:
        node.w[node.status == UNDECIDED] = 0.0
    node.record, node.stage = leaf.record, stage
    return node


def _scaled(stage: Stage, record: dict[str, Any]) -> Any:
    x = np.zeros(int(max(stage.active.max(initial=-1), stage.balanced.max(initial=-1))) + 1)
    if "x" in record:
        x[np.array(record["at"], dtype=np.intp)] = record["x"]
    return stage.root * x[stage.active]


__all__ = ["at_least", "better", "resume", "searched", "stored_tree"]
