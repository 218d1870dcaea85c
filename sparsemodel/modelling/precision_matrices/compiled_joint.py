"""What the compiler made of several precision matrices with one pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.compiler.canonical.declaration import VariableSpec
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.precision_layout import JointLayout, joint_facts
from sparsemodel.driver import Outcome
from sparsemodel.interfaces import FloatArray, ModelError, UnsupportedProblemError
from sparsemodel.interfaces.precision import JointPrecision
from sparsemodel.modelling.declared import Reading, present_values
from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.objective_terms import Objective
from sparsemodel.modelling.expressions.symmetric import EdgeCount
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.formulations.formulation import ProofRequest
from sparsemodel.modelling.precision_matrices.compiled_precision import (
    CompiledGraph,
    Matrix,
    matrix_of,
    notes_on,
)
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.path import PathPoint, PathResult, Search
from sparsemodel.selection.precision_matrices import joint_criterion_values, solve_joint_path


@final
@dataclass(slots=True)
class CompiledJoint(CompiledGraph):
    """The canonical form of several precision matrices with one pattern."""

    form: JointPrecision
    layout: JointLayout
    matrices: tuple[Matrix, ...]

    def facts(self) -> FactSheet:
        return joint_facts(self.form)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """Return a warning for each eigenvalue bound that a matrix runs into, in time."""
        columns = self.form.columns(outcome.x)
        found = zip(self.layout.variables, self.matrices, columns, strict=True)
        return tuple(f"{v.label}: {text}" for v, m, x in found for text in notes_on(m, x))

    def prove(self, outcome: Outcome, backend: str, asked: ProofRequest) -> Any:
        raise UnsupportedProblemError(
            "prove() searches the edges of one precision matrix. certify() bounds how far one "
            "pattern of several is from the best; so does the sum of the bounds that prove() gives "
            "for each matrix alone, with the same number of edges."
        )

    def path(self, ks: Sequence[int], how: Search) -> PathResult:
        return solve_joint_path(self.form, ks, how)

    def scores(self, points: Sequence[PathPoint], criterion: Criterion) -> FloatArray:
        samples = [(m.sample.covariance, m.form.samples) for m in self.matrices]
        return joint_criterion_values(self.form, points, criterion, samples)

    def observed(self) -> Observed:
        raise ModelError(
            "Observations are left out of one precision matrix at a time. Of several with one "
            'pattern, path.select("ebic") or path.select("bic") choose the number of edges.'
        )

    @classmethod
    def of(cls, declared: Reading) -> CompiledJoint:
        """Compile a declaration."""
        variables, constraints = declared.variables, declared.constraints
        for constraint in constraints:
            _check_pattern(constraint, variables)
        matrices = [_matrix(v, declared, place == 0) for place, v in enumerate(variables)]
        first = matrices[0].form
        for variable, matrix in zip(variables[1:], matrices[1:], strict=True):
            _check_alike(variables[0], first, variable, matrix.form)
        if not any(isinstance(c, EdgeCount) for c in constraints):
            raise ModelError(
                "Nothing joins these matrices, so each is a problem of its own. With one pattern "
                f"say `{_spelling(variables)}`."
            )
        names = next((m.form.names for m in matrices if m.form.names is not None), None)
        parts = tuple(replace(m.form, names=names) for m in matrices)
        form = JointPrecision(parts, declared.goal.objective.constant, present_values(declared))
        specs = tuple(
            VariableSpec(v.name or f"Omega_{place + 1}", v.shape, names)
            for place, v in enumerate(variables)
        )
        return cls(form, JointLayout(specs, form), tuple(matrices))


def _matrix(variable: Variable, declared: Reading, first: bool) -> Matrix:
    """Return one of the matrices, from the terms and constraints that are about it."""

    def about(item: Any) -> bool:
        expression = getattr(item, "expression", None)
        if not isinstance(expression, Affine):
            return first  # to be refused once
        return any(piece.variable is variable for piece in expression.pieces)

    terms = tuple(term for term in declared.goal.objective.terms if about(term))
    if not terms:
        raise ModelError(
            f"{variable.label} has no likelihood in the objective: add sm.gaussian_nll("
            f"{variable.label}, S), or leave it out."
        )
    return matrix_of(variable, Objective(terms), tuple(filter(about, declared.constraints)))


def _check_pattern(constraint: Constraint, variables: tuple[Variable, ...]) -> None:
    """Refuse a limit on the edges of some of the matrices."""
    if not isinstance(constraint, EdgeCount):
        return
    counted = [matrix.pieces[0].variable for matrix in constraint.counted.matrices]
    if {id(v) for v in counted} != {id(v) for v in variables}:
        raise ModelError(
            f"{constraint!r} is about some of the {len(variables)} matrices. All can have one "
            f"pattern, `{_spelling(variables)}`; matrices with patterns of their own are problems "
            "of their own."
        )


def _spelling(variables: tuple[Variable, ...]) -> str:
    """Return how the limit on one pattern is written."""
    names = [v.name or f"Omega_{place + 1}" for place, v in enumerate(variables)]
    return f"sm.card(sm.offdiag({', '.join(names)})) <= 2 * k"


def _check_alike(one: Variable, first: Any, other: Variable, form: Any) -> None:
    """Refuse matrices that cannot have one pattern."""
    if not (
        np.array_equal(first.rows, form.rows)
        and np.array_equal(first.cols, form.cols)
        and np.array_equal(first.sparsity.free, form.sparsity.free)
    ):
        raise ModelError(
            f"{one.label} and {other.label} have one pattern, and different edges are required or "
            "forbidden: say `sm.required_edges` and `sm.forbidden_edges` of each matrix, with the "
            "same pairs."
        )
    if first.names is not None and form.names is not None and first.names != form.names:
        i = next(i for i, (a, b) in enumerate(zip(first.names, form.names, strict=True)) if a != b)
        raise ModelError(
            f"{one.label} and {other.label} have one pattern, and variable {i} is "
            f"{first.names[i]!r} in one and {form.names[i]!r} in the other: bring the columns of "
            "the data into one order."
        )
