"""The tree of a search in a file: written when it ends, checked from the data alone.

A record is a dual point (or a point with curvature taken out around it), what its bound decided
(units ``out``, units ``in``), and what came after: nothing, another record for what is left
(``next``), or a branch on a unit with one record for either decision, -1 where there is none. Units
are numbered as in the form. Whoever has the data evaluates every dual point again; the least bound
of the parts bounds the problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.arithmetic.scaling import Scaling
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, infimum_bound, nothing
from sparsemodel.certificates.dual_bounds.diagonal_shift import (
    Extraction,
    applies,
    certainly_psd,
    hessian,
    squares_hold,
)
from sparsemodel.certificates.dual_bounds.witness import extracted
from sparsemodel.certificates.proving.branch_and_bound.domain import (
    Domain,
    forced_values,
    node_value,
)
from sparsemodel.certificates.proving.branch_and_bound.subproblem import scattered
from sparsemodel.certificates.proving.branch_and_bound.tree import Node
from sparsemodel.certificates.proving.compiled.tree import LIMIT, MALFORMED
from sparsemodel.certificates.relaxation.regulariser import unit_of
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import BoolArray, CertificateError, FloatArray, SparseRegression

KIND = "regions"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A part of the feasible set that a stored tree says nothing more about."""

    record: int
    decision: bool | None
    """Which child of the record's branch it is (True: the unit is in); None for what it leaves."""
    inside: BoolArray
    out: BoolArray
    bound: float
    """What was proved about it, evaluated again."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A stored tree after every dual point was evaluated again on the data."""

    closed: float
    """Least bound on what decisions cut off."""
    leaves: tuple[Leaf, ...]
    root: Bound

    @property
    def bound(self) -> float:
        """Return the bound that the tree proves."""
        return min([self.closed, *(leaf.bound for leaf in self.leaves)])


@final
class Recorder:
    """Writes the nodes of a search as plain lists, after those of an earlier one."""

    def __init__(
        self, form: SparseRegression, scaling: Scaling | None, earlier: dict[str, Any] | None = None
    ) -> None:
        self._form, self._scaling = form, scaling
        self._stages: list[Any] = [] if earlier is None else list(earlier["stages"])
        self._records: list[dict[str, Any]] = []
        if earlier is not None:
            self._records = [dict(record) for record in earlier["nodes"]]
        self._before = len(self._records)
        self._known: dict[int, int] = {}

    @property
    def count(self) -> int:
        """Return the number of records."""
        return len(self._records)

    def add(self, nodes: list[Node], domains: list[Domain]) -> None:
        """Write the nodes of a search; those of its domains' coordinates get the form's."""
        for node in nodes:
            domain = domains[node.domain]
            units = _units_of(self._form, domain)
            record = self._point(node, domain)
            if node.cannot_in.any() or node.cannot_out.any():
                record["out"] = units[node.cannot_in].tolist()
                record["in"] = units[node.cannot_out].tolist()
            if node.successor >= 0:
                record["next"] = self._before + node.successor
            elif node.branch >= 0:
                children = [c if c < 0 else self._before + c for c in node.children]
                record["branch"] = [int(units[node.branch]), *children]
            self._records.append(record)

    def follows(self, leaf: Leaf, index: int) -> None:
        """Note that node ``index`` of the search goes on with a part that was left."""
        record = self._records[leaf.record]
        if leaf.decision is None:
            record["next"] = self._before + index
            return
        branch = list(record["branch"])
        branch[1 if leaf.decision else 2] = self._before + index
        record["branch"] = branch

    def to_dict(self) -> dict[str, Any] | None:
        """Return the tree; None where it is too large to be worth a file."""
        size = 2 * sum(len(stage["delta"]) for stage in self._stages)
        for record in self._records:
            size += 4 + 2 * len(record.get("at", ())) + len(record.get("out", ()))
            size += sum(np.size(a) for a in record.get("duals", ()))
        if size > LIMIT:
            return None
        return {"kind": KIND, "stages": self._stages, "nodes": self._records}

    def _point(self, node: Node, domain: Domain) -> dict[str, Any]:
        witness = node.witness
        if witness is None:
            return {}
        if witness.extraction is None:
            return {"duals": [a.tolist() for a in witness.duals if a is not None]}
        size, at = self._form.sparsity.size, witness.at
        whole = Witness(
            witness.duals,
            None if at is None else scattered(at, domain.coordinates, size),
            scattered(witness.extraction, domain.coordinates, size),
        )
        if self._scaling is not None:
            whole = self._scaling.witness(whole)
        if whole.at is None or whole.extraction is None:
            return {}
        if node.domain not in self._known:
            self._known[node.domain] = len(self._stages)
            delta = whole.extraction[domain.coordinates]
            self._stages.append({"active": domain.coordinates.tolist(), "delta": delta.tolist()})
        on = np.flatnonzero(whole.at)
        stage = self._known[node.domain]
        return {"stage": stage, "at": on.tolist(), "x": whole.at[on].tolist()}


