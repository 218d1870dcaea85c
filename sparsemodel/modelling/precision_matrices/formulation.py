"""Sparse precision matrices as a form of problem."""

from __future__ import annotations

from typing import ClassVar, final

from sparsemodel.interfaces import Form
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.formulations.formulation import CompiledProblem, Formulation
from sparsemodel.modelling.precision_matrices.compiled_joint import CompiledJoint
from sparsemodel.modelling.precision_matrices.compiled_precision import CompiledPrecision
from sparsemodel.modelling.precision_matrices.terms_and_constraints import NegativeLogDet, Trace


@final
class PrecisionMatrices(Formulation):
    """Gaussian likelihoods of symmetric matrices, one or several with one pattern of edges."""

    form: ClassVar[type[Form]] = SparsePrecision

    def recognises(self, declared: Reading) -> bool:
        terms = declared.goal.objective.terms
        return any(isinstance(term, (NegativeLogDet, Trace)) for term in terms)

    def compile(
        self, declared: Reading, last: CompiledProblem | None
    ) -> CompiledPrecision | CompiledJoint:
        if len(declared.variables) > 1:
            return CompiledJoint.of(declared)
        return CompiledPrecision.of(declared)
