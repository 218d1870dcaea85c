"""Scale the columns to one curvature."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, final

import numpy as np

from sparsemodel.compiler.reductions.base import Reduction
from sparsemodel.designs import SparseDesign, TransformedDesign
from sparsemodel.interfaces import (
    Ball,
    Box,
    Design,
    FloatArray,
    ImageBall,
    Region,
    SparseRegression,
    UnsupportedProblemError,
)

_LEAST, _LARGEST = 1e-280, 1e280
"""Sums of squares that columns are scaled by."""


@final
class Scale(Reduction):
    r"""Solve for :math:`x_j = d_j x'_j` with :math:`d_j` one over the column's size.

    Gradient and thresholding steps then compare coordinates in one unit. The scales are implicit
    and the ridge becomes :math:`\lambda_j d_j^2`, so the problem is the same.
    """

    keeps_steps = False

    def __init__(self, scale: FloatArray) -> None:
        self._d = scale

    @property
    def factors(self) -> FloatArray:
        """Return ``d``."""
        return self._d

    @classmethod
    def from_squares(cls, squares: FloatArray, form: SparseRegression) -> Scale:
        """Return the reduction for the columns' weighted sums of squares.

        Coordinates of a group share one scale, so that groups stay what they are.
        """
        squares = squares.copy()
        groups = form.sparsity.groups
        if groups is not None:
            for free in (False, True):
                mask = (groups < 0) if free else (groups >= 0)
                if free or not mask.any():
                    continue
                total = np.bincount(groups[mask], weights=squares[mask])
                count = np.maximum(np.bincount(groups[mask]), 1)
                squares[mask] = (total / count)[groups[mask]]
        d = np.ones_like(squares)
        # Columns beyond the range stay as they are: their scale, or its square in the ridge,
        # would be zero or infinite.
        usable = (squares > _LEAST) & (squares < _LARGEST)
        d[usable] = 1.0 / np.sqrt(squares[usable])
        return cls(d)

    def apply(self, form: SparseRegression) -> SparseRegression:
        terms = tuple(replace(term, design=self._scaled(term.design)) for term in form.terms)
        box = form.box
        if box is not None:
            least = None if box.least is None else self.carry(box.least)
            box = Box(self.carry(box.lower), self.carry(box.upper), least)
        region = None if form.region is None else self._of_region(form.region)
        ridge = form.ridge * np.square(self._d)
        return replace(form, terms=terms, ridge=ridge, box=box, region=region)

    def _scaled(self, design: Design) -> Design:
        return TransformedDesign(design, scale=self._d)

    def _of_region(self, region: Region) -> Region:
        """Return the constraints of a vector, of which balls are no longer about entries alone."""
        if region.spectra:
            raise UnsupportedProblemError("Entries of a matrix with eigenvalues share one scale.")
        linear = (replace(part, design=self._scaled(part.design)) for part in region.linear)
        images = [replace(part, design=self._scaled(part.design)) for part in region.images]
        for ball in region.every_ball:
            entries = self._scaled(SparseDesign.identity(self._d.size, ball.index))
            shift = np.zeros(ball.index.size) if ball.center is None else -ball.center
            order: Literal[1, 2] = 2 if isinstance(ball, Ball) else 1
            images.append(ImageBall(entries, shift, ball.radius, order))
        return Region(linear=tuple(linear), images=tuple(images))

    def restore(self, x: FloatArray) -> FloatArray:
        return self._d * x if x.ndim == 1 else self._d[:, None] * x

    def carry(self, x: FloatArray) -> FloatArray:
        return x / self._d if x.ndim == 1 else x / self._d[:, None]

    def carry_gradient(self, gradient: FloatArray) -> FloatArray:
        return self.restore(gradient)

    def describe(self) -> str:
        spread = float(self._d.max() / self._d.min())
        return f"columns scaled to one size (their sizes differ by a factor of {spread:.3g})"
