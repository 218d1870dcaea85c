"""A declaration and what was compiled of it, renewed where a parameter has changed."""

from __future__ import annotations

from typing import Any, ClassVar

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.compiler.canonical.layout import VariableLayout
from sparsemodel.compiler.choice.dispatch import counts_in_own_units, make_plan
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.documents.notebook import as_notebook
from sparsemodel.interfaces import Backend, Form
from sparsemodel.interfaces.errors import NameHints
from sparsemodel.modelling.declared import Declared, Reading
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.parameters import Parameter
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.formulations.formulation import CompiledProblem
from sparsemodel.modelling.formulations.registered import formulation_of
from sparsemodel.modelling.formulations.watched_data import Watched, check_unchanged, watched
from sparsemodel.modelling.goal import Minimize
from sparsemodel.modelling.results.limits import check_limits_are_set, checked_ks, followed_values
from sparsemodel.modelling.results.overviews import problem_document
from sparsemodel.modelling.run_options import time_limit_of
from sparsemodel.threads import small_work

_SOLUTION = "its solution has it: problem.solve().{}"


class Declaration(NameHints):
    """What a problem is made of, and what is known of it before anything is solved."""

    _hints_by_name: ClassVar = {
        **dict.fromkeys(("objective", "fun", "opt_val"), "write .goal, or .value for the number"),
        **{name: _SOLUTION.format(name) for name in ("bound", "gap", "support", "summary")},
        **dict.fromkeys(("coef_", "params"), _SOLUTION.format("coefficients")),
        **dict.fromkeys(("solve_time", "solver_stats"), _SOLUTION.format("timings")),
        **dict.fromkeys(("cross_validate", "select"), "write .path(k, range(...)), then choose"),
        **dict.fromkeys(("fit", "run", "optimize", "minimize"), "write .solve()"),
        **dict.fromkeys(("is_dcp", "is_qp"), "write .explain(), which says what the problem is"),
        **dict.fromkeys(("report", "save"), "write .certify().save('report.html')"),
        "plot": "sparsemodel.reporting.plots draws solutions, paths and plans",
        "verify": "write certificates.verify(certificate, problem.form)",
    }

    def __init__(self, goal: Any, constraints: tuple[Any, ...]) -> None:
        self.declared: tuple[Any, tuple[Any, ...]] = (goal, constraints)
        """The goal and the constraints as they were handed over, CVXPY's among them."""
        self._declared = Declared(goal, constraints)
        self._kept: CompiledProblem | None = None
        self._versions: tuple[int, ...] = ()
        self._watched: tuple[Reading | None, tuple[Watched, ...]] = (None, ())

    @property
    def goal(self) -> Minimize:
        """Return what is minimised; a goal of CVXPY's in terms of this package."""
        return self._declared.reading.goal

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return the constraints, with what variables are declared to be among them."""
        return self._declared.reading.constraints

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return the variables in the order of their appearance.

        The last may be some that count: ``card(w) >= 7`` of entries with a least size brings in
        ``tally of w``.
        """
        return self._declared.reading.variables

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters; those inside CVXPY's expressions come first."""
        return self._declared.parameters

    @property
    def form(self) -> Form:
        """Return the canonical form, on the user's data, for the parameters' present values."""
        return self._compiled().form

    @property
    def layout(self) -> VariableLayout:
        """Return where the variables stand among the form's coordinates."""
        return self._compiled().layout

    @small_work()
    @rejects_unknown_arguments
    def plan(
        self,
        backend: str | Backend | None = None,
        time_limit: float | None = None,
        effort: Effort = "medium",
    ) -> Plan:
        """Return what :meth:`solve` would do, without solving.

        Parameters
        ----------
        backend, time_limit, effort
            As in :meth:`solve`.

        Returns
        -------
        Plan
            ``plan.stages``, ``plan.rejected``, ``plan.facts``; ``print`` shows the short form.

        Raises
        ------
        UnsupportedProblemError
            When the given backend, or every backend, cannot solve the problem.
        """
        compiled = self._compiled()
        facts, reduced = compiled.analysis(reductions=not counts_in_own_units(backend))
        return make_plan(compiled.form, reduced, facts, backend, time_limit_of(time_limit), effort)

    @small_work()
    @rejects_unknown_arguments
    def explain(self, backend: str | Backend | None = None, *, full: bool = False) -> str:
        """Describe what :meth:`solve` would run, why, at what cost, and what is proved about it.

        Parameters
        ----------
        backend
            Explain the plan with this backend, named as in :meth:`solve`.
        full
            Add every fact with its source, the reductions, the guarantees, and the reasons against
            every other backend.

        Returns
        -------
        str
            About 25 lines, as wide as the terminal; with ``full`` about a hundred.

        Examples
        --------
        >>> import numpy as np, sparsemodel as sm
        >>> w = sm.Variable(3, name="w")
        >>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [3.0, 0.1, -2.0]) + sm.ridge(w, 0.1))
        >>> text = sm.Problem(goal, sm.card(w) <= 1).explain()
        >>> text.splitlines()[0]
        'Problem: minimise squared_loss + ridge, at most 1 of 3 entries nonzero'
        """
        return self._declared.reading.introduced(self.plan(backend).text(full=full))

    @rejects_unknown_arguments
    def restricted(self, support: Any) -> Any:
        """Return the convex problem on a support as a CVXPY problem.

        Parameters
        ----------
        support
            Indices or names of counted entries, as in ``solution.support``. Entries that are not
            counted, such as an intercept, are always included.

        Returns
        -------
        cvxpy.Problem
            It has new variables, for the included entries only.

        Examples
        --------
        >>> import numpy as np, sparsemodel as sm
        >>> w = sm.Variable(4, name="w")
        >>> goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, [3.0, 0.1, -2.0, 0.0]))
        >>> problem = sm.Problem(goal, sm.card(w) <= 2)
        >>> reference = problem.restricted(problem.solve().support)
        >>> round(float(reference.solve()), 6) == round(problem.value, 6)
        True
        """
        return self._compiled().restricted(support)

    def _compiled(self, *, looking: bool = False) -> CompiledProblem:
        """Return the compiled problem, renewed where a parameter has changed.

        ``looking`` at the data too, which are refused where they have changed in place.
        """
        if looking:
            self._look_at_data()
        versions = tuple(parameter.version for parameter in self.parameters)
        if self._kept is None or versions != self._versions:
            self._kept = self._compile(self._kept)
            self._versions = versions
        return self._kept

    def _look_at_data(self) -> None:
        """Refuse data that have changed since the first look."""
        if self._declared.missing:
            return  # what is missing is said where it is needed
        reading, (seen, data) = self._declared.reading, self._watched
        if reading is seen:
            check_unchanged(data)
        else:
            self._watched = reading, watched(reading)

    def _compile(self, last: CompiledProblem | None) -> CompiledProblem:
        declared = self._declared.reading
        if declared.fewest is not None:
            inner: CompiledProblem = declared.fewest.problem(type(self))._compiled()
            return inner
        return formulation_of(declared).compile(declared, last)

    def _in_total(self, values: Any) -> tuple[CompiledProblem, list[int]]:
        """Return the problem, and the numbers of nonzeros to follow."""
        check_limits_are_set(self._declared)
        compiled = self._compiled(looking=True)
        return compiled, checked_ks(values, compiled.form.cardinality)

    def _along(self, k: Any, values: Any) -> tuple[CompiledProblem, list[int]]:
        """Return the problem without the values of ``k`` that it has now, and those to follow."""
        self._look_at_data()
        largest, several = followed_values(k, values, self._declared.reading)
        with k.assuming(largest):
            compiled = self._compile(self._kept)
        ks = checked_ks(values, compiled.form.cardinality, several=several)
        if not several:
            return compiled, ks
        limited = {}
        for value in ks:
            with k.assuming(float(value)):
                limited[value] = self._compile(compiled).form.cardinality
        return compiled.limited(limited), ks

    def __repr__(self) -> str:
        return repr(self._declared)

    def _repr_html_(self) -> str:
        if self._declared.missing:
            return as_notebook(problem_document(self._declared, (), ()))
        return as_notebook(problem_document(self.goal, self.constraints, self.variables))
