"""What problem a certificate is about: sizes, options and fingerprints of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.certificates.statements.fingerprint import (
    array_hash,
    block_fingerprints,
    combined,
    design_fingerprint,
    same_design,
)
from sparsemodel.certificates.statements.numbers import numbers_of
from sparsemodel.documents.numbers import not_counted, number
from sparsemodel.interfaces import DataFit, IntArray, SparseRegression


@final
@dataclass(frozen=True, slots=True)
class TermFacts:
    """One data set: its loss with parameters, sizes, fingerprints."""

    loss: str
    parameters: dict[str, Any]
    observations: int
    coordinates: int
    design: str
    """Fingerprint, see :mod:`~sparsemodel.certificates.statements.fingerprint`."""
    target: str
    weights: str
    offset: str
    total_weight: float


@final
@dataclass(frozen=True, slots=True)
class ProblemFacts:
    """Everything that identifies a canonical problem, without its data."""

    NEWER: ClassVar[tuple[str, ...]] = ("numbers",)

    terms: tuple[TermFacts, ...]
    shape: tuple[int, ...]
    k: int
    units: int
    free: int
    grouped: bool
    price: float
    constant: float
    ridge_smallest: float
    """Over the counted coordinates."""
    ridge_largest: float
    ridge: str
    """Fingerprint, as the two below."""
    structure: str
    box: str
    region: str
    """Convex constraints beside the bounds: in words, with fingerprints of their numbers."""
    forced: int | None = None
    """Units that their bounds keep nonzero: part of ``k``, not of ``units``. None in files of
    version 0.1.0, where ``k`` is without them."""
    numbers: dict[str, Any] | None = None
    """What the fingerprints above stand for, all but the data: see :func:`numbers_of`. None in
    files that were written without."""

    def sentence(self) -> str:
        """Return the problem in a line: losses, sizes, constraints."""
        losses = " + ".join(
            f"{t.loss}{_in_brackets(t.parameters)} on {t.observations} x {t.coordinates}"
            for t in self.terms
        )
        units = "groups" if self.grouped else "rows" if len(self.shape) > 1 else "coefficients"
        parts = [losses]
        if self.ridge_largest > 0.0:
            same = self.ridge_smallest == self.ridge_largest
            low, high = number(self.ridge_smallest, 4), number(self.ridge_largest, 4)
            parts.append(f"ridge {low if same else f'{low} to {high}'}")
        forced = self.forced or 0
        limit = f"at most {self.k} of {self.units + forced} {units} nonzero"
        parts.append(limit + (f" ({forced} of them by their bounds)" if forced else ""))
        further = sum(len((self.numbers or {}).get(key, ())) for key in ("limits", "crossing"))
        if further:
            sets = "another set" if further == 1 else f"{further} further sets"
            parts.append(f"with a limit on {sets} of them")
        if "prices" in (self.numbers or {}):
            parts.append(f"each at a price of its own, {number(self.price, 4)} or more")
        elif self.price > 0.0:
            parts.append(f"each costs {number(self.price, 4)}")
        knapsacks = (self.numbers or {}).get("knapsack", [])
        parts += [
            f"their costs within a budget of {number(one['most'], 4)}"
            for one in ([knapsacks] if isinstance(knapsacks, dict) else knapsacks)
        ]
        needing = {child for child, *_ in (self.numbers or {}).get("order", ())}
        if needing:
            parts.append(f"{len(needing)} of them only together with others")
        free = self.free if self.grouped else self.free - forced
        if free:
            parts.append(not_counted(free, units == "rows"))
        if self.box != "none":
            parts.append("bounds on coefficients")
        if "least" in (self.numbers or {}):
            parts.append("some zero or away from it")
        if self.region != "none":
            parts.append("further convex constraints")
        return ", ".join(parts)

    def fingerprints(self) -> list[tuple[str, str]]:
        """Return which data the problem is about, as rows."""
        rows = []
        for index, term in enumerate(self.terms):
            label = "data" if len(self.terms) == 1 else f"data {index + 1}"
            rows.append((label, term.design[:39] + ("..." if len(term.design) > 39 else "")))
            rows.append((label + " target", "sha256:" + term.target[:32] + "..."))
        return rows

    def differences(self, other: ProblemFacts) -> list[tuple[str, Any, Any]]:
        """Return ``(line, mine, theirs)`` for every entry in which two problems differ."""
        found: list[tuple[str, Any, Any]] = []
        for index, (mine, theirs) in enumerate(zip(self.terms, other.terms, strict=False)):
            for field in fields(TermFacts):
                one, two = getattr(mine, field.name), getattr(theirs, field.name)
                if not _same(one, two):
                    found.append((f"problem.terms[{index}].{field.name}", one, two))
        if len(self.terms) != len(other.terms):
            found.append(("problem.terms", len(self.terms), len(other.terms)))
        for field in fields(ProblemFacts):
            if field.name == "terms":
                continue
            one, two = getattr(self, field.name), getattr(other, field.name)
            if field.name in ("forced", "numbers") and getattr(self, field.name) is None:
                continue
            if self.forced is None and field.name == "k":
                two = other.k - (other.forced or 0)
            if not _same(one, two):
                found.append((f"problem.{field.name}", one, two))
        return found


def describe(
    form: SparseRegression,
    blocks: list[list[tuple[IntArray, str]]] | None = None,
    like: ProblemFacts | None = None,
) -> ProblemFacts:
    """Return the facts that identify ``form``; one pass over the data for the fingerprints.

    ``blocks`` are the fingerprints of the parts of every term's matrix, where they are known.
    They are probes where those of ``like`` are, whatever holds the entries here.
    """
    sparsity = form.sparsity
    counted = form.ridge[sparsity.counted]
    groups = None if sparsity.groups is None else sparsity.groups.astype(np.float64)
    structure = array_hash(sparsity.free.astype(np.float64)) + ":" + array_hash(groups)
    for units, most in [*sparsity.limited_sets(), *sparsity.limited_sets(crossing=True)]:
        structure += f":{array_hash(units.astype(np.float64))}<={most}"
    if sparsity.prices is not None:
        structure += f":prices {array_hash(sparsity.prices)}"
    for knapsack in sparsity.knapsacks:
        structure += f":{array_hash(knapsack.costs)}<={knapsack.most!r}"
    if sparsity.order is not None:
        rows = sparsity.order.as_lists
        most = max(map(len, rows))
        padded = np.array([[*row, *[-2] * (most - len(row))] for row in rows], dtype=np.float64)
        structure += f":order {array_hash(padded)}"
    box = (
        "none"
        if form.box is None
        else array_hash(form.box.lower)
        + ":"
        + array_hash(form.box.upper)
        + ("" if form.box.least is None else ":" + array_hash(form.box.least))
    )
    blocks = _fingerprints(form, blocks, like)
    return ProblemFacts(
        terms=tuple(
            TermFacts(
                loss=term.loss.name,
                parameters=parameters(term.loss),
                observations=int(term.design.shape[0]),
                coordinates=int(term.design.shape[1]),
                design=combined(term.design, found),
                target=array_hash(term.target),
                weights=array_hash(term.weights),
                offset=array_hash(term.offset),
                total_weight=math.fsum(term.weights),
            )
            for term, found in zip(form.terms, blocks, strict=True)
        ),
        shape=tuple(int(s) for s in form.shape),
        k=int(sparsity.k),
        units=int(sparsity.units),
        free=int(sparsity.free.size),
        grouped=sparsity.groups is not None,
        price=float(sparsity.price),
        constant=float(form.constant),
        ridge_smallest=float(counted.min(initial=math.inf)) if counted.size else 0.0,
        ridge_largest=float(counted.max(initial=0.0)),
        ridge=array_hash(form.ridge),
        structure=structure,
        box=box,
        region=_region(form),
        forced=int(sparsity.forced_units),
        numbers=numbers_of(form, blocks),
    )


def _fingerprints(
    form: SparseRegression,
    known: list[list[tuple[IntArray, str]]] | None,
    like: ProblemFacts | None,
) -> list[list[tuple[IntArray, str]]]:
    """Return the fingerprints of the blocks of every term, of the kinds that ``like`` has."""
    kinds: list[bool | None] = [None for _ in form.terms]
    if like is not None and len(like.terms) == len(kinds):
        kinds = [facts.design.startswith("probe:") for facts in like.terms]
    if known is not None and not any(kinds):
        return known
    pairs = zip(form.terms, kinds, strict=True)
    return [block_fingerprints(term.design, probed=kind) for term, kind in pairs]


def _region(form: SparseRegression) -> str:
    region = form.region
    if region is None:
        return "none"
    parts = [region.describe()]
    for part in region.linear:
        parts += [design_fingerprint(part.design), array_hash(part.lower), array_hash(part.upper)]
    for image in region.images:
        size = f"{image.order}:{float(image.radius)!r}"
        parts += [design_fingerprint(image.design), array_hash(image.shift), size]
    for one in region.spectra:
        index = array_hash(one.index.astype(np.float64))
        parts += [index, repr(float(one.lower)), repr(float(one.upper))]
    for ball in region.every_ball:
        index = array_hash(ball.index.astype(np.float64))
        parts += [index, repr(float(ball.radius)), array_hash(ball.center)]
    return " ".join(parts)


def parameters(loss: DataFit) -> dict[str, Any]:
    """Return the plain parameters of a loss by name; other fields by their type's name."""
    if not is_dataclass(loss):
        return {}
    plain: dict[str, Any] = {}
    for field in fields(loss):
        value = getattr(loss, field.name)
        simple = value is None or isinstance(value, (bool, int, float, str))
        plain[field.name] = value if simple else type(value).__name__
    return plain


def _in_brackets(parameters: dict[str, Any]) -> str:
    kept = {k: v for k, v in parameters.items() if v is not None}
    return "(" + ", ".join(f"{k}={v}" for k, v in kept.items()) + ")" if kept else ""


def _same(one: Any, two: Any) -> bool:
    """Return whether values are equal, probes of matrices among them up to rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, str) and isinstance(two, str):
        return same_design(one, two)
    return bool(one == two)
