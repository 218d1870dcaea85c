"""What the compiler made of a precision-matrix problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from sparsemodel.compiler.canonical.declaration import VariableSpec
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.precision_layout import PrecisionLayout, precision_facts
from sparsemodel.driver import Outcome
from sparsemodel.interfaces import (
    BoolArray,
    FloatArray,
    InfeasibleError,
    IntArray,
    ModelError,
)
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision
from sparsemodel.modelling.declared import Reading, present_values
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.objective_terms import Objective
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symmetric import EdgeCount, EigenvalueBound
from sparsemodel.modelling.expressions.values import cardinality_bound
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.formulations.formulation import CompiledProblem, ProofRequest
from sparsemodel.modelling.precision_matrices.covariance import (
    check_covariance,
    covariance_of_data,
    default_bounds,
    dependence,
)
from sparsemodel.modelling.precision_matrices.sample import Sample, sample_of
from sparsemodel.modelling.precision_matrices.terms_and_constraints import (
    EdgePattern,
)
from sparsemodel.numerics.budget import (
    budget,
    cholesky_cost,
    eigenvalue_cost,
    gram_cost,
    inverse_cost,
)
from sparsemodel.numerics.precision import active_bounds, factorise
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.path import PathPoint, PathResult, Search
from sparsemodel.selection.precision_matrices import (
    PrecisionObservations,
    precision_criterion_values,
    solve_precision_path,
)

_DEFAULT_IS_ACTIVE = (
    "{} is active, and it is a default, not declared: the likelihood alone would go beyond "
    "it, as it does with fewer samples than the edges need. Declare bounds (Omega >> alpha, "
    "Omega << beta), or allow fewer edges"
)


class CompiledGraph(CompiledProblem):
    """What problems of one matrix and of several with one pattern have in common."""

    __slots__ = ()

    form: AnyPrecision
    unit: ClassVar[str] = "edges"
    counts: ClassVar[str] = "edges"

    @property
    def nodes(self) -> tuple[str, ...] | None:
        return self.form.names

    def support(self, chosen: IntArray) -> tuple[IntArray, tuple[Any, ...] | None]:
        """Return edges as pairs of indices, shape ``(edges, 2)``, and as pairs of names."""
        form = self.form
        pairs, names = np.stack([form.rows[chosen], form.cols[chosen]], axis=1), form.names
        if names is None:
            return pairs, None
        return pairs, tuple((names[i], names[j]) for i, j in pairs.tolist())

    @property
    def at_hand(self) -> bool:
        return True

    def certify(self, outcome: Outcome, backend: str, *, time_limit: float | None = None) -> Any:
        """Return the certificate of an outcome; None allows 5 seconds."""
        from sparsemodel.certificates.precision_matrices.certify_precision import certify_precision

        limit = 5.0 if time_limit is None else time_limit
        return certify_precision(self.form, outcome.x, time_limit=limit, backend=backend)


@final
@dataclass(slots=True)
class CompiledPrecision(CompiledGraph):
    """The canonical form of a precision-matrix problem."""

    form: SparsePrecision
    layout: PrecisionLayout
    sample: Sample
    bounds: tuple[float | None, float | None] = (None, None)
    """The eigenvalue bounds that were declared; None where the default holds."""
    certified: Any = field(default=None, repr=False)

    def facts(self) -> FactSheet:
        return precision_facts(self.form)

    def on_observations(self, kept: BoolArray) -> SparsePrecision:
        """Return the form with the covariance of some of the observations.

        Their mean and the default eigenvalue bounds are theirs, too.
        """
        data = self.sample.data
        if data is None:
            raise ModelError("The observations behind the covariance matrix are not known.")
        found = covariance_of_data(data[kept], where="A part of the data of gaussian_nll")
        S = self.sample.with_covariance(found.matrix)
        alpha, beta = self.bounds
        low, high = default_bounds(S, alpha=alpha, beta=beta)
        return replace(self.form, covariance=S, alpha=low, beta=high, samples=found.samples)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        return notes_on(Matrix(self.form, self.sample, self.bounds), outcome.x)

    def certify(self, outcome: Outcome, backend: str, *, time_limit: float | None = None) -> Any:
        self.certified = CompiledGraph.certify(self, outcome, backend, time_limit=time_limit)
        return self.certified

    def prove(self, outcome: Outcome, backend: str, asked: ProofRequest) -> Any:
        """Return the certificate of a search; the gap is a share of what edges explain."""
        from sparsemodel.certificates.precision_matrices.proving.proof_of_graph import (
            prove_precision,
        )

        return prove_precision(
            self.form,
            outcome.x,
            gap=asked.gap,
            time_limit=asked.time_limit,
            backend=backend,
            progress=lambda at: asked.show(at.value, at.bound, at.nodes, at.open),
            resume=asked.resume,
            last=self.certified,
        )

    def path(self, ks: Sequence[int], how: Search) -> PathResult:
        return solve_precision_path(self.form, ks, how)

    def scores(self, points: Sequence[PathPoint], criterion: Criterion) -> FloatArray:
        return precision_criterion_values(
            self.form,
            points,
            criterion,
            covariance=self.sample.covariance,
            samples=self.form.samples,
        )

    def observed(self) -> Observed:
        data = self.sample.data
        if data is None:
            raise ModelError(
                "Leaving out observations needs the observations, and only their covariance matrix "
                "is known: say sm.gaussian_nll(Omega, data=X)."
            )
        return PrecisionObservations(self.form, data, self.on_observations)

    @classmethod
    def of(cls, declared: Reading) -> CompiledPrecision:
        """Compile a declaration."""
        (variable,) = declared.variables
        matrix = matrix_of(variable, declared.goal.objective, declared.constraints)
        form = replace(matrix.form, parameters=present_values(declared))
        spec = VariableSpec(variable.name or "Omega", variable.shape, form.names)
        return cls(form, PrecisionLayout((spec,), form), matrix.sample, matrix.bounds)


class Matrix(NamedTuple):
    """A matrix of a declaration, with what is known of its data and its eigenvalue bounds."""

    form: SparsePrecision
    sample: Sample
    bounds: tuple[float | None, float | None]


def matrix_of(
    variable: Variable, objective: Objective, constraints: tuple[Constraint, ...]
) -> Matrix:
    """Return what is declared of one matrix, from the terms and constraints that are about it."""
    sample = sample_of(objective)
    covariance = sample.effective
    if covariance is not sample.covariance:
        covariance = check_covariance(covariance, where="The sum of the traces' matrices")
    p = covariance.shape[0]
    if variable.shape[0] != p:
        rows, columns = variable.shape
        raise ModelError(
            f"S is {p} x {p}, and {variable.label} is {rows} x {columns}: declare it as "
            f"sm.Variable(({p}, {p}), symmetric=True), or pass the covariance of all its variables."
        )
    edges, alpha, beta = _limits(constraints)
    required = _mask(constraints, p, required=True)
    forbidden = _mask(constraints, p, required=False)
    if np.any(required & forbidden):
        i, j = (int(v) for v in np.argwhere(required & forbidden)[0])
        raise InfeasibleError(f"The edge ({i}, {j}) is both required and forbidden.")
    if edges is None:
        edges = (p * (p - 1) - int(np.sum(required)) - int(np.sum(forbidden))) // 2
    low, high = default_bounds(covariance, alpha=alpha, beta=beta)
    form = SparsePrecision.build(
        covariance,
        edges,
        alpha=low,
        beta=high,
        required=required,
        forbidden=forbidden,
        weight=sample.weight,
        constant=objective.constant,
        samples=sample.size,
        names=variable.names or sample.names,
    )
    entries = 2 * form.sparsity.units
    if form.sparsity.k > form.sparsity.units:
        raise ModelError(
            f"card(offdiag({variable.label})) <= {2 * form.sparsity.k}, but only {entries // 2} "
            f"edges, of two entries each, may be nonzero. Write `<= {entries}`, or leave it out."
        )
    return Matrix(form, sample, (alpha, beta))


def notes_on(matrix: Matrix, x: FloatArray) -> tuple[str, ...]:
    """Return a warning for each eigenvalue bound that a matrix runs into, in time."""
    form = matrix.form
    p = form.order
    if not budget().fits(cholesky_cost(p), inverse_cost(p), 2.0 * eigenvalue_cost(p)):
        return ()
    factor = factorise(form.matrix(x))
    if factor is None:
        return ()
    texts = []
    for text in active_bounds(factor, form.alpha, form.beta):
        declared = matrix.bounds[1 if "upper" in text else 0] is not None
        texts.append(f"{text} is active" if declared else _DEFAULT_IS_ACTIVE.format(text))
        if not declared and "upper" in text:
            texts.extend(_dependence(matrix))
    return tuple(texts)


def _dependence(matrix: Matrix) -> tuple[str, ...]:
    """Return why the likelihood alone has no maximum, where columns of the data say it."""
    sample = matrix.sample
    if sample.data is None or sample.shrinkage > 0.0 or sample.rest is not None:
        return ()
    if not budget().fits(gram_cost(*sample.data.shape)):
        return ()
    words = dependence(sample.data, matrix.form.names)
    return (f"{words}; leave one of them out",) if words else ()


def _limits(
    constraints: tuple[Constraint, ...],
) -> tuple[int | None, float | None, float | None]:
    """Return the number of edges and the eigenvalue bounds, None where there is none."""
    limits: list[int] = []
    alpha: float | None = None
    beta: float | None = None
    for constraint in constraints:
        if isinstance(constraint, EdgeCount):
            limit = constraint.limit
            value = limit.value if isinstance(limit, Quantity) else limit
            # Entries come in symmetric pairs: an odd limit allows one entry less.
            limits.append(cardinality_bound(value) // 2)
        elif isinstance(constraint, EigenvalueBound):
            if constraint.upper:
                beta = constraint.bound if beta is None else min(beta, constraint.bound)
            else:
                alpha = constraint.bound if alpha is None else max(alpha, constraint.bound)
        elif not isinstance(constraint, EdgePattern):
            raise ModelError(
                f"The constraint {constraint!r} is not one of a precision-matrix problem: "
                "card(offdiag(Omega)) <= 2 * k, Omega >> alpha, Omega << beta, "
                "required_edges, forbidden_edges (for `Omega[i, j] == 0`)."
            )
    return min(limits, default=None), alpha, beta


def _mask(constraints: tuple[Constraint, ...], p: int, *, required: bool) -> BoolArray:
    mask = np.zeros((p, p), dtype=bool)
    for constraint in constraints:
        if isinstance(constraint, EdgePattern) and constraint.required is required:
            for i, j in constraint.pairs:
                mask[i, j] = mask[j, i] = True
    return mask