def _units_of(form: SparseRegression, domain: Domain) -> Any:
    """Return the form's number of every unit that a domain counts."""
    unit = unit_of(form)
    mine = np.setdiff1d(domain.coordinates, domain.inside)
    return np.unique(unit[mine][unit[mine] >= 0])


def tree_bound(form: SparseRegression, tree: Any) -> Bound:
    """Return the bound that a stored tree proves, every part evaluated again on the data.

    Raises
    ------
    CertificateError
        When the tree is malformed, or not one of this problem.
    """
    value = max(checked(form, tree).bound, infimum_bound(form, caution=1.0).value)
    if math.isnan(value) or value == -math.inf:
        return nothing("the tree proves nothing")
    # Another machine rounds otherwise, within what either subtracts.
    return Bound(value, 1e-11 * abs(value), "branch and bound")


def checked(form: SparseRegression, tree: Any, *, caution: float = 1.0) -> Checked:
    """Return a stored tree with its bounds computed from the data alone.

    ``caution`` is the multiple of the rounding allowance to subtract.

    Raises
    ------
    CertificateError
        When the tree is malformed, or not one of this problem.
    """
    try:
        return _Check(form, tree, caution).run()
    except MALFORMED as error:
        raise CertificateError(f"line 'proof.tree' is malformed: {error!r}.") from error


