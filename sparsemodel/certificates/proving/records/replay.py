"""A stored tree, every part of it evaluated again from the data alone.

The least bound of the parts that were closed bounds the problem. Trees of earlier releases are
read as well: those of squared losses number coordinates where this one numbers
units, and those of the other losses have no head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import row_term
from sparsemodel.certificates.dual_bounds.bound import Bound, infimum_bound, nothing
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Minorant, Proved, decide
from sparsemodel.certificates.proving.records.readers import (
    DualReader,
    GramReader,
    Reader,
    RowReader,
    indices,
)
from sparsemodel.certificates.proving.records.writing import KIND
from sparsemodel.interfaces import (
    Cardinality,
    CertificateError,
    IntArray,
    SparseRegression,
)
from sparsemodel.progress import report

MALFORMED = (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError)
"""What reading a tree raises that is not made as it should."""

LINES = {"stage", "at", "x", "slopes", "duals", "balanced", "out", "in", "next", "branch"}
"""What a record may hold, or that it is ``enumerated``."""

_OLD = "regions"
"""The kind of earlier trees of all losses; those of squared losses had none."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A part of the feasible set that a stored tree says nothing more about."""

    link: tuple[int, int]
    """The record that says the last thing, and on which side of its branch (0: no branch)."""
    status: Any
    """``OUT``, ``UNDECIDED`` or ``IN`` for every unit of the form."""
    k: int
    bound: float
    """What was proved about it, evaluated again."""
    facts: Any = None
    """What is known of it beside the statuses of units."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A stored tree after every part was evaluated again on the data."""

    closed: float
    """Least bound on what decisions cut off."""
    leaves: tuple[Leaf, ...]
    root: Bound | None
    """What the dual point of the first record proves; None where it is none."""

    @property
    def bound(self) -> float:
        """Return the bound that the tree proves."""
        return min([self.closed, *(leaf.bound for leaf in self.leaves)])


def tree_bound(
    form: SparseRegression,
    within: SparseRegression,
    tree: Any,
    bounds: CoefficientBounds | None = None,
) -> Bound:
    """Return the bound that a stored tree proves, every part evaluated again on the data.

    ``within`` is the problem in the coefficient ``bounds`` of the certificate.

    Raises
    ------
    CertificateError
        When the tree is malformed, or not one of this problem.
    """
    value = max(
        checked(form, within, tree, bounds=bounds).bound, infimum_bound(form, caution=1.0).value
    )
    if math.isnan(value) or value == -math.inf:
        return nothing("the tree proves nothing")
    # Another machine rounds otherwise, within what either subtracts.
    return Bound(value, 1e-11 * abs(value), "branch and bound")


def checked(
    form: SparseRegression,
    within: SparseRegression,
    tree: Any,
    *,
    caution: float = 1.0,
    quadratic: Quadratic | None = None,
    bounds: CoefficientBounds | None = None,
) -> Checked:
    """Return a stored tree with its bounds computed from the data alone.

    ``caution`` is the multiple of the rounding allowance to subtract, ``quadratic`` that of the
    form, where the caller has just computed it. ``bounds`` are what ``within`` has for a box.

    Raises
    ------
    CertificateError
        When the tree is malformed, or not one of this problem.
    """
    tree = upgraded(form, tree)
    try:
        inner = within if tree["boxed"] else form
        fixed = inner is not form and (bounds is None or bounds.room is None)
        reader: Reader
        if tree["gram"] is True and any("stiffness" in stage for stage in tree["stages"]):
            if fixed and row_term(form) is not None:
                raise ValueError("bounds on the coefficients hold for one choice of the slopes")
            reader = RowReader(inner, tree["stages"], caution)
        elif tree["gram"] is True:
            wide = form if fixed else inner
            reader = GramReader(inner, tree["stages"], caution, quadratic, wide)
        else:
            if fixed and row_term(form) is not None:
                raise ValueError("bounds on the coefficients hold for one choice of the slopes")
            reader = DualReader(inner, tree["stages"], caution)
        start = np.full(form.sparsity.units, UNDECIDED, dtype=np.int8)
        return Replay(form.sparsity, start, tree["nodes"], reader).run()
    except MALFORMED as error:
        if isinstance(error, CertificateError):
            raise
        raise CertificateError(f"line 'proof.tree' is malformed: {error!r}.") from error


def upgraded(form: SparseRegression, tree: Any) -> dict[str, Any]:
    """Return a tree of any release in the words of this one.

    Raises
    ------
    CertificateError
        When it is malformed.
    """
    try:
        return _upgraded(form, tree)
    except MALFORMED as error:
        raise CertificateError(f"line 'proof.tree' is malformed: {error!r}.") from error


