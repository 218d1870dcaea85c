"""Mixed-integer linear programs in HiGHS, for objectives without curvature."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    Form,
    IntArray,
    Iteration,
    Objective,
    Point,
    Result,
    Role,
    SparseRegression,
    Stop,
    check_options,
    priced,
)
from sparsemodel.numerics import satisfied
from sparsemodel.numerics.linear_programs.formulation import (
    Choice,
    Relaxation,
    has_bounded_minimum,
    objections,
)

_EQUAL = 1e-9
"""Share of the objective by which a bound in floating point may differ from what it bounds: the
feasibility tolerance that HiGHS is given."""


@final
@dataclass(frozen=True, slots=True)
class MILP(Backend):
    r"""Write the problem as a mixed-integer linear program and solve it by branch and cut (HiGHS).

    For objectives that are linear or piecewise linear: linear terms, absolute, quantile and hinge
    losses, 1-norms. A unit that may be nonzero has a number 0 or 1, which bounds its coordinates:

    .. math:: \mathrm{lower}_j z_g \le x_j \le \mathrm{upper}_j z_g, \qquad
              \sum_g z_g \le k, \qquad z_g \in \{0, 1\},

    with bounds that the constraints imply, or the objective of the start. Every solution is only a
    proposal of a support: the objective is minimised on it as by any other backend. Limits on
    Euclidean norms are kept by tangents (outer approximation): each program adds those at its own
    solution and at the minimiser on its support, and excludes that support.

    Parameters
    ----------
    max_iter
        How many programs are solved at most. One does, unless norms are limited.
    max_nodes
        Nodes of one program at most, after which the best point so far is the result.

    Raises
    ------
    UnsupportedProblemError
        Where a loss has curvature, or no bound of a counted coefficient follows.

    Notes
    -----
    The result is the best one up to the tolerances of floating point; ``certify()`` and ``prove()``
    evaluate bounds again with directed rounding.

    No literal mode: what is published is the formulation.

    References
    ----------
    Duran and Grossmann, *An outer-approximation algorithm for a class of mixed-integer nonlinear
    programs*, Math. Program. 36 (1986), for the tangents. Huangfu and Hall, *Parallelizing the dual
    revised simplex method*, Math. Program. Comput. 10 (2018), for HiGHS.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w, returns = sm.Variable(4), np.array([0.1, 0.3, -0.2, 0.2])
    >>> problem = sm.Problem(
    ...     sm.minimize(-(returns @ w)), [w.sum() == 1, w >= 0, w <= 0.75, sm.card(w) <= 2]
    ... )
    >>> problem.solve("milp").support
    array([1, 3])
    """

    max_iter: int = 1000
    max_nodes: int = 20_000

    name: ClassVar[str] = "milp"
    reference: ClassVar[str] = "mixed-integer linear programming, HiGHS"
    guarantee: ClassVar[str] = (
        "the best of all supports up to the tolerances of HiGHS; prove() proves it"
    )
    always: ClassVar[str] = "the best of all supports, up to the tolerances of HiGHS"
    purpose: ClassVar[str] = "solves the problem as a mixed-integer linear program"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.LINEAR})
    capabilities: ClassVar[Capabilities] = Capabilities(
        smooth=False,
        matrix=False,
        box=True,
        region=True,
        price=True,
        limits=True,
        costs=True,
        order=True,
    )

    def __post_init__(self) -> None:
        check_options(self)

    def with_patience(self, factor: float) -> MILP:
        return replace(self, max_nodes=max(1, int(factor * self.max_nodes)))

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        form = cast("SparseRegression", form)
        reasons = objections(form)
        if reasons or has_bounded_minimum(form):
            return reasons
        return ("needs bounds of the coefficients, and none follow from what is declared",)

    def solve(self, objective: Objective, context: Context) -> Result:
        run = _Run(objective, context, self)
        limit = self.max_iter if context.limits.max_iter is None else context.limits.max_iter
        stop = Stop.CONVERGED
        try:
            stop = run.solve(limit)
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        return Result(run.best, stop, run.iterations, tuple(run.history), notes=run.notes)


@final
class _Run:
    """One run: the program with its cuts, and the best point so far."""

    def __init__(self, objective: Objective, context: Context, backend: MILP) -> None:
        self._objective, self._context, self._backend = objective, context, backend
        self._form = cast("SparseRegression", objective.form)
        self._began = time.perf_counter()
        self._start = self.best = context.first_point(objective)
        self._value = priced(objective, self.best)
        self.iterations = 0
        self.history: list[Iteration] = []
        self.notes: tuple[str, ...] = ()

    def solve(self, limit: int) -> Stop:
        """Solve programs until one has nothing better, and return why that ended."""
        deadline = self._context.limits.deadline
        if limit <= 0:
            return Stop.MAX_ITERATIONS
        if self._context.limits.expired():
            return Stop.TIME_LIMIT
        program = self._program(deadline)
        if program is None:
            return Stop.TIME_LIMIT
        while True:
            proposal = program.run(deadline)
            self.iterations += 1
            if proposal.units is not None and proposal.x is not None:
                point = self._confirmed(program, proposal.units)
                if self._reported(point):
                    return Stop.CALLBACK
            if proposal.status == "interrupted":
                return Stop.INTERRUPTED
            if proposal.status == "limit" and not self._context.limits.expired():
                self.notes = (self._words(proposal.bound),)
                return Stop.CONVERGED
            if proposal.status == "limit":
                return Stop.TIME_LIMIT
            if proposal.units is None or proposal.x is None or self._is_best(proposal.bound):
                return Stop.CONVERGED
            if self.iterations >= limit:
                return Stop.MAX_ITERATIONS
            if self._context.limits.expired():
                return Stop.TIME_LIMIT
            program.cut_norms(proposal.x)
            program.cut_norms(point.x)
            program.exclude(proposal.units, subsets=not self._form.fewer)

    def _program(self, deadline: float | None) -> Choice | None:
        """Return the program; None where there is no time for the bounds of its coefficients."""
        form = self._form
        relaxed = Relaxation.of(form)
        low, high = relaxed.implied()
        loose = relaxed.loose(low, high)
        if loose.size:
            if not satisfied(form, self._start.x):
                return None
            low, high = relaxed.bounded(loose, low, high, self._value, deadline)
            if relaxed.loose(low, high).size:
                return None
        program = Choice(relaxed, low, high, self._backend.max_nodes)
        if satisfied(form, self._start.x):
            program.begin_at(form.sparsity.active_units(self._start.x))
        return program

    def _words(self, bound: float) -> str:
        """Return what HiGHS has left open where its nodes are used up."""
        left = self._value - bound
        return (
            f"HiGHS ended after {self._backend.max_nodes} nodes; by its account nothing is lower "
            f"by more than {left:.3g}: effort='high' or sm.backends.MILP(max_nodes=...) goes on"
        )

    def _is_best(self, bound: float) -> bool:
        return self._value <= bound + _EQUAL * max(abs(bound), abs(self._value))

    def _confirmed(self, program: Choice, units: IntArray) -> Point:
        """Return the minimiser on a support: that of the objective, or a vertex of the program."""
        objective, sparsity = self._objective, self._form.sparsity
        nowhere = objective.origin()
        if not sparsity.within(units):
            return replace(nowhere, value=np.inf)
        support, near = sparsity.coordinates(units), self._start
        vertex = program.vertex(units)
        if vertex is not None and satisfied(self._form, vertex):
            near = objective.point(support, vertex[support])
        point = self._context.restricted(objective, support, near)
        if near is not self._start and not priced(objective, point) <= priced(objective, near):
            return near
        return point

    def _reported(self, point: Point) -> bool:
        """Take a point where it is better, tell of it, and return whether that ends the run."""
        value = priced(self._objective, point)
        if not np.isfinite(value):
            return False
        if value < self._value:
            self.best, self._value = point, value
        event = Iteration(
            backend=self._backend.name,
            index=self.iterations,
            value=value,
            best=self._value,
            support=point.support,
            residual=float("nan"),
            elapsed=time.perf_counter() - self._began,
            values=point.x[point.support],
        )
        self.history.append(event)
        listen = self._context.on_iterate
        return listen is not None and listen(event)
