"""The problem: what the user declares, solves, certifies."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, final

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.driver import Outcome, RunOptions
from sparsemodel.interfaces import Backend, Callback, DataTypeError, NotSolvedError
from sparsemodel.interfaces.numeric import whole_number
from sparsemodel.modelling.expressions.foreign import taken
from sparsemodel.modelling.expressions.parameters import Parameter
from sparsemodel.modelling.formulations.declaration import Declaration
from sparsemodel.modelling.regression.fewest import Fewest
from sparsemodel.modelling.results.assembly import import_certificates, run_plan
from sparsemodel.modelling.results.failures import as_computation
from sparsemodel.modelling.results.limits import checked_ridges
from sparsemodel.modelling.results.path import Path, followed
from sparsemodel.modelling.results.predicting import Kind
from sparsemodel.modelling.results.proving import certify, enclosure, neighbourhood, prove
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.modelling.results.warm_start import given_start, warm_start
from sparsemodel.modelling.run_options import first, run_options, within
from sparsemodel.selection.path import Search

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate
    from sparsemodel.certificates.theory import Theory


@final
class Problem(Declaration):
    """A sparsity-constrained problem: an objective and its constraints.

    Parameters
    ----------
    goal
        ``sm.minimize(...)``, or ``cp.Minimize(...)`` over CVXPY variables and recognised atoms.
    constraints
        Comparisons such as ``sm.card(w) <= 20``, in a list or one by one.

    Raises
    ------
    ModelError, DataError, DataTypeError, InfeasibleError
        If it is not a valid declaration; the message says what to change.

    Notes
    -----
    What is known about the data is computed once. Arrays are held by reference. An error is raised
    if an entry has changed in place since: all are compared up to 65,536, 4096 of a larger array.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 8))
    >>> b = 2.0 * A[:, 1] - A[:, 5] + 0.1 * rng.standard_normal(60)
    >>> w = sm.Variable(8, name="w")
    >>> goal = sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 1e-3))
    >>> problem = sm.Problem(goal, sm.card(w) <= 2)
    >>> problem.solve().support
    array([1, 5])
    >>> problem.prove().relative_gap <= 1e-4
    True
    >>> problem.predict(np.eye(8)[:2]).round(1)
    array([0., 2.])
    """

    @rejects_unknown_arguments
    def __init__(self, goal: Any, *given: Any, constraints: Any = ()) -> None:
        super().__init__(goal, (*given, constraints))
        self._solved_for: tuple[int, ...] = ()
        self._outcome: Outcome | None = None
        self._solution: Solution | None = None
        if not any(parameter.missing for parameter in self.parameters):
            self._compiled()  # says at once what is wrong with the declaration

    @as_computation("Solving")
    def solve(
        self,
        backend: str | Backend | None = None,
        *,
        start: Any = None,
        effort: Effort = "medium",
        seed: int = 0,
        time_limit: float | None = None,
        max_iter: int | None = None,
        verbose: bool = False,
        callback: Callback | None = None,
        reductions: bool | None = None,
    ) -> Solution:
        """Solve with the chosen (or the given) backend and fill the variables' values.

        Parameters
        ----------
        backend
            None chooses automatically. Otherwise the name of a backend, a backend such as
            ``sm.backends.NHTP(tol=1e-10)``, or a plan such as ``"nhtp > local_search | omp"``
            (``>`` hands the point to the next stage, ``|`` starts from zero, and the best point is
            returned). It is never replaced by another backend.
        start
            The starting point: an array for the problem's one variable, a mapping from variables to
            arrays, or ``"value"`` for the variables' present values. None starts from zero. If
            the number of nonzeros is minimised, it is used wherever it satisfies the limit.
        effort
            How long a search continues without improvement. ``"high"`` also runs searches that are
            expected to take more than five seconds, and tries a short proof of squared losses.
        seed
            Seed of the backends that draw random numbers.
        time_limit
            Seconds after which the best point is returned; a search goes on longer than without.
        max_iter
            Iteration limit, in place of the backend's own.
        verbose
            Write to standard error what was compiled and what each stage did.
        callback
            Called with each :class:`~sparsemodel.interfaces.Iteration`; True ends the run. Its
            ``x`` is the iterate of the backend's paper in the declared coordinates, ``work`` what
            the objective has counted, ``state`` that of the backend.
        reductions
            Whether columns are scaled, an intercept is removed and many rows are combined before a
            backend runs. False gives it the declared numbers. None: True, but for backends whose
            steps are in the units of a paper (:meth:`~sparsemodel.interfaces.Backend.as_published`
            of those that take steps).

        Returns
        -------
        Solution
            Also kept as :attr:`solution`.

        Raises
        ------
        UnsupportedProblemError, InfeasibleError, UnboundedError, SeparableDataError
            When no backend applies, no point is feasible, or there is no minimiser.
        NotSolvedError
            When no feasible point was found, and it is not known whether there is one.

        Examples
        --------
        >>> import numpy as np, sparsemodel as sm
        >>> w = sm.Variable(3, name="w", names=["size", "age", "rooms"])
        >>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [3.0, 0.1, -2.0]) + sm.ridge(w, 0.1))
        >>> sm.Problem(goal, sm.card(w) <= 1).solve().support
        ['size']
        """
        began = time.perf_counter()
        options = run_options(seed, time_limit, max_iter, callback)
        if reductions is not None and not isinstance(reductions, bool):
            raise DataTypeError(f"reductions must be True, False or None, not {reductions!r}.")
        fewest = self._declared.reading.fewest
        with within(time_limit) as limit:
            if fewest is None:
                return self._solve(began, backend, start, options, effort, verbose, reductions)

            def least_loss(each: Problem) -> Solution:
                here = replace(options, time_limit=limit.limit, is_one_of_several=True)
                return each._solve(
                    began, backend, start, here, effort, verbose, reductions, fitting=True
                )

            return self._take(fewest.solve(fewest.problem(Problem), least_loss))

    def _take(self, solution: Solution, outcome: Outcome | None = None) -> Solution:
        """Make a solution that of this problem, and give the variables its values."""
        compiled = self._compiled()
        if outcome is not None:
            self._outcome = outcome
        self._solution, self._solved_for = solution, self._versions
        if solution.use is not None:
            self._declared.reading.fill(compiled.layout.split(solution.use.x))
        return solution

    def _fewer(self, fewest: Fewest, ask: Callable[[Problem, float], Certificate]) -> Certificate:
        """Return the certificate that fewer nonzeros will not do."""
        certificate, best = fewest.decide(fewest.problem(Problem), self._current(), ask)
        self._take(best)
        return certificate

    def _solve(
        self,
        began: float,
        backend: str | Backend | None,
        start: Any,
        options: RunOptions,
        effort: Effort,
        verbose: bool,
        reductions: bool | None,
        fitting: bool = False,
    ) -> Solution:
        compiled, first = self._compiled(looking=True), None
        if start is not None:
            first = given_start(start, compiled.form, compiled.layout, self.variables, fitting)
        elif self.parameters:
            first = warm_start(compiled.form, self._outcome)
        proof = compiled.short_proof(effort) if backend is None else None
        options = replace(
            options,
            start=first,
            enclosure=enclosure,
            proof=proof,
            neighbourhood=neighbourhood,
            proved_last=effort == "high",
        )
        outcome, found = run_plan(
            self._declared.reading,
            compiled,
            options,
            backend,
            effort,
            verbose=verbose,
            began=began,
            reductions=reductions,
        )
        return self._take(found, outcome)

    @as_computation("Following the path")
    def path(
        self,
        k: Any,
        values: Any = None,
        *,
        ridges: Any = None,
        sweeps: int = 1,
        effort: Effort = "medium",
        backend: str | Backend | None = None,
        time_limit: float | None = None,
    ) -> Path:
        """Solve for a range of k (and of ridges), starting each problem from its neighbours.

        Parameters
        ----------
        k
            The :class:`Parameter` in a limit, with its ``values``; or values of the total number of
            nonzeros (of edges, for a precision matrix). Other limits remain.
        values
            Whole numbers, for example ``range(1, 51)``. Those larger than what there is to count
            mean all of it, and are solved once.
        ridges
            Factors, at least 0, for the declared ridge; with ``sm.ridge(w, 1.0)`` in the objective
            they are its weights. Every ``k`` is solved with each of them.
            ``path.select()`` and ``path.cross_validate()`` choose ``k`` and the ridge together.
        sweeps
            How often solutions are improved from larger and from smaller ``k``.
        effort
            How long each ``k`` is searched on its own; with ``"low"`` it is not. With kinks in the
            loss, or with constraints other than bounds, this is slow: ``"medium"`` searches little.
        backend
            Solves each ``k``, from its neighbours and its own start. None: the path algorithm.
        time_limit
            Seconds after which the path ends; ``path.stop`` gives the reason.

        Returns
        -------
        Path
            ``path.objective``, ``path.support``, ``path.select("ebic")``,
            ``path.cross_validate()``, ``path.plot()``.
        """
        with within(time_limit):
            parameter = taken(k)
            if values is None and not isinstance(parameter, Parameter):
                parameter, (compiled, ks) = None, self._in_total(k)
            else:
                compiled, ks = self._along(parameter, values)
            how = Search(whole_number(sweeps, where="sweeps", minimum=0), effort, backend)
            factors = None if ridges is None else checked_ridges(ridges)
            return followed(self._declared.reading, compiled, ks, how, factors, parameter)

    @property
    def solution(self) -> Solution:
        """Return the last solution."""
        if self._solution is None:
            raise NotSolvedError("The problem has not been solved yet; call problem.solve().")
        return self._solution

    @rejects_unknown_arguments
    def predict(
        self,
        new: Any,
        kind: Kind = "response",
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Any:
        """Return the last solution's predictions for new data.

        Parameters
        ----------
        new, kind, offset, exposure
            As in :meth:`Solution.predict`.

        Returns
        -------
        ndarray of shape (n,), or (n, m) for several outputs
        """
        return self.solution.predict(new, kind, offset=offset, exposure=exposure)

    @property
    def value(self) -> float | None:
        """Return the objective at the solution; None before the first solve."""
        return None if self._solution is None else self._solution.value

    @property
    def status(self) -> str:
        """Return ``"not solved"``, or the status of the last solution."""
        return "not solved" if self._solution is None else self._solution.status

    @as_computation("Certifying")
    def certify(self, *, time_limit: float | None = None) -> Certificate:
        """Return a certificate: a lower bound on the objective of every feasible point.

        Solves first if needed. Bounds that cost one pass over the data are tried first. If they
        leave a gap, a short branch and bound follows, of about half a second; with at most 2000
        supports, or after ``exhaustive``, all supports are searched. If that leaves a gap, too, the
        convex relaxation is solved, which takes tenths of a second for a thousand rows and columns,
        seconds for ten thousand columns, and longer for nonsmooth losses with a small ridge.

        Parameters
        ----------
        time_limit
            Seconds for the search for a better bound; None means 60. A first solve takes at most
            half of them. The best bound so far is returned at the end, and on Ctrl-C.

        Returns
        -------
        Certificate
            ``claim``, ``value``, ``bound``, ``relative_gap``; ``save("report.html")`` writes a
            report, ``save("certificate.json")`` what :func:`sparsemodel.certificates.verify` reads.

        Raises
        ------
        BoundError
            When the bound is above the objective of the solution: an error in a loss or here.
        """
        with within(time_limit) as limit:
            import_certificates()
            fewest = self._declared.reading.fewest
            if fewest is not None:
                return self._fewer(fewest, lambda each, _: each.certify(time_limit=limit.limit))
            return certify(self._compiled(), *self._solved())

    @as_computation("Computing the constants")
    def theory(self, *, time_limit: float | None = None) -> Theory:
        """Return restricted constants and the theorems that apply; solves first if needed.

        Lower and upper bounds are computed for ``M_s`` and ``m_s``. Only regressions without
        constraints other than the cardinality are covered. :class:`Theory` says what is left out.

        Parameters
        ----------
        time_limit
            Seconds after which the bounds are no longer improved, and ``theory.complete`` is
            False; None for no limit.

        Returns
        -------
        Theory
            ``print(theory)`` lists each theorem, its statement, and whether its assumptions hold.

        Raises
        ------
        UnsupportedProblemError
            When the theorems do not cover the problem; every reason is listed.
        """
        with within(time_limit):
            return self._compiled().theory(self._solved()[0])

    @as_computation("Proving")
    def prove(
        self,
        *,
        gap: float = 1e-4,
        time_limit: float | None = 60.0,
        verbose: bool = False,
        resume: Certificate | str | os.PathLike[str] | None = None,
    ) -> Certificate:
        """Close the gap by branch and bound, or until the time limit; solves first if needed.

        If the search finds a better point, this becomes the solution.

        Parameters
        ----------
        gap
            Relative gap to reach, at least 1e-9. Ignored if the number of nonzeros is minimised.
        time_limit
            Seconds, at most half of them for a first solve; None for no limit. Compiling code, in
            the first proof after the installation, is not counted.
        verbose
            Write a table of time, nodes, objective and bound to standard error while it runs.
        resume
            The certificate of an earlier proof, or its ``.json`` file. Its nodes are evaluated
            again but not searched again; ``gap`` must not be smaller than the earlier one.

        Returns
        -------
        Certificate
            With the search tree, whose nodes ``verify`` evaluates again. After Ctrl-C during the
            search: the bound proved so far; ``certificate.search["ended"]`` is ``"interrupted"``.

        Raises
        ------
        UnsupportedProblemError
            When the problem cannot be proved by branching; every reason is listed.
        CertificateError
            When ``resume`` is about another problem, or contains no search to continue.
        """
        with within(time_limit) as limit:
            import_certificates()
            fewest = self._declared.reading.fewest
            if fewest is not None:
                how: Any = {"time_limit": limit.limit, "verbose": verbose, "resume": resume}
                return self._fewer(fewest, lambda each, enough: each.prove(gap=enough, **how))
            now = self._declared.reading, self._compiled(), *self._solved()
            proof, outcome, found = prove(*now, gap=gap, verbose=verbose, resume=resume)
        self._take(found, outcome)
        return proof

    def _solved(self) -> tuple[Outcome, Solution]:
        solution, fewest = self._current(), self._declared.reading.fewest
        if fewest is not None:
            each: Problem = fewest.problem(Problem)
            return each._solved()
        return cast("Outcome", self._outcome), solution

    def _current(self) -> Solution:
        """Return the solution for the parameters' present values."""
        self._compiled(looking=True)
        if self._solution is None or self._solved_for != self._versions:
            first(self.solve)
        return self.solution
