"""What the compiler made of a problem, kept from one solve to the next."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np

from sparsemodel.compiler import (
    Declaration,
    Facts,
    Layout,
    Reduced,
    canonicalize,
    reduce_form,
)
from sparsemodel.driver import Outcome
from sparsemodel.interfaces import BoolArray, IntArray, Role, SparseRegression
from sparsemodel.registry import usable_backends

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate
    from sparsemodel.certificates.theory import Theory


@final
@dataclass(slots=True)
class Compiled:
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

    @classmethod
    def of(cls, declaration: Declaration) -> Compiled:
        """Compile a declaration."""
        form, layout = canonicalize(declaration)
        return cls(declaration, form, layout)

    @np.errstate(all="ignore")  # what overflows is told from the result
    def analysis(self) -> tuple[Facts, Reduced]:
        """Return the facts about the data and the reduced form."""
        if self._facts is None or self._reduced is None:
            facts = Facts(self.form, self._known)
            facts.structure()
            self._reduced = reduce_form(self.form, facts)
            self._facts = facts
        return self._facts, self._reduced

    @property
    def analysed(self) -> float:
        """Return the passes over the data that the analysis has cost so far."""
        return 0.0 if self._facts is None else self._facts.passes

    def support(self, chosen: IntArray) -> tuple[IntArray, tuple[str, ...] | None]:
        """Return the counted coordinates as indices within their variable, and their names."""
        counted = np.flatnonzero(self.counted)
        first = int(counted[0]) if counted.size else 0
        owner = max((start for start in self.layout.starts if start <= first), default=0)
        if not any(spec.names is not None for spec in self.layout.variables):
            return chosen - owner, None
        return chosen - owner, tuple(self.layout.name(j) for j in chosen.tolist())

    @property
    def counted(self) -> BoolArray:
        """Return the coordinates whose nonzeros make the support: what the user counts.

        Coordinates that bounds keep away from zero are among them; without a cardinality all
        vector and matrix variables are.
        """
        mask = np.zeros(self.layout.size, dtype=bool)
        for card in self.declaration.cards:
            mask[self.layout.rows(card.variable, card.rows)] = True
        if not self.declaration.cards:
            for i, spec in enumerate(self.layout.variables):
                if spec.shape and not self.layout.is_row(i):
                    mask[self.layout.rows(i)] = True
        return mask

    def free_bound(self, outcome: Outcome) -> float:
        """Return the best of the bounds that came with a run, recomputed on the user's data."""
        from sparsemodel.certificates import free_bound
        from sparsemodel.certificates.arithmetic.products import check_adjoint

        for term in self.form.terms:  # a bound rests on products with the adjoint
            check_adjoint(term.design)
        return free_bound(self.form, outcome.duals).value

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """Return what is worth knowing about an outcome beside what the backends noted."""
        return ()

    def certify(
        self, outcome: Outcome, backend: str, *, time_limit: float | None = None
    ) -> Certificate:
        """Return the certificate of an outcome; None allows 60 seconds.

        Where there are few supports, or the backend tried all of them, a bound that leaves a gap
        is followed by a search over the supports: what was enumerated gets a proof.
        """
        from sparsemodel.certificates import certify
        from sparsemodel.certificates.proving.few_supports import few_supports, settled

        limit = 60.0 if time_limit is None else time_limit
        deadline = time.perf_counter() + limit
        names = self.layout.names()
        found = certify(
            self.form,
            outcome.x,
            names=names,
            duals=outcome.duals,
            backend=backend,
            history=outcome.history,
            time_limit=limit,
        )
        if few_supports(self.form.sparsity) or _enumerated(backend):
            found = settled(self.form, found, names=names, deadline=deadline)
        self.certified = found
        return found

    def theory(self, outcome: Outcome) -> Theory:
        """Return restricted constants and the theorems that apply."""
        from sparsemodel.certificates.theory import theory

        return theory(self.form, outcome.x)

    def renewed(self, declaration: Declaration) -> Compiled:
        """Compile the declaration of the same problem with other values of its parameters.

        What depends on the data alone is taken over where the data are the same; all else is found
        again.
        """
        form, layout = canonicalize(declaration, (self.declaration, self.form))
        known = self._known if form.terms is self.form.terms else {}
        return Compiled(declaration, form, layout, known)


def _enumerated(backends: str) -> bool:
    """Return whether one of the backends that ran tries every support."""
    known = dict(usable_backends())
    ran = [known[name] for name in backends.split(" + ") if name in known]
    return any(Role.ENUMERATION in backend.roles for backend in ran)


__all__ = ["Compiled"]
