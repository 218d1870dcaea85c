"""The same problem in other words has the same answer in other words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsemodel.interfaces import FloatArray, Result
from sparsemodel.interfaces.numeric import rowwise
from sparsemodel.testing.instances.problems import EXACT_STORAGES, SINGLE_STORAGES, Data, Instance
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import Refusal, check_close


def permuting_coordinates(subject: Subject, instance: Instance) -> None:
    """Columns in another order."""
    plain = subject.converged(instance).point.x
    order = np.random.default_rng(5).permutation(instance.sparsity.size)
    other = subject.converged(instance.permuted(order))
    subject.same(other, plain[order], "solution with permuted columns")


def flipping_signs(subject: Subject, instance: Instance) -> None:
    """Some columns with the other sign."""
    if instance.box is not None and np.any(instance.box.lower != -instance.box.upper):
        raise Refusal("the bounds of this instance are not symmetric")
    plain = subject.converged(instance).point.x
    signs = np.random.default_rng(6).choice([-1.0, 1.0], size=instance.sparsity.size)
    other = subject.converged(instance.rescaled(signs))
    subject.same(other, rowwise(signs, plain), "solution with flipped columns")


def scaling_the_design(subject: Subject, instance: Instance) -> None:
    """``A`` a million times smaller and larger: ``x`` the other way, the same value."""
    plain = subject.converged(instance)
    for factor in (1e-6, 1e6):
        other = subject.converged(instance.rescaled(factor))
        subject.same(other, plain.point.x / factor, f"solution with {factor:g} A")
        _same_value(subject, other, plain.point.value, instance, f"{factor:g} A")


def scaling_the_target(subject: Subject, instance: Instance) -> None:
    """A squared loss with ``b`` a thousand times larger and smaller."""
    plain = subject.converged(instance).point.x
    for factor in (1e-3, 1e3):
        other = subject.converged(instance.with_target_times(factor))
        subject.same(other, plain * factor, f"solution with {factor:g} b")


def scaling_the_objective(subject: Subject, instance: Instance) -> None:
    """The sum in place of the mean, another currency: the same solution."""
    plain = subject.converged(instance).point.x
    for factor in (1e-6, 1e6):
        other = subject.converged(instance.with_objective_times(factor))
        subject.same(other, plain, f"solution with {factor:g} f")


def splitting_observations(subject: Subject, instance: Instance) -> None:
    """Observations reversed, and each cut into two of half the weight."""
    plain = subject.converged(instance).point.x
    other = subject.converged(replace(instance, data=tuple(_halves(d) for d in instance.data)))
    subject.same(other, plain, "solution with halved observations")


def splitting_terms(subject: Subject, instance: Instance) -> None:
    """One data set given as two."""
    plain = subject.converged(instance).point.x
    parts = tuple(part for d in instance.data for part in _parts(d))
    other = subject.converged(replace(instance, data=parts))
    subject.same(other, plain, "solution with the data in two terms")


def storing_differently(subject: Subject, instance: Instance) -> None:
    """Dense in either order, strided, sparse in either order, matrix-free, composed."""
    plain: FloatArray | None = None
    refused = []
    for name, storage in EXACT_STORAGES.items():
        try:
            result = subject.converged(instance, storage=storage)
        except Refusal as refusal:
            refused.append(str(refusal))
            continue
        if plain is None:
            plain = result.point.x
        subject.same(result, plain, f"solution with {name} storage")
    if plain is None:
        raise Refusal("; ".join(sorted(set(refused))))


def storing_in_single_precision(subject: Subject, instance: Instance) -> None:
    """Entries that float32 holds exactly: the same solution to its precision."""
    rounded = instance.rounded()
    plain = subject.converged(rounded).point.x
    for name, storage in SINGLE_STORAGES.items():
        result = subject.converged(rounded, storage=storage)
        tolerance = max(subject.resolution, 1e-4)
        check_close(result.point.x, plain, f"solution with {name} storage", rtol=tolerance)


def _same_value(
    subject: Subject, result: Result, value: float, instance: Instance, what: str
) -> None:
    decrease = instance.value(np.zeros(instance.shape)) - value
    atol = subject.accuracy * max(decrease, 0.0) + 1e-12 * abs(value)
    check_close(result.point.value, value, f"value with {what}", rtol=0.0, atol=atol)


def _halves(d: Data) -> Data:
    rows = np.repeat(np.arange(len(d.weights))[::-1], 2)
    return _rows_of(replace(d, weights=d.weights / 2.0), rows)


def _parts(d: Data) -> tuple[Data, Data]:
    n = len(d.weights)
    return _rows_of(d, np.arange(n // 3)), _rows_of(d, np.arange(n // 3, n))


def _rows_of(d: Data, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Data:
    return replace(
        d,
        array=d.array[rows],
        target=d.target[rows],
        weights=d.weights[rows],
        offset=None if d.offset is None else d.offset[rows],
    )
