"""The fewest nonzeros with which a loss stays within a bound: one problem after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from sparsemodel.driver import FoundBound, LowerBound
from sparsemodel.interfaces import InfeasibleError, ModelError, NotSolvedError
from sparsemodel.modelling.expressions.comparisons import Constraint, Counted, at_most
from sparsemodel.modelling.expressions.norms import NormConstraint, norm
from sparsemodel.modelling.expressions.objective_terms import LossLimit, Objective, Price
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity, resolve
from sparsemodel.modelling.goal import minimize
from sparsemodel.modelling.run_options import unless_interrupted

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate

_ROUNDING = 1e-9, 1e-14
"""What a bound may be exceeded by: a share of it, and a share of the loss without features."""


@final
@dataclass(slots=True, eq=False)
class Fewest:
    """``minimize(card(w))`` with ``loss <= most``: the least loss for one ``k`` after another."""

    limit: LossLimit
    others: tuple[Constraint, ...]
    """What else holds, with ``card(w) <= k``."""
    k: Parameter
    counted: tuple[Counted, ...]
    _problem: Any = None
    _scale: float = 0.0
    """The loss without features."""

    def problem(self, made: Callable[[Any, tuple[Constraint, ...]], Any]) -> Any:
        """Return the problem of the least loss with at most ``k`` nonzeros."""
        if self._problem is None:
            self._problem = made(minimize(self.limit.loss), self.others)
        return self._problem

    @property
    def declaration(self) -> tuple[Objective, tuple[Constraint, ...]]:
        """Return the objective and the constraints of that problem."""
        return self.limit.loss, self.others

    def within(self, loss: float) -> bool:
        """Return whether a loss is within its bound, up to rounding."""
        return loss <= self._allowed()

    def _allowed(self) -> float:
        most = self._most()
        return most + _ROUNDING[0] * abs(most) + _ROUNDING[1] * abs(self._scale)

    def _most(self) -> float:
        return float(resolve(self.limit.most, "The bound on the loss"))

    def solve(self, problem: Any, ask: Callable[[Any], Any]) -> Any:
        """Return the solution with the fewest nonzeros that is found; ``ask`` solves for a ``k``.

        The number is doubled until the loss is within its bound, and the last step halved from
        there. How many it takes at least is looked for when it is asked: lower bounds on the loss
        of fewer nonzeros say it.
        """
        units = problem.form.cardinality.units + problem.form.cardinality.forced_units
        enough, best, few = units, cast("Any", None), dict[int, Any]()

        def tried(k: int) -> bool:
            nonlocal enough, best
            self.k.value = k
            try:
                found = ask(problem)
            except InfeasibleError:
                if k == units:
                    raise
                few[k] = None
                return False
            self._scale = found.value if k == 0 else self._scale
            if self.within(found.value):
                enough, best = min(k, self._nonzero()), found
                return True
            if found.stop.requested or k == units:
                raise (NotSolvedError if found.stop.requested else InfeasibleError)(
                    f"No model was found for which {self.limit!r} holds: the least loss with "
                    f"{k} nonzeros is {found.value:g}. Allow a larger one, or more time."
                )
            few[k] = found
            return False

        low, following = -1, 0
        while not tried(following):
            low, following = following, min(max(1, 2 * following), units)
        while enough - low > 1 and not best.stop.requested:
            middle = (low + enough) // 2
            low = low if tried(middle) else middle
        self.k.value = enough
        search = partial(_needed, self._allowed(), enough, sorted(few.items(), reverse=True))
        return self._reported(best, enough, LowerBound(0.0, enough == 0, search))

    def _nonzero(self) -> int:
        """Return how many units are not zero now, fewer than allowed where a loss is zero."""
        return sum(int(np.asarray(part.chosen).sum()) for part in self.counted)

    def decide(
        self, problem: Any, best: Any, ask: Callable[[Any, float], Certificate]
    ) -> tuple[Certificate, Any]:
        """Return the certificate that one nonzero less is too few, and the solution.

        ``ask`` certifies or proves for a ``k``, to the relative gap that decides whether the bound
        on the loss can hold. Where one less turns out to be enough, the next one is asked about.
        """
        k = int(best.value)
        try:
            while k > 0:
                self.k.value = k - 1
                try:
                    loss = unless_interrupted(problem.solve()).value
                except InfeasibleError:  # which is proved: what is certified is the loss with k
                    self.k.value = k
                    unless_interrupted(problem.solve())
                    proved = f"no point has fewer than {k} nonzeros; certified is the loss"
                    best = replace(best, notes=(*best.notes, proved))
                    return problem.certify(), replace(best, lower=LowerBound(float(k), True))
                excess = (loss - self._most()) / max(abs(loss), 1e-300)
                certificate = ask(problem, float(np.clip(0.9 * excess, 1e-9, 0.5)))
                found = problem.solution
                if not self.within(found.value):
                    least = best.bound if self.within(certificate.bound) else float(k)
                    return certificate, replace(best, lower=LowerBound(least, least >= k))
                k, best = k - 1, self._reported(found, k - 1, LowerBound(0.0, k == 1))
            self.k.value = 0
            return problem.certify(), best
        finally:
            self.k.value = k

    def _reported(self, found: Any, k: int, least: LowerBound) -> Any:
        note = f"{self.limit.loss!r} is {found.value:.6g}"
        return replace(found, value=float(k), lower=least, notes=(*found.notes, note))


def _needed(allowed: float, enough: int, few: list[tuple[int, Any | None]]) -> FoundBound:
    """Return how many nonzeros it takes at least, and whether ``enough`` are as few as that.

    ``few`` are the solutions with fewer, the most nonzeros first: where the lower bound on the loss
    of one is above what is allowed, or no point is feasible (None), it takes one more.
    """
    needed = next((k + 1 for k, found in few if found is None or found.bound > allowed), 0)
    return FoundBound(float(needed), needed >= enough)


def fewest_of(objective: Objective, constraints: tuple[Constraint, ...]) -> Fewest | None:
    """Return the search over ``k`` for a declaration that needs one, else None."""
    limits: list[Constraint] = [c for c in constraints if isinstance(c, LossLimit)]
    counts = [term for term in objective.terms if isinstance(term, Price)]
    if not counts or len(counts) < len(objective.terms):
        if limits:
            raise ModelError(
                f"{limits[0]!r} is understood where the number of nonzeros is minimised, "
                "sm.minimize(sm.card(w)). Beside another objective add the loss to it, with a "
                "weight; or write `sm.norm(A @ w - b) <= r`, a bound on a sum of squares."
            )
        return None
    norms = [c for c in constraints if isinstance(c, NormConstraint)]
    first = [*(c for c in norms if not c.bare), *norms][:1]
    limits = [*limits, *first][: max(len(limits), 1)]
    if not limits:
        return None  # a count under linear constraints, or no loss, which is said elsewhere
    if len(limits) > 1:
        raise ModelError("One loss is bounded where the number of nonzeros is minimised, not two.")
    if objective.constant or any(np.ndim(c.gamma) or c.gamma != 1.0 for c in counts):
        raise ModelError(
            "Beside a bound on a loss the number of nonzeros is minimised alone, "
            "sm.minimize(sm.card(w)). For the least costs make a budget a parameter, "
            "`costs @ sm.chosen(w) <= budget`, and minimise the loss for one value after another."
        )
    limit = _limit_of(limits[0])
    counted = tuple(term.counted for term in counts)
    k = Parameter(integer=True, name="k", value=sum(part.size for part in counted))
    kept: tuple[Constraint, ...] = tuple(c for c in constraints if c is not limits[0])
    kept = (*kept, at_most(counted, k))
    return Fewest(limit, kept, k, counted)


def _limit_of(constraint: Any) -> LossLimit:
    """Return a bound on a norm as one on a loss: on the sum of squares, or of sizes."""
    if isinstance(constraint, LossLimit):
        return constraint
    size, radius = norm(constraint.expression, constraint.order), constraint.radius
    if constraint.order == 1:
        return LossLimit(size.as_terms(), radius)
    if isinstance(radius, Quantity):
        raise ModelError("Bound the square by the parameter: `sm.norm(A @ w - b)**2 <= t`.")
    return LossLimit(size**2, radius**2)
