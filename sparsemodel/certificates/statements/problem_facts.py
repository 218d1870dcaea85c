"""What problem a certificate is about: sizes, options and fingerprints of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.statements.fingerprint import (
    array_hash,
    design_fingerprint,
    same_design,
)
from sparsemodel.interfaces import DataFit, SparseRegression


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

    def differences(self, other: ProblemFacts) -> list[tuple[str, Any, Any]]:
        """Return ``(line, mine, theirs)`` for every entry in which two problems differ."""
        found: list[tuple[str, Any, Any]] = []
        for index, (mine, theirs) in enumerate(zip(self.terms, other.terms, strict=False)):
            for field in fields(TermFacts):
                one, two = getattr(mine, field.name), getattr(theirs, field.name)
                if field.name == "design" and same_design(one, two):
                    continue
                if not _same(one, two):
                    found.append((f"problem.terms[{index}].{field.name}", one, two))
        if len(self.terms) != len(other.terms):
            found.append(("problem.terms", len(self.terms), len(other.terms)))
        for field in fields(ProblemFacts):
            if field.name == "terms":
                continue
            one, two = getattr(self, field.name), getattr(other, field.name)
            if self.forced is None and field.name == "forced":
                continue
            if self.forced is None and field.name == "k":
                two = other.k - (other.forced or 0)
            if not _same(one, two):
                found.append((f"problem.{field.name}", one, two))
        return found


def describe(form: SparseRegression) -> ProblemFacts:
    """Return the facts that identify ``form``; one pass over the data for the fingerprints."""
    sparsity = form.sparsity
    counted = form.ridge[sparsity.counted]
    groups = None if sparsity.groups is None else sparsity.groups.astype(np.float64)
    structure = array_hash(sparsity.free.astype(np.float64)) + ":" + array_hash(groups)
    box = (
        "none"
        if form.box is None
        else array_hash(np.broadcast_to(form.box.lower, form.shape))
        + ":"
        + array_hash(np.broadcast_to(form.box.upper, form.shape))
    )
    return ProblemFacts(
        terms=tuple(
            TermFacts(
                loss=term.loss.name,
                parameters=parameters(term.loss),
                observations=int(term.design.shape[0]),
                coordinates=int(term.design.shape[1]),
                design=design_fingerprint(term.design),
                target=array_hash(term.target),
                weights=array_hash(term.weights),
                offset=array_hash(term.offset),
                total_weight=math.fsum(term.weights),
            )
            for term in form.terms
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
    )


def _region(form: SparseRegression) -> str:
    region = form.region
    if region is None:
        return "none"
    parts = [region.describe()]
    for part in region.linear:
        parts += [design_fingerprint(part.design), array_hash(part.lower), array_hash(part.upper)]
    for ball in region.balls:
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


def _same(one: Any, two: Any) -> bool:
    return bool(one == two)


__all__ = ["ProblemFacts", "TermFacts", "describe", "parameters"]
