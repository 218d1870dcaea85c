"""The empirical part of a precision-matrix objective, and the same on some of its observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.modelling.expressions.objective_terms import Objective
from sparsemodel.modelling.precision_matrices.covariance import check_covariance
from sparsemodel.modelling.precision_matrices.terms_and_constraints import NegativeLogDet, Trace


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What an objective ``-w log_det(Omega) + a trace(S @ Omega) + ...`` knows of its data."""

    covariance: FloatArray
    """``S``, of the trace that knows its observations, or of all traces together."""
    size: int | None
    """Number of observations, where known."""
    data: FloatArray | None
    """The observations, where they were given."""
    names: tuple[str, ...] | None
    weight: float
    """``w``."""
    share: float
    """``a / w``."""
    shrinkage: float
    """:math:`\\rho`, how far ``S`` is drawn towards its diagonal in the objective."""
    rest: FloatArray | None
    """The sum of the other traces' matrices over ``w``; None where there is none."""

    @property
    def effective(self) -> FloatArray:
        """Return the matrix of the objective: ``share * S + rest``, with ``S`` shrunken."""
        return self.with_covariance(self.covariance)

    def with_covariance(self, S: FloatArray) -> FloatArray:
        """Return the matrix of the objective for another ``S``."""
        if self.shrinkage > 0.0:
            diagonal = np.diagonal(S).copy()
            S = (1.0 - self.shrinkage) * S
            S[np.diag_indices_from(S)] = diagonal
        scaled = S if self.share == 1.0 else self.share * S
        return scaled if self.rest is None else scaled + self.rest


def sample_of(objective: Objective) -> Sample:
    """Return the sample behind the terms of a precision-matrix objective.

    Raises
    ------
    ModelError
        When a term is missing, does not belong, or two traces have observations of their own.
    """
    weight = 0.0
    traces: list[Trace] = []
    for term in objective.terms:
        if isinstance(term, NegativeLogDet):
            weight += term.weight
        elif isinstance(term, Trace):
            traces.append(term)
        else:
            raise ModelError(
                f"{term!r} cannot be part of a precision-matrix problem; its objective is "
                "-log_det(Omega) + trace(S @ Omega)."
            )
    if not traces or not weight > 0.0:
        raise ModelError(
            "A precision-matrix problem needs both -log_det(Omega) and trace(S @ Omega); "
            "sm.gaussian_nll(Omega, S) is their sum."
        )
    sampled = [t for t in traces if t.samples is not None or t.shrinkage > 0.0]
    if len(sampled) > 1:
        raise ModelError(
            "Two terms have observations of their own; stack the observations, or give their "
            "covariance matrices without samples."
        )
    main = sampled[0] if sampled else traces[0]
    others = [trace for trace in traces if trace is not main]
    names = next((trace.names for trace in (main, *others) if trace.names), None)
    rest: FloatArray | None = None
    for trace in others:
        part = (trace.weight / weight) * _checked(trace)
        rest = part if rest is None else rest + part
    S = _checked(main)
    if rest is not None and rest.shape != S.shape:
        raise ModelError(f"The matrices of the traces differ in shape: {S.shape}, {rest.shape}.")
    if not sampled and rest is not None:
        # Nothing says which of them is the sample's.
        S, share, rest = (main.weight / weight) * S + rest, 1.0, None
    else:
        share = main.weight / weight
    return Sample(S, main.samples, main.data, names, weight, share, main.shrinkage, rest)


def _checked(trace: Trace) -> FloatArray:
    return np.asarray(check_covariance(trace.matrix, where="The S of trace(S @ Omega)"))
