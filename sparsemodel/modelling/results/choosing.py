"""Paths and the choice along them, for every kind of compiled problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.modelling.precision_matrices.compiled_precision import CompiledPrecision
from sparsemodel.modelling.regression.compiled import Compiled
from sparsemodel.selection import (
    CrossValidation,
    Followed,
    Observations,
    PathPoint,
    criterion_values,
    cross_validate,
    cross_validate_precision,
    edge_frequencies,
    precision_criterion_values,
    selection_frequencies,
    solve_path,
    solve_precision_path,
)


def follow(compiled: Compiled | CompiledPrecision, ks: Sequence[int], *, sweeps: int) -> Followed:
    """Return the solutions for each k, and the passes over the data that they cost."""
    if isinstance(compiled, CompiledPrecision):
        return solve_precision_path(compiled.form, ks, sweeps=sweeps)
    _, reduced = compiled.analysis()
    return solve_path(compiled.form, reduced, ks, sweeps=sweeps)


def scores_of(
    compiled: Compiled | CompiledPrecision, points: Sequence[PathPoint], criterion: str
) -> FloatArray:
    """Return an information criterion for each point."""
    if isinstance(compiled, CompiledPrecision):
        return precision_criterion_values(
            compiled.form,
            points,
            criterion,
            covariance=compiled.sample.covariance,
            samples=compiled.form.samples,
        )
    return criterion_values(compiled.form, points, criterion)


def validated(
    compiled: Compiled | CompiledPrecision, ks: Sequence[int], **options: Any
) -> CrossValidation:
    """Return held-out losses for each k."""
    if isinstance(compiled, CompiledPrecision):
        return cross_validate_precision(_observations(compiled), ks, **options)
    return cross_validate(compiled.form, ks, **options)


def frequencies(
    compiled: Compiled | CompiledPrecision, ks: Sequence[int], **options: Any
) -> FloatArray:
    """Return how often each coordinate is chosen for each k on halves of the data."""
    if isinstance(compiled, CompiledPrecision):
        return edge_frequencies(_observations(compiled), ks, **options)
    return selection_frequencies(compiled.form, ks, **options)


def _observations(compiled: CompiledPrecision) -> Observations:
    data = compiled.sample.data
    if data is None:
        raise ModelError(
            "Leaving out observations needs the observations, and only their covariance matrix is "
            "known: say sm.gaussian_nll(Omega, data=X)."
        )
    return Observations(data, compiled.on_observations)


__all__ = ["follow", "frequencies", "scores_of", "validated"]