@final
class _Check:
    def __init__(self, form: SparseRegression, tree: dict[str, Any], caution: float) -> None:
        if tree.get("kind") != KIND:
            raise ValueError("the tree is of another kind of proof")
        self._form, self._nodes, self._caution = form, tree["nodes"], caution
        self._norms = tuple(column_norms(term.design) for term in form.terms)
        self._unit = unit_of(form)
        sound = bool(tree["stages"]) and applies(form) and squares_hold(form)
        h = hessian(form) if sound else None
        self._stages = [self._stage(stage, h) for stage in tree["stages"]]

    def _stage(self, stage: dict[str, Any], h: FloatArray | None) -> tuple[BoolArray, FloatArray]:
        """Return which coordinates a stage covers and the curvature that is proved on them."""
        size = self._form.sparsity.size
        active = _indices(stage["active"], size)
        full, member = np.zeros(size), np.zeros(size, dtype=bool)
        full[active], member[active] = np.array(stage["delta"], dtype=np.float64), True
        if h is None or self._form.matrix:
            raise ValueError("curvature can be taken out of squared losses only")
        if not np.all(np.isfinite(full)) or np.any(full < 0.0):
            raise ValueError("extracted curvature is negative or not finite")
        rows = sum(term.design.shape[0] for term in self._form.terms)
        if np.any(full > 0.0) and not certainly_psd(h[np.ix_(active, active)], full[active], rows):
            raise CertificateError(
                "line 'proof.tree.stages' does not hold: the data do not have this curvature."
            )
        return member, full

    def run(self) -> Checked:
        """Return the parts that the tree leaves, with their bounds."""
        form, units = self._form, self._form.sparsity.units
        nobody = np.zeros(units, dtype=bool)
        lowest, leaves, seen = math.inf, list[Leaf](), set[int]()
        root: Bound | None = None
        todo = [(0, nobody, nobody, -math.inf)]
        while todo:
            number, inside, out, known = todo.pop()
            if not isinstance(number, int) or number < 0 or number in seen:
                raise ValueError(f"record {number} appears twice")
            seen.add(number)
            record = self._nodes[number]
            bound = self._evaluate(record, out)
            root = bound if root is None else root
            known = max(known, node_value(bound, form, inside, out))
            cannot_in, cannot_out = nobody.copy(), nobody.copy()
            cannot_in[_indices(record.get("out", []), units)] = True
            cannot_out[_indices(record.get("in", []), units)] = True
            decided = cannot_in | cannot_out
            if np.any(decided & (inside | out)):
                raise ValueError("a unit is decided twice")
            if decided.any():
                if_in, if_out = forced_values(bound, form, inside, out)
                cut = min(
                    if_in[cannot_in].min(initial=math.inf),
                    if_out[cannot_out].min(initial=math.inf),
                )
                lowest = min(lowest, max(known, float(cut)))
                inside, out = inside | cannot_out, out | cannot_in
                known = max(known, node_value(bound, form, inside, out))
            if np.any(inside & out):
                continue  # nothing is left of this part
            if "next" in record:
                todo.append((record["next"], inside, out, known))
            elif "branch" in record:
                j, *children = record["branch"]
                if inside[j] or out[j] or j < 0 or len(children) != 2:
                    raise ValueError(f"record {number} branches on a unit decided before")
                for child, decision in zip(children, (True, False), strict=True):
                    masks = (inside.copy(), out.copy())
                    masks[0 if decision else 1][j] = True
                    value = max(known, node_value(bound, form, *masks))
                    if child == -1:
                        leaves.append(Leaf(number, decision, *masks, value))
                    else:
                        todo.append((child, *masks, value))
            else:
                leaves.append(Leaf(number, None, inside, out, known))
        return Checked(lowest, tuple(leaves), nothing("no record") if root is None else root)

    def _evaluate(self, record: Any, out: BoolArray) -> Bound:
        """Return the bound of a record's dual point; on all units, of which some may be out."""
        form = self._form
        if "stage" in record:
            member, full = self._stages[record["stage"]]
            alive = ~np.append(out, False)[self._unit]
            if record["stage"] < 0 or not np.all(member[alive]):
                raise ValueError("a stage does not cover a part")
            at = np.zeros(form.shape)
            at[_indices(record["at"], at.size)] = np.array(record["x"], dtype=np.float64)
            if not np.all(np.isfinite(at)):
                raise ValueError("a point is not finite")
            at[~alive] = 0.0
            duals = extracted(form, at, full).duals
            return self._bound(duals, at, Extraction(full))
        if "duals" not in record:
            return nothing("no dual point")
        points = tuple(np.array(a, dtype=np.float64) for a in record["duals"])
        shapes = [(term.design.shape[0], *form.shape[1:]) for term in form.terms]
        if [a.shape for a in points] != shapes or not all(np.all(np.isfinite(a)) for a in points):
            raise ValueError("a dual point does not fit the predictions")
        return self._bound(points, None, None)

    def _bound(
        self, duals: tuple[Any, ...], at: FloatArray | None, extraction: Extraction | None
    ) -> Bound:
        return dual_bound(
            self._form,
            duals,
            at=at,
            extraction=extraction,
            norms=self._norms,
            caution=self._caution,
        )


def _indices(values: Any, size: int) -> Any:
    index = np.array(values, dtype=np.intp)
    if index.ndim != 1 or np.unique(index).size != index.size:
        raise ValueError("an index appears twice")
    if index.size and (index.min() < 0 or index.max() >= size):
        raise ValueError("an index does not exist")
    return index


__all__ = ["KIND", "Checked", "Leaf", "Recorder", "checked", "tree_bound"]
