"""The convex constraints of a declaration in the coordinates of the canonical form."""

from __future__ import annotations

import numpy as np

from sparsemodel.compiler.canonical.blocks import stacked
from sparsemodel.compiler.canonical.declaration import Declaration, ImageSpec, NormSpec
from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.interfaces import (
    Ball,
    ImageBall,
    InfeasibleError,
    Linear,
    ModelError,
    OneNormBall,
    Region,
    Spectrum,
)


def region_of(declaration: Declaration, layout: Layout) -> Region | None:
    """Return the constraints beside bounds and cardinality, None when there are none.

    Raises
    ------
    InfeasibleError
        When a row of a linear constraint contradicts itself.
    """
    parts = (declaration.linear, declaration.norms, declaration.images, declaration.spectra)
    if not any(parts):
        return None
    if layout.matrix and (declaration.linear or declaration.images):
        raise ModelError(
            "Linear constraints beside a matrix variable are not supported; constrain its "
            "entries (`W >= 0`), or write the problem with vector variables."
        )
    linear = []
    for spec in declaration.linear:
        rows = spec.upper.size
        if not np.all(spec.lower <= spec.upper):
            row = int(np.argmax(spec.lower > spec.upper))
            raise InfeasibleError(
                f"Row {row} of a linear constraint asks for at least {spec.lower[row]:g} and at "
                f"most {spec.upper[row]:g}."
            )
        linear.append(Linear(stacked(spec.blocks, layout, rows), spec.lower, spec.upper))
    balls = [_ball(spec, layout) for spec in declaration.norms if spec.order == 2]
    one_norms = [_one_norm(spec, layout) for spec in declaration.norms if spec.order == 1]
    images = [_image(spec, layout) for spec in declaration.images]
    spectra = [Spectrum(layout.rows(s.variable), s.lower, s.upper) for s in declaration.spectra]
    return Region(tuple(linear), tuple(balls), tuple(one_norms), tuple(images), tuple(spectra))


def _ball(spec: NormSpec, layout: Layout) -> Ball:
    return Ball(layout.rows(spec.variable, spec.rows), spec.radius, spec.center)


def _one_norm(spec: NormSpec, layout: Layout) -> OneNormBall:
    return OneNormBall(layout.rows(spec.variable, spec.rows), spec.radius, spec.center)


def _image(spec: ImageSpec, layout: Layout) -> ImageBall:
    design = stacked(spec.blocks, layout, spec.shift.size)
    return ImageBall(design, spec.shift, spec.radius, spec.order)