def _upgraded(form: SparseRegression, tree: Any) -> dict[str, Any]:
    kind = tree.get("kind")
    if kind == KIND:
        sound = tree.keys() == {"kind", "gram", "boxed", "stages", "nodes"}
        if not sound or not all(isinstance(tree[name], bool) for name in ("gram", "boxed")):
            raise ValueError("the tree has other lines than it must have")
        return dict(tree)
    if kind == _OLD:
        return {**tree, "kind": KIND, "gram": False, "boxed": True}
    if kind is not None:
        raise ValueError("the tree is of another kind of proof")
    unit = form.sparsity.unit_of
    nodes = []
    for record in tree["nodes"]:
        new = dict(record)
        for name in ("out", "in"):
            if name in record:
                new[name] = [int(unit[j]) for j in indices(record[name], unit.size)]
        if "branch" in record:
            j, *children = record["branch"]
            new["branch"] = [int(unit[indices([j], unit.size)[0]]), *children]
        nodes.append(new)
    return {"kind": KIND, "gram": True, "boxed": False, "stages": tree["stages"], "nodes": nodes}


@final
class Replay:
    """Goes through the records of a tree, evaluating each on the part that it is about."""

    def __init__(self, sparsity: Cardinality, start: Any, nodes: list[Any], reader: Reader) -> None:
        """``start`` is the status of every unit to begin with."""
        self._sparsity, self._start, self._nodes, self._reader = sparsity, start, nodes, reader

    def run(self) -> Checked:
        """Return the parts that the tree leaves, with their bounds."""
        lowest, leaves, seen = math.inf, list[Leaf](), set[int]()
        todo: list[tuple[int, Any, int, float, Any]] = [
            (0, self._start, self._sparsity.budget, -math.inf, self._reader.begun())
        ]
        while todo:
            number, status, k, known, facts = todo.pop()
            if type(number) is not int or number < 0 or number in seen:
                raise ValueError(f"record {number} appears twice")
            seen.add(number)
            report(lambda: f"{len(seen)} of {len(self._nodes)} parts", "parts")
            record = self._nodes[number]
            if not record.keys() - LINES <= {"enumerated"}:
                raise ValueError(f"record {number} has lines that are not known")
            out = indices(record.get("out", []), status.size)
            inside = indices(record.get("in", []), status.size)
            decided = np.concatenate([out, inside])
            after = status.copy()
            after[out] = OUT
            if np.any(status[decided] != UNDECIDED) or np.any(after[inside] != UNDECIDED):
                raise ValueError("a unit is decided twice")
            after[inside] = IN
            low, proved, known = self._evaluate(record, status, k, known, decided, facts)
            if decided.size:
                lowest = min(lowest, _cut(proved, known, out, inside))
                status = after
                k -= int(inside.size)
                known = max(known, self._value(low, status, k))
            if "next" in record:
                todo.append((record["next"], status, k, known, facts))
            elif "branch" in record:
                j, *children = record["branch"]
                if status[indices([j], status.size)[0]] != UNDECIDED or len(children) != 2:
                    raise ValueError(f"record {number} branches on a unit decided before")
                below = self._reader.below(record, status, k, facts)
                for side, decision in ((1, IN), (2, OUT)):
                    part = status.copy()
                    part[j] = decision
                    room = k - (decision == IN)
                    bound = max(known, self._value(low, part, room))
                    child = children[side - 1]
                    if room < 0:
                        continue  # nothing is feasible there
                    if child == -1:
                        leaves.append(Leaf((number, side), part, room, bound, below))
                    else:
                        todo.append((child, part, room, bound, below))
            else:
                leaves.append(Leaf((number, 0), status, k, known, facts))
        return Checked(lowest, tuple(leaves), self._reader.root)

    def _evaluate(
        self, record: Any, status: Any, k: int, known: float, decided: IntArray, facts: Any
    ) -> tuple[Minorant | None, Proved | None, float]:
        """Return what the point of a record proves on a part, and the bound that is known then."""
        if record.get("enumerated") is True:
            if decided.size:
                raise ValueError("decisions in a part whose supports were all looked at")
            return None, None, max(known, self._reader.enumerated(status, k))
        low = self._reader.minorant(record, status, facts)
        if k < 0:
            return low, None, math.inf  # more units are in than may be
        proved = None if low is None else decide(low, status, k, self._sparsity)
        return low, proved, known if proved is None else max(known, proved.bound)

    def _value(self, low: Minorant | None, status: Any, k: int) -> float:
        if k < 0:
            return math.inf  # more units are in than may be
        proved = None if low is None else decide(low, status, k, self._sparsity)
        return -math.inf if proved is None else proved.bound


def _cut(proved: Proved | None, known: float, out: IntArray, inside: IntArray) -> float:
    """Return the least bound of what the decisions of a record cut off."""
    if proved is None:
        return known
    cut = min(proved.if_in[out].min(initial=math.inf), proved.if_out[inside].min(initial=math.inf))
    return max(known, float(cut))
