"""What a regression looks like to the compiler: a few numbers that decide which recipe is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    FloatArray,
    Quadratic,
    SparseRegression,
    TwiceDifferentiable,
    coordinate_scores,
)
from sparsemodel.numerics import RegressionObjective, minimise_restricted, select, top_k

_SPARSE = 0.3
"""Share of entries that are stored from which a design counts as dense."""

_PROBED = 24
"""Columns whose correlations are looked at, at most."""

_SHARE = 16
"""One in so many columns is looked at where there are few."""

_GUESSED = 128
"""Coordinates of the first guess, at most: a look must stay cheap beside a pass."""

_QUANTILE = 0.95
"""Of the correlations: a few close pairs are what misleads, and the largest is luck."""

_WEIGHTS = {"loss": 3.0, "structure": 3.0, "stored": 3.0, "sparse": 1.0, "ridge": 0.7}
"""What a difference in kind counts, in units of a factor e in a size."""

_SIZES = np.array([1.0, 0.5, 0.25])
"""What differences in ``ln(k/n)``, ``ln(n/p)`` and ``ln p`` count."""

_PROBES = 2.0
"""What correlations, or shares left, that differ by 1 count in the same units."""


@final
@dataclass(frozen=True, slots=True)
class Features:
    """Kind and sizes of a regression, after reductions."""

    loss: str
    """``"quadratic"``, ``"smooth"``, ``"steep"`` (unbounded curvature) or ``"kinked"``."""
    structure: str
    """``"plain"``, ``"groups"``, ``"matrix"``, ``"bounds"`` or ``"region"``."""
    stored: bool
    """Whether columns can be read."""
    sparse: bool
    ridge: bool
    """Whether every counted coordinate has a ridge: without one, noiseless data fit exactly."""
    n: int
    units: int
    k: int
    coherence: float | None = None
    """Correlation that few pairs among the most promising columns exceed; None if unknown."""
    left: float | None = None
    """Share of a squared loss that the first guess of a support leaves; None if unknown."""

    @classmethod
    def of(
        cls,
        form: SparseRegression,
        *,
        coherence: float | None = None,
        left: float | None = None,
    ) -> Features:
        """Return the features of a form; nothing is read but sizes."""
        designs = [term.design for term in form.terms]
        rows = sum(design.shape[0] for design in designs)
        entries = sum(design.entries for design in designs)
        return cls(
            loss=_loss(form),
            structure=_structure(form),
            stored=all(Access.COLUMNS in design.access for design in designs),
            sparse=entries < _SPARSE * rows * form.sparsity.size,
            ridge=bool(np.all(form.ridge[form.sparsity.counted] > 0.0)),
            n=rows,
            units=form.sparsity.units,
            k=min(form.sparsity.budget, form.sparsity.units),
            coherence=coherence,
            left=left,
        )

    @property
    def sizes(self) -> tuple[float, float, float]:
        """Return ``ln(k/n)``, ``ln(n/p)`` and ``ln p``."""
        n, p, k = max(self.n, 1), max(self.units, 1), max(self.k, 1)
        return log(k / n), log(n / p), log(p)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


@final
class SideBySide:
    """The features of several problems, for their distances from another."""

    def __init__(self, problems: Sequence[Features]) -> None:
        self._sizes = np.array([f.sizes for f in problems]).reshape(-1, 3)
        self._probes = np.array([_probes(f) for f in problems]).reshape(-1, 2)
        self._kinds = {
            name: np.array([getattr(f, name) for f in problems], dtype=object) for name in _WEIGHTS
        }

    def distances(self, to: Features) -> FloatArray:
        """Return how unlike each is ``to`` a problem; 1 is a factor e in one of the sizes."""
        apart: FloatArray = np.abs(self._sizes - to.sizes) @ _SIZES
        for name, weight in _WEIGHTS.items():
            apart += weight * (self._kinds[name] != getattr(to, name)).astype(np.float64)
        apart += _PROBES * np.nansum(np.abs(self._probes - _probes(to)), axis=1)
        return apart


def _probes(of: Features) -> FloatArray:
    """Return what was looked at in the data; nan where nothing was."""
    return np.array([np.nan if v is None else v for v in (of.coherence, of.left)])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """What the columns with the largest gradients say of each other."""

    gram: FloatArray
    """Of those columns, weighted as the losses are."""
    passes: float
    """What reading them cost."""

    @classmethod
    def of(cls, form: SparseRegression, gradient: FloatArray) -> Screened:
        """Read at most 24 columns. Only for designs whose columns can be read."""
        scores = coordinate_scores(gradient)
        counted = np.flatnonzero(form.sparsity.counted)
        width = min(max(counted.size // _SHARE, 8), _PROBED, counted.size)
        chosen = np.sort(counted[top_k(scores[counted], width)])
        gram = np.zeros((chosen.size, chosen.size))
        for term in form.terms:
            gram += term.design.restrict(chosen).gram(term.weights)
        return cls(gram, 0.5 * width / max(form.sparsity.size, 1))

    @property
    def coherence(self) -> float:
        """Return the 95 % quantile of the absolute correlations."""
        size = np.sqrt(np.maximum(np.diagonal(self.gram), np.finfo(np.float64).tiny))
        above = np.triu_indices(size.size, 1)
        correlations = np.abs(self.gram / size[:, None] / size[None, :])[above]
        known = correlations[np.isfinite(correlations)]  # extreme scales overflow
        value = float(np.quantile(known, _QUANTILE)) if known.size else 0.0
        return min(value, 1.0)

    @property
    def eigenvalues(self) -> tuple[float, float] | None:
        """Return the least and the largest of the Gram matrix, None where it overflows.

        They lie within the restricted constants of as many coordinates: the condition number
        among all supports of that size is no smaller.
        """
        if not self.gram.size or not np.all(np.isfinite(self.gram)):
            return None
        values = np.linalg.eigvalsh(self.gram)
        return max(float(values[0]), 0.0), float(values[-1])


@final
@dataclass(frozen=True, slots=True)
class Guess:
    """What the minimiser on the largest gradients leaves of a squared loss."""

    left: float
    """Share of the loss; small where few columns explain the target and noise is low."""
    value: float
    """The losses and the form's constant there, without the ridge."""
    size: int
    """Coordinates that were fitted."""
    passes: float
    """What reading them cost."""

    @classmethod
    def of(cls, form: SparseRegression, gradient: FloatArray) -> Guess:
        """Minimise on the largest gradients, on at most 128 coordinates."""
        objective = RegressionObjective(form, gradient_at_zero=gradient)
        origin = objective.origin()
        support = select(form.sparsity, gradient)
        if support.size > _GUESSED:
            scores = coordinate_scores(gradient)[support]
            support = np.sort(support[top_k(scores, _GUESSED)])
        point = minimise_restricted(objective, support, origin)
        floor = objective.infimum()
        above = origin.value - floor
        left = (point.value - floor) / above if above > 0.0 else 0.0
        ridge = 0.5 * float(np.dot(form.ridge, coordinate_scores(point.x)))
        return cls(
            left=float(np.clip(left, 0.0, 1.0)) if np.isfinite(left) else 1.0,
            value=point.value - ridge,
            size=int(support.size),
            passes=0.5 * support.size / max(form.sparsity.size, 1),
        )


def _loss(form: SparseRegression) -> str:
    losses = [term.loss for term in form.terms]
    if all(isinstance(loss, Quadratic) for loss in losses):
        return "quadratic"
    if not all(isinstance(loss, TwiceDifferentiable) for loss in losses):
        return "kinked"
    return "smooth" if all(np.isfinite(loss.curvature()[1]) for loss in losses) else "steep"


def _structure(form: SparseRegression) -> str:
    if form.region is not None:
        return "region"
    if form.box is not None:
        return "bounds"
    if form.matrix:
        return "matrix"
    return "groups" if form.sparsity.groups is not None else "plain"


__all__ = ["Features", "Guess", "Screened", "SideBySide"]
