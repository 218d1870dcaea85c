"""What the compiler made of a problem, kept from one solve to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sparsemodel.compiler.canonical.canonicalize import canonicalize
from sparsemodel.compiler.canonical.declaration import Declaration
from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.reductions.chain import reduce_form
from sparsemodel.driver import Outcome, ShortProof
from sparsemodel.interfaces import (
    Access,
    BoolArray,
    Cardinality,
    FloatArray,
    IntArray,
    ModelError,
    SparseRegression,
    UnboundedError,
)
from sparsemodel.interfaces.numeric import known_sum
from sparsemodel.modelling.formulations.formulation import Answer, CompiledProblem, ProofRequest
from sparsemodel.modelling.regression.measures import summary_of, summary_of_levels
from sparsemodel.modelling.regression.proof_of_supports import (
    certified,
    searched,
    when_read,
    within_a_solve,
)
from sparsemodel.modelling.regression.reach import check_reach
from sparsemodel.modelling.regression.restricted import restricted
from sparsemodel.modelling.regression.separation import separating_columns, with_columns
from sparsemodel.modelling.results.summary import Summary
from sparsemodel.modelling.run_options import within
from sparsemodel.numerics import as_sequence
from sparsemodel.numerics.budget import budget, too_late_to_read
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.path import PathPoint, PathResult, Search, sizes_to_follow, with_prices
from sparsemodel.selection.regression_path import beside_infeasible, valued
from sparsemodel.selection.regressions import (
    DeclaredWeights,
    RegressionObservations,
    most_carried,
    regression_criterion_values,
)
from sparsemodel.selection.searched_path import limited_path
from sparsemodel.selection.solve_path import solve_path

NO_LIKELIHOOD_OF_CLASSES = (
    "The ordinal loss adds up logistic losses of the same observations, one for each threshold: it "
    "is not a likelihood of the classes, so {} is not defined for it. Use cross_validate()."
)

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate
    from sparsemodel.certificates.short_proofs.short_proof import ShortProofResult
    from sparsemodel.certificates.theory import Theory


@final
@dataclass(slots=True)
class Compiled(CompiledProblem):
    """A canonical form with what is known about it; analysed when first asked."""

    declaration: Declaration
    form: SparseRegression
    layout: Layout
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """What was computed from the data alone."""
    _facts: Facts | None = field(default=None, repr=False)
    _reduced: Reduced | None = field(default=None, repr=False)
    certified: Certificate | None = field(default=None, repr=False)
    """The last certificate; a proof starts from its bound."""
    along: Mapping[int, Cardinality] | None = field(default=None, repr=False)
    """The constraint at each ``k`` of a path, where ``k`` is not the only limit."""

    @classmethod
    def of(cls, declaration: Declaration) -> Compiled:
        """Compile a declaration."""
        form, layout = canonicalize(declaration)
        return cls(declaration, form, layout)

    @np.errstate(all="ignore")  # what overflows shows in the result
    def analysis(self, *, reductions: bool = True) -> tuple[Facts, Reduced]:
        """Return the facts about the data and the reduced form, or the form as it is.

        A reduction that was left out to save time is made when there is no limit.
        """
        if not reductions:
            self._check_products()
            return self._facts or Facts(self.form, self._known), Reduced(self.form, ())
        again = self._reduced is not None and self._reduced.hurried and budget().deadline is None
        if self._facts is None or self._reduced is None or again:
            self._check_products()
            facts = Facts(self.form, self._known)
            self._reduced = reduce_form(self.form, facts)
            self._facts = facts
        return self._facts, self._reduced

    def _check_products(self) -> None:
        for term in self.form.terms:
            if Access.ROWS not in term.design.access:  # products are taken on trust
                from sparsemodel.certificates.arithmetic.products import check_adjoint

                check_adjoint(term.design)

    @property
    def analysed(self) -> float:
        """Return the passes over the data that the analysis has cost so far."""
        return 0.0 if self._facts is None else self._facts.passes

    @property
    def unit(self) -> str:
        grouped = self.form.sparsity.groups is not None
        return "nonzero groups" if grouped else "nonzero coefficients"

    @property
    def counts(self) -> str:
        return "nonzero groups" if self.form.sparsity.groups is not None else "nonzero"

    @property
    def stored(self) -> tuple[int | None, int]:
        designs = [term.design for term in self.form.terms]
        read = known_sum(design.bytes_read for design in designs)
        return read, sum(design.nbytes or 0 for design in designs)

    @property
    def ordinal(self) -> bool:
        """Return whether the losses are the thresholds of one loss of ordered classes."""
        first, *others = (spec.levels for spec in self.declaration.losses)
        return first is not None and all(levels is first for levels in others)

    @property
    def counted(self) -> BoolArray:
        """Return the coordinates whose nonzeros make the support: what the user counts.

        Coordinates that bounds keep away from zero are among them; without a cardinality all
        vector and matrix variables are.
        """
        mask = np.zeros(self.layout.size, dtype=bool)
        for card in self.declaration.cards:
            for part in card.counted:
                mask[self.layout.rows(part.variable, part.rows)] = True
        if not self.declaration.cards:
            for i, spec in enumerate(self.layout.variables):
                if spec.shape and not self.layout.is_row(i):
                    mask[self.layout.rows(i)] = True
        return mask

    def support(self, chosen: IntArray) -> tuple[IntArray, tuple[Any, ...] | None]:
        indices, names = CompiledProblem.support(self, chosen)
        if names is None and self.layout.entries:  # the place of an entry says little
            names = tuple(self.layout.name(j) for j in chosen.tolist())
        return indices, names

    def answer(self, x: FloatArray) -> Answer:
        found = CompiledProblem.answer(self, x)
        if not self.layout.changes:
            return found
        plain = replace(self.layout, changes={})  # coefficients are those of the variables
        v = plain.join(self.layout.split(x))
        named: dict[str, float | FloatArray] = {
            plain.name(j): float(v[j]) if v.ndim == 1 else v[j].copy()
            for j in np.flatnonzero(v.reshape(len(v), -1).any(axis=1)).tolist()
        }
        return found._replace(coefficients=named)

    @property
    def at_hand(self) -> bool:
        return all(Access.MEMORY in term.design.access for term in self.form.terms)

    def free_bound(self, outcome: Outcome) -> float:
        """Return the best of the bounds that came with a run, recomputed on the user's data.

        That of the losses alone where time is up and the data take long to read.
        """
        from sparsemodel.certificates import free_bound

        late = too_late_to_read(term.design for term in self.form.terms)
        return free_bound(self.form, () if late else outcome.duals, outcome.promise).value

    def short_proof(self, effort: Effort) -> Callable[[FloatArray], ShortProof | None] | None:
        """Return what tries a branch and bound within a solve; None where none would be short."""
        return within_a_solve(self.form, effort)

    def search_bound(
        self, outcome: Outcome, backend: str, seconds: float
    ) -> tuple[Certificate | ShortProofResult, ...]:
        """Return what a short proof says; where that leaves a gap, what a certificate does.

        Nothing is compiled for it, which takes ten seconds once on a machine.
        """
        from sparsemodel.certificates.proving.compiling import compiling_nothing

        with compiling_nothing(), within(seconds) as left:
            short = when_read(self.form, outcome.x)
            if short is not None and short.closed and np.array_equal(short.x, outcome.x):
                return (short,)
            found = self._certified(outcome, backend, left.left)
        return (found,) if short is None else (found, short)

    def certify(
        self, outcome: Outcome, backend: str, *, time_limit: float | None = None
    ) -> Certificate:
        """Return the certificate of an outcome; None allows 60 seconds.

        It proves what a look at the bound does, also where that needs no certificate.
        """
        limit = 60.0 if time_limit is None else time_limit
        short = when_read(self.form, outcome.x) if self.at_hand else None
        return self._certified(outcome, backend, limit, -np.inf if short is None else short.bound)

    def _certified(
        self, outcome: Outcome, backend: str, seconds: float, known: float = -np.inf
    ) -> Certificate:
        """Return the best certificate, and keep it."""
        found = certified(
            self.form,
            outcome,
            backend,
            names=self.layout.names(),
            seconds=seconds,
            known=known,
            searched=self.at_hand,
        )
        last = self.certified
        if last is not None and _says_more(last, found):
            found = last
        self.certified = found
        return found

    def prove(self, outcome: Outcome, backend: str, asked: ProofRequest) -> Certificate:
        if as_sequence(self.form) is not None:  # its bound is exact, and needs no search
            return self.certify(outcome, backend, time_limit=asked.time_limit)
        names, last = self.layout.names(), self.certified
        return searched(self.form, outcome, backend, asked, names=names, last=last)

    def theory(self, outcome: Outcome) -> Theory:
        from sparsemodel.certificates.theory import theory

        return theory(
            self.form,
            outcome.x,
            outcome.backends,
            rescaled=not outcome.keeps_steps,
            combined=not outcome.keeps_predictions,
        )

    def summary(self, x: FloatArray) -> Summary:
        name = None if self.layout.changes else self.layout.name
        if self.ordinal:
            return summary_of_levels(self.form, x, self._declared_weights()[0], name)
        return summary_of(self.form, x, self._declared_weights()[0], name)

    def restricted(self, support: Any) -> Any:
        return restricted(self.form, self.layout, self.counted, support)

    def limited(self, by: Mapping[int, Cardinality]) -> Compiled:
        return replace(self, along=by)

    def with_ridge(self, factor: float) -> Compiled:
        if not np.any(self.form.ridge[self.form.sparsity.counted] > 0.0):
            raise ModelError(
                "ridges= multiplies the declared ridge, and none is declared; add "
                "sm.ridge(w, 1.0) to the objective."
            )
        form = replace(self.form, ridge=factor * self.form.ridge)
        return replace(self, form=form, _facts=None, _reduced=None, certified=None)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        check_reach(self.form)
        try:
            yield
        except UnboundedError as error:
            self._name_columns(error)
            raise

    def _name_columns(self, error: UnboundedError) -> None:
        """Add the columns that separate the data, or lead to infinity, to the error's message."""
        mine = getattr(error.form, "terms", None) is self.form.terms
        if not mine or self.layout.changes:
            return
        found, alone = separating_columns(self.form, error.x)
        error.form = None
        if found.size:
            names = [self.layout.name(j) for j in found.tolist()]
            error.args = (with_columns(str(error), names, alone=alone), *error.args[1:])

    def path(self, ks: Sequence[int], how: Search) -> PathResult:
        check_reach(self.form, min(ks))
        try:
            return beside_infeasible(self._at, ks, lambda feasible: self._path(feasible, how))
        except UnboundedError as error:
            self._name_columns(error)
            raise

    def _at(self, k: int) -> SparseRegression:
        """Return the form with a limit of a path."""
        return (
            self.form.with_limit(k)
            if self.along is None
            else replace(self.form, sparsity=self.along[k])
        )

    def _path(self, ks: Sequence[int], how: Search) -> PathResult:
        """Return the points of a path of which all are feasible."""
        if self.along is not None or not self.form.sparsity.plain:
            return limited_path(self.form, ks, self.along, how, self._known)
        facts, reduced = self.analysis()
        with reduced.restoring(self.form):
            found = solve_path(self.form, reduced, facts, sizes_to_follow(ks, self.form), how)
        if how.backend is None:  # else the points are of the unreduced form
            found = valued(self.form, reduced, found)
        return with_prices(found, self.form.sparsity, ks)

    def scores(self, points: Sequence[PathPoint], criterion: Criterion) -> FloatArray:
        if self.ordinal:
            raise ModelError(NO_LIKELIHOOD_OF_CLASSES.format(criterion.name))
        weights = self._declared_weights()
        scores = regression_criterion_values(self.form, points, criterion, weights)
        infeasible = [not np.isfinite(point.value) for point in points]
        return np.where(infeasible, np.inf, scores)

    def most_carried(self, criterion: Criterion) -> int | None:
        return most_carried(self.form, self._declared_weights(), criterion)

    def _declared_weights(self) -> list[DeclaredWeights]:
        """Return the weights of each term's observations as the user gave them."""
        return [
            DeclaredWeights(
                np.ones(spec.target.shape[0])
                if spec.observation_weights is None
                else spec.observation_weights,
                spec.weights_are,
            )
            for spec in self.declaration.losses
            if spec.scale > 0.0
        ]

    def observed(self) -> Observed:
        return RegressionObservations(
            self.form,
            self._known,
            self.along,
            self._declared_weights(),
            together=self.ordinal,
        )

    def renewed(self, declaration: Declaration) -> Compiled:
        """Compile the declaration of the same problem with other values of its parameters.

        What depends on the data alone is taken over where the data are the same; all else is found
        again.
        """
        form, layout = canonicalize(declaration, (self.declaration, self.form))
        known = self._known if form.terms is self.form.terms else {}
        return Compiled(declaration, form, layout, known)


def _says_more(last: Certificate, found: Certificate) -> bool:
    """Return whether an earlier certificate has a better bound for the same point of the same data.

    Data that changed in place since show in the objective.
    """
    same = np.array_equal(last.x, found.x) and last.value == found.value
    return same and last.bound > found.bound and last.claim.optimal
