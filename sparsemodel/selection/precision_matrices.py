r"""Choosing the number of edges of a precision matrix: paths, what is left out, how well it fits.

With :math:`n` observations of covariance ``S`` and a matrix of ``k`` counted edges and ``d`` free
entries (the diagonal included), the information criteria are those of
:mod:`sparsemodel.selection.criteria` with
:math:`2\ell = n(-\log\det\Omega + \langle S,\Omega\rangle)`, but for EBIC, which is that of Foygel
and Drton (NIPS 2010) with :math:`\gamma = 1/2` unless said otherwise:
:math:`2\ell + d \log n + 4 \gamma k \log p`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.compiler.precision_layout import joint_facts, precision_facts
from sparsemodel.compiler.services import objective_of
from sparsemodel.interfaces import BoolArray, FloatArray, ModelError
from sparsemodel.interfaces.precision import AnyPrecision, JointPrecision, SparsePrecision
from sparsemodel.numerics import top_k
from sparsemodel.numerics.precision import precision_states, removal_costs
from sparsemodel.selection.criteria import (
    Candidate,
    Criterion,
    CriterionFunction,
    criterion_function,
)
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.path import PathPoint, PathResult, Search
from sparsemodel.selection.searched_path import searched_path

GAMMA = 0.5
"""The constant of EBIC, as in the simulations of Foygel and Drton (2010)."""


def solve_precision_path(form: SparsePrecision, ks: Sequence[int], how: Search) -> PathResult:
    """Return a matrix for every number of edges ``k``, and the passes over ``S`` that they cost.

    See :func:`~sparsemodel.selection.searched_path.searched_path`; a sweep downwards leaves out
    the edges that cost least.
    """
    return searched_path(form, ks, precision_facts, how, thinned=without_cheapest)


def solve_joint_path(form: JointPrecision, ks: Sequence[int], how: Search) -> PathResult:
    """Return matrices with one pattern for every number of edges, as for one matrix."""
    return searched_path(form, ks, joint_facts, how, thinned=without_cheapest)


def without_cheapest(form: AnyPrecision, x: FloatArray) -> FloatArray:
    """Return ``x`` without its cheapest counted edges, down to as many as ``form`` allows."""
    nonzero = (x != 0.0).reshape(len(x), -1).any(axis=1)
    chosen = np.flatnonzero(form.sparsity.counted & nonzero)
    if chosen.size <= form.sparsity.budget:
        return x
    objective = objective_of(form)
    rows, cols, costs = form.rows[chosen], form.cols[chosen], np.zeros(chosen.size)
    for share, part, factor in precision_states(objective, objective.point_from(x)):
        costs += share * removal_costs(part.covariance, factor.omega, factor.inverse, rows, cols)
    out = x.copy()
    out[np.delete(chosen, top_k(costs, form.sparsity.budget))] = 0.0
    return out


@final
class PrecisionObservations(Observed):
    """The rows behind a covariance matrix, and the problem on some of them.

    Parameters
    ----------
    form
        The problem on all rows.
    X
        Observations in rows; held by reference.
    form_on
        Returns the problem on the rows of a mask, everything estimated from them.

    Notes
    -----
    The held-out loss is :math:`-\\log\\det\\Omega + \\langle S',\\Omega\\rangle` with ``S'``
    the covariance of the rows left out about the mean of the others, and without what else the
    objective may hold.
    """

    least: ClassVar[int] = 2

    def __init__(
        self, form: SparsePrecision, X: FloatArray, form_on: Callable[[BoolArray], SparsePrecision]
    ) -> None:
        self._form, self._X, self._form_on = form, X, form_on

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self._X.shape[0],)

    def solutions(self, kept: Sequence[BoolArray], ks: Sequence[int], how: Search) -> PathResult:
        return solve_precision_path(self._form_on(kept[0]), ks, how).uninterrupted()

    def held_out_losses(
        self, kept: Sequence[BoolArray], points: Sequence[PathPoint]
    ) -> list[float]:
        deviations = self._X[~kept[0]] - self._X[kept[0]].mean(axis=0)
        covariance = deviations.T @ deviations / deviations.shape[0]
        return [likelihood(self._form.matrix(point.x), covariance) for point in points]


def precision_criterion_values(
    form: SparsePrecision,
    points: Sequence[PathPoint],
    criterion: Criterion,
    *,
    covariance: FloatArray,
    samples: int | None,
) -> FloatArray:
    """Return the criterion for each point of a path; smaller is better.

    Parameters
    ----------
    criterion
        With ``gamma`` None, that of EBIC is 1/2.
    covariance
        The empirical covariance alone, without what else the objective may hold.
    samples
        How many observations it was computed from.

    Raises
    ------
    ModelError
        For an unknown criterion, and when the number of observations is not known.
    """

    def ebic(gamma: float) -> CriterionFunction:
        vertices = float(np.log(form.order))
        return lambda m: m.minus_twice_log + m.d * np.log(m.n) + 4.0 * gamma * m.k * vertices

    value = criterion_function(criterion, usual=GAMMA, ebic=ebic)
    if samples is None:
        raise ModelError(
            f"{criterion.name} needs the number of observations behind S: say "
            "sm.gaussian_nll(Omega, S, samples=n), or give the observations as data=X."
        )
    n, units = float(samples), criterion.units(form.sparsity.units)
    out = []
    for point in points:
        k = form.sparsity.count(point.x)
        d = k + int(form.sparsity.free.size)
        fit = n * likelihood(form.matrix(point.x), covariance)
        out.append(value(Candidate(fit, n, units, k, d)))
    return np.array(out)


def joint_criterion_values(
    form: JointPrecision,
    points: Sequence[PathPoint],
    criterion: Criterion,
    samples: Sequence[tuple[FloatArray, int | None]],
) -> FloatArray:
    """Return the sum of the criterion over the matrices, each with its observations.

    ``samples`` are the empirical covariances with the numbers of observations. The pattern is one:
    what EBIC adds for the choice of edges is added once.
    """
    if criterion.rule == "ebic":
        gamma = GAMMA if criterion.gamma is None else criterion.gamma
        criterion = replace(criterion, gamma=gamma / len(form.parts))
    total = np.zeros(len(points))
    for g, (part, (covariance, n)) in enumerate(zip(form.parts, samples, strict=True)):
        own = [replace(point, x=form.columns(point.x)[g]) for point in points]
        total += precision_criterion_values(part, own, criterion, covariance=covariance, samples=n)
    return total


def likelihood(omega: FloatArray, covariance: FloatArray) -> float:
    """Return ``-log det Omega + <S, Omega>``, twice the mean negative log-likelihood."""
    return float(np.vdot(covariance, omega)) - float(np.linalg.slogdet(omega)[1])
