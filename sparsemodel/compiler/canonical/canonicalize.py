"""From a declaration to the canonical form, and back from coordinates to variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsemodel.compiler.canonical.blocks import stacked
from sparsemodel.compiler.canonical.counting import cardinality_of
from sparsemodel.compiler.canonical.declaration import Block, Declaration, LossSpec
from sparsemodel.compiler.canonical.fixed_in import without_forced
from sparsemodel.compiler.canonical.layout import Layout, lay_out
from sparsemodel.compiler.canonical.regions import region_of
from sparsemodel.interfaces import (
    Box,
    Cardinality,
    FloatArray,
    InfeasibleError,
    ModelError,
    Region,
    SparseRegression,
    Term,
)


def canonicalize(
    declaration: Declaration, last: tuple[Declaration, SparseRegression] | None = None
) -> tuple[SparseRegression, Layout]:
    """Return the canonical form of a declaration and the layout of its coordinates.

    ``last`` is an earlier declaration with its form: where their losses are the same, the new
    form holds the same terms (the same objects), so that nothing about the data is lost.
    """
    layout = lay_out(declaration)
    used = np.zeros(layout.size, dtype=bool)
    terms = tuple(_term(spec, layout, used) for spec in declaration.losses if spec.scale > 0.0)
    if last is not None and _same_losses(declaration, last[0]):
        terms = last[1].terms
    for i, variable in enumerate(declaration.variables):
        if not used[layout.rows(i)].any():
            raise ModelError(
                f"The variable {variable.label} appears in no loss with a positive weight, and "
                "constraints alone do not determine it. Replace it by the expression that it "
                "stands for (write sm.card(D @ w) <= k in place of sm.card(d) <= k with "
                "`d == D @ w`), or leave it out."
            )
    box = _box(declaration, layout)
    if box is not None and box.least is not None:
        _refuse_groups(cardinality_of(declaration, layout), layout)
    region = region_of(declaration, layout)
    bounds = box if region is None else _with_diagonals(box, region, layout)
    sparsity, paid = without_forced(cardinality_of(declaration, layout), bounds, layout)
    form = SparseRegression(
        terms=terms,
        ridge=_ridge(declaration, layout),
        sparsity=sparsity,
        outputs=layout.outputs,
        matrix=layout.matrix,
        box=box,
        constant=declaration.constant + paid,
        region=region,
    )
    return form, layout


def _term(spec: LossSpec, layout: Layout, used: np.ndarray) -> Term:
    n = spec.target.shape[0]
    for block in spec.blocks:
        used[layout.rows(block.variable, block.rows)] = True
    _check_outputs(spec, layout)
    design = stacked(spec.blocks, layout, n)
    weights = np.ones(n) if spec.observation_weights is None else spec.observation_weights
    scale = spec.scale / n if spec.reduction == "mean" else spec.scale
    offset = spec.offset
    if offset is not None:
        shape = (n, layout.outputs) if layout.matrix else (n,)
        offset = np.broadcast_to(np.asarray(offset, dtype=np.float64), shape)
    return Term(design, spec.loss, spec.target, scale * weights, offset)


def _same_losses(new: Declaration, old: Declaration) -> bool:
    """Return whether two declarations of one problem have the same data in their losses."""
    return len(new.losses) == len(old.losses) and all(
        a.loss == b.loss
        and _same_array(a.target, b.target)
        and (a.scale, a.reduction) == (b.scale, b.reduction)
        and _same_array(a.offset, b.offset)
        and _same_array(a.observation_weights, b.observation_weights)
        and len(a.blocks) == len(b.blocks)
        and all(_same_block(c, d) for c, d in zip(a.blocks, b.blocks, strict=True))
        for a, b in zip(new.losses, old.losses, strict=True)
    )


def _same_block(a: Block, b: Block) -> bool:
    held = [getattr(block.design, "array", None) for block in (a, b)]
    same = a.design is b.design or (held[0] is not None and held[0] is held[1])
    return same and (a.variable, a.factor) == (b.variable, b.factor) and _same_array(a.rows, b.rows)


def _same_array(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _check_outputs(spec: LossSpec, layout: Layout) -> None:
    wanted = spec.loss.outputs(spec.target)
    if layout.matrix and wanted == 1:
        raise ModelError(
            f"{spec.loss.name} predicts one number per observation, and the variable is a matrix "
            f"with {layout.outputs} columns; use a vector variable."
        )
    if wanted > 1 and wanted != layout.outputs:
        found = f"has {layout.outputs} columns" if layout.matrix else "is a vector"
        several = spec.target.ndim == 2
        of = f"{wanted} columns" if several else f"{wanted} classes"
        instead = ", or take one column of the target" if several else ""
        raise ModelError(
            f"{spec.loss.name}, whose target has {of}, needs a matrix variable with {wanted} "
            f"columns, and this one {found}: declare it as sm.Variable((p, {wanted})){instead}."
        )


def _ridge(declaration: Declaration, layout: Layout) -> FloatArray:
    ridge = np.zeros(layout.size)
    for spec in declaration.ridges:
        index = layout.rows(spec.variable, spec.rows)
        if np.ndim(spec.weight) and np.size(spec.weight) != index.size:
            raise ModelError(
                f"ridge has {np.size(spec.weight)} weights for {index.size} entries of "
                f"{declaration.variables[spec.variable].label}."
            )
        ridge[index] += spec.weight
    return ridge


def _box(declaration: Declaration, layout: Layout) -> Box | None:
    if not declaration.bounds:
        return None
    shape = (layout.size, layout.outputs) if layout.matrix else (layout.size,)
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    for spec in declaration.bounds:
        index = layout.rows(spec.variable, spec.rows)
        if spec.lower is not None:
            lower[index] = np.maximum(lower[index], spec.lower)
        if spec.upper is not None:
            upper[index] = np.minimum(upper[index], spec.upper)
    least = _least(declaration, layout, lower, upper)
    if np.any(lower > upper):
        first = int(np.argwhere(lower > upper)[0][0])
        raise InfeasibleError(
            f"No value satisfies the bounds on {layout.names()[first]}: they ask for at least "
            f"{np.max(lower[first]):g} and at most {np.min(upper[first]):g}."
        )
    if np.all(np.isneginf(lower)) and np.all(np.isposinf(upper)):
        return None
    return Box(lower, upper, least)


def _with_diagonals(box: Box | None, region: Region, layout: Layout) -> Box | None:
    """Return the bounds with those that definite matrices have on their diagonals."""
    definite = [part for part in region.spectra if part.lower > 0.0]
    if not definite:
        return box
    ends = box or Box.unbounded(layout.size)
    lower = ends.lower.copy()
    for part in definite:
        lower[part.diagonal] = np.maximum(lower[part.diagonal], part.lower)
    return replace(ends, lower=lower)


def _refuse_groups(sparsity: Cardinality, layout: Layout) -> None:
    if sparsity.groups is not None or layout.matrix:
        raise ModelError(
            "semicontinuous is about single entries, and here groups or rows are counted. Count "
            "entries, `sm.card(w) <= k`, and bound each group, `sm.card(w[group]) <= 1`; or solve "
            "for one column of the matrix after the other."
        )


def _least(
    declaration: Declaration, layout: Layout, lower: FloatArray, upper: FloatArray
) -> FloatArray | None:
    """Return the least sizes of coordinates, and write what follows from them into the bounds.

    A coordinate that its bounds keep away from zero is bounded by its least size as well; one whose
    bounds leave nothing but zero is zero.
    """
    if not declaration.leasts:
        return None
    least = np.zeros(layout.size)
    for spec in declaration.leasts:
        index = layout.rows(spec.variable, spec.rows)
        least[index] = np.maximum(least[index], spec.least)
    above, below = lower > 0.0, upper < 0.0
    lower[above] = np.maximum(lower, least)[above]
    upper[below] = np.minimum(upper, -least)[below]
    lost = np.where(lower >= 0.0, upper, -lower) < least
    lower[lost & ~above], upper[lost & ~below] = np.maximum(lower, 0.0)[lost & ~above], 0.0
    least[above | below | lost] = 0.0
    return least if least.any() else None
