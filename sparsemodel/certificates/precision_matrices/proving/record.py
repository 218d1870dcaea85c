"""The record of a graph's proof, every part of it evaluated again from the covariance alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.precision_matrices.ascent import Task, rescaled
from sparsemodel.certificates.precision_matrices.proving.part import below
from sparsemodel.certificates.precision_matrices.spectral_bounds import Enclosure, node_minorant
from sparsemodel.certificates.proving.node import OUT, UNDECIDED, Minorant
from sparsemodel.certificates.proving.records.readers import Reader, numbers
from sparsemodel.certificates.proving.records.replay import MALFORMED, Checked, Replay
from sparsemodel.interfaces import CertificateError, FloatArray
from sparsemodel.interfaces.precision import SparsePrecision


def graph_bound(form: SparsePrecision, upper: float, tree: Any) -> float:
    """Return the bound in nats that a record proves, given an upper bound on the optimum.

    Raises
    ------
    CertificateError
        When the record is malformed, or not one of this problem.
    """
    task, found = replayed(form, upper, tree)
    return task.in_nats(min(found.bound, task.upper))


def replayed(form: SparsePrecision, upper: float, tree: Any) -> tuple[Task, Checked]:
    """Return a record with its parts evaluated again, in the units that it was written in.

    Raises
    ------
    CertificateError
        When the record is malformed, or not one of this problem.
    """
    try:
        units = None if tree["units"] is None else tuple(int(e) for e in tree["units"])
        inner = everything(form)
        task = rescaled(inner, upper, units)
        replay = Replay(inner.sparsity, status_of(form, inner), tree["nodes"], _GraphReader(task))
        return task, replay.run()
    except MALFORMED as error:
        if isinstance(error, CertificateError):
            raise
        raise CertificateError(f"line 'proof.tree' is malformed: {error!r}.") from error


def everything(form: SparsePrecision) -> SparsePrecision:
    """Return a form whose coordinates are all entries: forbidden edges are units that are out."""
    p = form.order
    if form.rows.size == p * (p + 1) // 2:
        return form
    required = np.zeros((p, p), dtype=bool)
    free = form.sparsity.free
    required[form.rows[free], form.cols[free]] = True
    return replace(
        SparsePrecision.build(form.covariance, form.sparsity.budget, required=required),
        alpha=form.alpha,
        beta=form.beta,
    )


def status_of(form: SparsePrecision, inner: SparsePrecision) -> Any:
    """Return which units of :func:`everything` may be chosen."""
    allowed = np.zeros((form.order, form.order), dtype=bool)
    allowed[form.rows, form.cols] = True
    counted = inner.sparsity.counted
    may = allowed[inner.rows[counted], inner.cols[counted]]
    return np.where(may, UNDECIDED, OUT).astype(np.int8)


@final
class _GraphReader(Reader):
    """Evaluates dual matrices within the enclosures that the records above leave."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._latest: tuple[Any, FloatArray | None] = (None, None)

    def begun(self) -> Enclosure:
        """Return the enclosure of all matrices that are as good as the known one."""
        return self._task.enclosed()

    def minorant(self, record: Any, status: Any, known: Any) -> Minorant | None:
        """Return what a dual matrix proves, over all edges."""
        point = self._point(record)
        if point is None:
            return None
        found = node_minorant(self._task.form, point[:-1], float(point[-1]), known)
        self._latest = record, None if found is None else found.entries
        return None if found is None else found.minorant

    def below(self, record: Any, status: Any, k: int, known: Any) -> Any:
        """Return the enclosure for the two sides of a branch."""
        point = self._point(record)
        if point is None:
            return known
        latest, omega = self._latest
        attained = omega if latest is record else None
        return below(self._task.form, known, point, status, k, self._task.upper, attained)

    def enumerated(self, status: Any, k: int) -> float:
        """Raise ValueError: graphs are not enumerated."""
        raise ValueError("graphs are not looked at one by one")

    def _point(self, record: Any) -> FloatArray | None:
        if "duals" not in record:
            return None
        U, mu = map(numbers, record["duals"])
        if U.shape != self._task.form.shape or mu.shape != (1,):
            raise ValueError("a dual matrix does not fit the graph")
        point = np.append(U, mu)
        if not (np.all(np.isfinite(point)) and point[-1] >= 0.0):
            raise ValueError("a dual matrix is not finite")
        return point
