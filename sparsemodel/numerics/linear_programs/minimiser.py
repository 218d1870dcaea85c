"""Minimisers on a support where nothing has curvature: vertices of a linear program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.interfaces import Cardinality, FloatArray, IntArray, Point, SparseRegression
from sparsemodel.interfaces.region import ImageBall, Linear, OneNormBall, Region
from sparsemodel.numerics.linear_programs.formulation import (
    Relaxation,
    has_round_limits,
    objections,
)
from sparsemodel.numerics.linear_programs.highs import Model
from sparsemodel.numerics.objectives.regression import RegressionObjective


def is_linear_program(form: SparseRegression) -> bool:
    """Return whether an objective without curvature has linear constraints and 1-norms alone."""
    return not (has_round_limits(form) or objections(form))


def minimise_linear_program(
    objective: RegressionObjective, support: IntArray, start: Point
) -> Point | None:
    """Return ``argmin f(x)`` over the ``x`` on ``support`` in the form's box and region: a vertex.

    A point of value ``inf`` where no ``x`` is; None where the program has no minimum, or its
    solution is not one in the tolerances of this library.
    """
    form = objective.form
    region = _on(form.region or Region(), support)
    size = int(support.size)
    if region is None:
        return replace(objective.point(support, start.x[support]), value=np.inf)
    columns = zip(form.terms, objective.columns(support), strict=True)
    relaxed = Relaxation.of(
        replace(
            form,
            terms=tuple(replace(term, design=design) for term, design in columns),
            ridge=np.zeros(size),
            sparsity=Cardinality(size, 0, free=np.arange(size)),
            box=None if form.box is None else form.box.on(support),
            region=region,
        )
    )
    unit = relaxed.units(relaxed.lower, relaxed.upper)
    cost = relaxed.cost * unit
    steep = float(np.abs(cost).max(initial=0.0)) or 1.0
    scaled, factors = relaxed.scaled(unit)
    found = Model(cost / steep, relaxed.lower / unit, relaxed.upper / unit, scaled).run()
    if found.status == "infeasible":
        return replace(objective.point(support, start.x[support]), value=np.inf)
    if found.status != "optimal" or found.x is None or found.slopes is None:
        return None
    point = objective.point(support, (found.x * unit)[:size])
    slopes = -steep * factors * found.slopes  # of the constraints, as they are added to the goal
    duals = []
    for term, places in zip(form.terms, relaxed.term_rows, strict=True):
        pulls = [slopes[each] for each in places]
        duals.append(sum(pulls, np.zeros(term.target.size)) if places else term.slopes())
    return replace(point, duals=tuple(duals), normal=_normal(form, relaxed, support, slopes))


def _on(region: Region, support: IntArray) -> Region | None:
    """Return the constraints on coordinates of a support; None where what is outside breaks one."""
    norms = []
    for ball in region.one_norms:
        inside, places = np.isin(ball.index, support), np.searchsorted(support, ball.index)
        center = np.zeros(ball.index.size) if ball.center is None else ball.center
        radius = ball.radius - float(np.abs(center[~inside]).sum())
        if radius < 0.0:
            return None
        norms.append(OneNormBall(places[inside], radius, center[inside]))
    return Region(
        linear=tuple(
            Linear(part.design.restrict(support), part.lower, part.upper) for part in region.linear
        ),
        one_norms=tuple(norms),
        images=tuple(
            ImageBall(image.design.restrict(support), image.shift, image.radius, image.order)
            for image in region.images
        ),
    )


def _normal(
    form: SparseRegression, relaxed: Relaxation, support: IntArray, slopes: FloatArray
) -> FloatArray | None:
    """Return what constraints add to the gradient, over all coordinates."""
    if form.region is None:
        return None
    out, region = np.zeros(form.sparsity.size), form.region
    ends = np.cumsum([0, *(part.lower.size for part in region.linear)])
    for part, begin, end in zip(region.linear, ends[:-1], ends[1:], strict=True):
        out += part.design.rmatvec(slopes[relaxed.linear_rows[begin:end]])
    norms = iter(relaxed.norm_rows)
    for ball in region.one_norms:
        sizes, whole = next(norms)
        inside = np.isin(ball.index, support)
        out[ball.index[inside]] += slopes[sizes]
        if ball.center is not None:  # what is outside is pulled to the centre with the same force
            out[ball.index[~inside]] -= slopes[whole] * np.sign(ball.center[~inside])
    for image in region.images:
        out += image.design.rmatvec(slopes[next(norms)[0]])
    return out
