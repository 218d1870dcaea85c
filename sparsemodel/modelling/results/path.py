"""Solutions along k, and the choice among them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.documents.document import Document
from sparsemodel.documents.documented import Documented
from sparsemodel.interfaces import (
    DataTypeError,
    FloatArray,
    InfeasibleError,
    IntArray,
    ModelError,
    SparseModelError,
    Stop,
    UnboundedError,
)
from sparsemodel.interfaces.errors import NameHints
from sparsemodel.interfaces.numeric import shown
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.expressions.parameters import Parameter
from sparsemodel.modelling.formulations.formulation import CompiledProblem
from sparsemodel.modelling.results.failures import as_computation
from sparsemodel.modelling.results.fitted import NAMES_OF_PATHS, ModelContext
from sparsemodel.modelling.results.overviews import path_document
from sparsemodel.modelling.results.solution import PathSolution
from sparsemodel.modelling.run_options import within
from sparsemodel.numerics.budget import sharing
from sparsemodel.progress import counted
from sparsemodel.selection.choice import at_the_end, best_carried
from sparsemodel.selection.criteria import Criterion, CriterionFunction
from sparsemodel.selection.cross_validation import CrossValidation, cross_validate
from sparsemodel.selection.path import PathResult, Search
from sparsemodel.selection.stability import selection_frequencies


@final
class Path(Documented, NameHints):
    """Solutions for a range of k, and of ridges; made by :meth:`Problem.path`.

    Attributes
    ----------
    k
        The values, sorted.
    ridges
        Factors of the declared ridge, sorted; None if only the declared ridge is used.
    objective
        The objective at each ``k``, shape ``(len(k),)``; it does not increase with ``k``. With
        ``ridges`` the shape is ``(len(k), len(ridges))``. It is infinite where no point with as few
        nonzeros satisfies the constraints, or none was found.
    support
        The support at each: names, or indices if unnamed; pairs for the edges of a precision
        matrix. With ``ridges`` a list of them, one for each ridge, at every ``k``.
    passes
        The cost of the path in passes over the data.
    stop
        Why it ended: ``Stop.CONVERGED`` if all ``k`` are solved, otherwise the time limit or
        Ctrl-C. The path then contains the values of ``k`` that were finished.
    parameter
        The parameter that takes the values ``k``; None if they limit the total number of nonzeros.
    refused
        The errors of the ``k`` that have no solution: separable data, constraints that cannot hold.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(4, name="w")
    >>> goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, [3.0, 1.0, -2.0, 0.0]))
    >>> path = sm.Problem(goal, sm.card(w) <= 4).path(range(4))
    >>> path.objective
    array([1.75 , 0.625, 0.125, 0.   ])
    >>> path.at(2).support
    array([0, 2])
    """

    _hints_by_name = NAMES_OF_PATHS

    def __init__(
        self,
        reading: Reading,
        compiled: Sequence[CompiledProblem],
        followed: Sequence[PathResult],
        how: Search,
        ridges: FloatArray | None = None,
        parameter: Parameter | None = None,
        refused: Mapping[int, SparseModelError] | None = None,
    ) -> None:
        # Time may have ended before all k were there for the last ridges.
        self._points = list(zip(*(one.points for one in followed), strict=ridges is None))
        self._reading, self._problems, self._how = reading, compiled, how
        self._compiled = compiled[0]
        self.ridges, self.parameter = ridges, parameter
        self.refused: dict[int, SparseModelError] = dict(refused or {})
        self.passes: float = sum(one.passes for one in followed)
        self.stop: Stop = max((one.stop for one in followed), key=_requested)
        self.k: IntArray = np.array([row[0].k for row in self._points])
        self.objective: FloatArray = self._shaped([[p.value for p in row] for row in self._points])
        supports = [[self._compiled.answer(p.x).support for p in row] for row in self._points]
        self.support: list[Any] = [row[0] for row in supports] if ridges is None else supports

    def _shaped(self, values: Any) -> FloatArray:
        """Return what there is for each k and ridge, without the axis of ridges if none vary."""
        return np.asarray(values, dtype=np.float64)[..., 0 if self.ridges is None else slice(None)]

    @property
    def unit(self) -> str:
        """Return what ``k`` counts, in words."""
        return self._compiled.unit

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[PathSolution]:
        """Yield the solution for each k, and for each ridge where there are several."""
        for k in self.k.tolist():
            for ridge in [None] if self.ridges is None else self.ridges.tolist():
                yield self.at(k, ridge)

    def __getitem__(self, k: Any) -> NoReturn:
        raise DataTypeError(
            "path[...] could be about k or about a position: path.at(k) is the solution with "
            "that k, and list(path) has all solutions in order."
        )

    def __contains__(self, k: Any) -> NoReturn:
        raise DataTypeError("`in` could be about k or about solutions; write `k in path.k`.")

    def __repr__(self) -> str:
        early = f", stopped early: {self.stop.value}" if self.stop.requested else ""
        ridges = "" if self.ridges is None else ", ".join(f"{r:g}" for r in self.ridges)
        along = ridges and f"ridges {ridges}, "
        return (
            f"Path(k = {self.k[0]} .. {self.k[-1]}, {along}objective {self.objective.max():.6g} .. "
            f"{self.objective.min():.6g}{early})"
        )

    def document(self) -> Document:
        """Return the objectives as a table: a row for each k, a column for each ridge."""
        return path_document(self.k.tolist(), self.ridges, self.objective, self.support)

    @rejects_unknown_arguments
    def at(self, k: int, ridge: float | None = None) -> PathSolution:
        """Return the solution for a ``k`` of the path, and one of its ridges.

        Parameters
        ----------
        k, ridge
            One of ``path.k``, and one of ``path.ridges`` where the path has several.

        Returns
        -------
        PathSolution
            With ``support``, ``coefficients`` and ``predict``.

        Raises
        ------
        ModelError
            When they are not on the path.
        """
        rows = np.flatnonzero(self.k == k) if np.isscalar(k) else self.k[:0]
        if not rows.size:
            raise ModelError(f"k = {shown(k)} is not on the path, whose k are {self.k.tolist()}.")
        column = 0
        if self.ridges is not None:
            columns = np.flatnonzero(self.ridges == ridge) if np.isscalar(ridge) else self.k[:0]
            if not columns.size:
                raise ModelError(
                    f"ridge = {shown(ridge)} is not on the path, whose ridges are "
                    f"{self.ridges.tolist()}."
                )
            column = int(columns[0])
        elif ridge is not None:
            raise ModelError("This path has one ridge, the declared one; leave ridge= out.")
        scores = self.objective if self.ridges is None else self.objective[:, [column]]
        return self._chosen((int(rows[0]), column), "hand", scores)

    @as_computation("Choosing")
    def select(
        self,
        criterion: str | CriterionFunction = "ebic",
        *,
        gamma: float | None = None,
        p: int | None = None,
    ) -> PathSolution:
        r"""Return the solution that minimises an information criterion.

        For a regression ``k`` is at most ``n / (log p log log n)``
        (:func:`sparsemodel.selection.criteria.carried`), because a larger model can fit the data
        exactly, and its likelihood is then meaningless. A warning is given if the choice is at an
        end of the path, or the largest allowed ``k``.

        Parameters
        ----------
        criterion
            ``"aic"``, ``"aicc"``, ``"bic"``, ``"ebic"``, ``"gic"`` or ``"mbic"``; see
            :mod:`sparsemodel.selection.criteria` for the formulas, and
            :mod:`sparsemodel.selection.precision_matrices` for those of precision matrices. Or a
            function of your own: it is given ``m`` with ``m.minus_twice_log``, ``m.n``, ``m.p``,
            ``m.k`` and ``m.d`` (:class:`~sparsemodel.selection.criteria.Candidate`), and returns a
            number, of which the smallest is chosen.
        gamma
            The parameter of EBIC, at least 0 (which is BIC). None means 1, and 1/2 for precision
            matrices.
        p
            How many columns (groups, rows or edges, where these are counted) there were before some
            were left out by a look at the target, a screening, say. EBIC, mBIC, GIC and the largest
            ``k`` depend on it. None means those of the problem.

        Returns
        -------
        PathSolution
            ``scores`` are the values of the criterion at all ``k`` (and ridges); smaller is better.

        Raises
        ------
        ModelError
            For losses that are not likelihoods (use :meth:`cross_validate`), for a covariance
            matrix with an unknown number of observations, and for several ridges with a loss
            without second derivatives.

        Notes
        -----
        With several ridges, ``d`` is the effective number of coefficients,
        :math:`d = \operatorname{tr}(H (H + R)^{-1})`; see
        :func:`sparsemodel.selection.regressions.regression_criterion_values`.
        """
        rule = Criterion(criterion, gamma, shrunk=self.ridges is not None, columns=p)
        points = zip(*self._points, strict=True)
        columns = [one.scores(each, rule) for one, each in zip(self._problems, points, strict=True)]
        scores = np.stack(columns, axis=1)
        most = self._compiled.most_carried(rule)
        place = best_carried(scores, self.k.tolist(), most)
        self._warn_at_the_end(place[0], rule.name, most)
        return self._chosen(place, rule.name, self._shaped(scores))

    @as_computation("Cross-validating")
    def cross_validate(
        self,
        *,
        folds: int | Any = 5,
        one_standard_error: bool = False,
        seed: int = 0,
        time_limit: float | None = None,
    ) -> PathSolution:
        """Return the solution whose k predicts held-out observations best.

        Every fold is solved with its training observations only. If 0 is on the path, it is chosen
        unless a t test at 5 % over the observations finds that held-out losses decrease from there
        towards the candidates of the largest ridge. If folds are given or the loss couples
        observations, a paired t test over the folds compares the best candidate with 0.

        Parameters
        ----------
        folds
            The number of folds, or an array with the fold of each observation.
        one_standard_error
            True chooses the smallest k within one standard error of the best. Such a model is
            smaller and usually predicts less well.
        seed
            Seed of the random folds.
        time_limit
            Seconds after which it ends; each fold gets an equal share of what is left. A ``k`` that
            some fold did not reach is not chosen.

        Returns
        -------
        PathSolution
            ``scores`` are the mean held-out losses at all ``k`` (and ridges), nan where a fold did
            not reach them; ``stop`` says whether the time limit ended it, or Ctrl-C: then folds
            that were finished count, if there are two.

        Raises
        ------
        NotSolvedError
            When the time is not enough for two values of ``k`` in every fold.
        """
        found = self.cross_validation(
            folds=folds, one_standard_error=one_standard_error, seed=seed, time_limit=time_limit
        )
        rule = "cross-validation" + (" (one standard error)" if one_standard_error else "")
        self._warn_at_the_end(found.place[0], "cross-validation", None)
        if found.refused is not None:
            warnings.warn(f"{found.refused} The means are in .scores.", stacklevel=4)
        return replace(self._chosen(found.place, rule, found.mean), stop=found.stop)

    @as_computation("Cross-validating")
    def cross_validation(
        self,
        *,
        folds: int | Any = 5,
        one_standard_error: bool = False,
        seed: int = 0,
        time_limit: float | None = None,
    ) -> CrossValidation:
        """Return the held-out losses behind :meth:`cross_validate`.

        Parameters
        ----------
        folds, one_standard_error, seed, time_limit
            As there.

        Returns
        -------
        CrossValidation
            ``mean`` for each ``k`` (and ridge), and ``losses``, a row for each fold.
        """
        first = self._first_feasible
        with within(time_limit):
            found = cross_validate(
                [problem.observed() for problem in self._problems],
                self.k[first:].tolist(),
                self._how,
                folds=folds,
                one_standard_error=one_standard_error,
                seed=seed,
            )
        row, column = found.place
        missing = ((0, 0), (first, 0), (0, 0))
        losses = np.pad(found.losses, missing, constant_values=np.nan)
        return replace(found, ks=self.k, losses=self._shaped(losses), place=(row + first, column))

    @as_computation("Drawing halves")
    def stability(
        self, *, resamples: int = 50, seed: int = 0, time_limit: float | None = None
    ) -> FloatArray:
        """Return how often each coordinate is selected for each k on random halves of the data.

        Stability selection (Meinshausen and Buehlmann, JRSS B 2010).

        Parameters
        ----------
        resamples
            The number of random halves.
        seed
            Seed of the halves.
        time_limit
            Seconds after which it ends; each half gets an equal share of what is left.

        Returns
        -------
        ndarray
            Shares between 0 and 1, shape ``(len(path), p)``, for the problem's coordinates in
            order; with ``ridges`` for the smallest of them. They are shares of the halves that
            reached ``k`` in time, nan where none did. After Ctrl-C they are those of the halves
            that were finished, with a warning that says how many.

        Raises
        ------
        NotSolvedError
            When the time is not enough for two values of ``k`` in one of the halves.
        """
        observed, how, first = self._compiled.observed(), self._how, self._first_feasible
        ks = self.k[first:].tolist()
        with within(time_limit):
            shares = selection_frequencies(observed, ks, how, resamples=resamples, seed=seed)
        return np.pad(shares, ((first, 0), (0, 0)), constant_values=np.nan)

    @property
    def _first_feasible(self) -> int:
        """Return the place of the first ``k`` with a feasible point."""
        return int(np.argmax(np.isfinite(self.objective.reshape(len(self.k), -1)).any(axis=1)))

    def _warn_at_the_end(self, place: int, by: str, most: int | None) -> None:
        sparsity = self._compiled.form.cardinality
        units = sparsity.units + sparsity.forced_units
        said = at_the_end(self.k.tolist(), place, by=by, units=units, most=most)
        if said is not None and not self.stop.requested:
            warnings.warn(said, stacklevel=5)  # past what `asked` puts around methods

    def _chosen(self, place: tuple[int, int], rule: str, scores: FloatArray) -> PathSolution:
        row, column = place
        point = self._points[row][column]
        answer = self._compiled.answer(point.x)
        return PathSolution(
            k=point.k,
            value=point.value,
            support=answer.support,
            coefficients=answer.coefficients,
            values=answer.values,
            chosen_by=rule,
            scores=scores,
            ridge=None if self.ridges is None else float(self.ridges[column]),
            use=ModelContext.of(self._reading, self._problems[column], point.x),
        )

    @rejects_unknown_arguments
    def plot(self, axes: Any = None, *, chosen: PathSolution | None = None) -> Any:
        """Draw the objective against k, and the scores behind a choice; a line for each ridge.

        Parameters
        ----------
        axes
            Matplotlib's axes to draw on; None for a new figure.
        chosen
            What :meth:`select` or :meth:`cross_validate` returned, to be marked.

        Returns
        -------
        Matplotlib's axes
        """
        from sparsemodel.reporting.plots import path

        return path(self, chosen=chosen, axes=axes)


def followed(
    reading: Reading,
    compiled: CompiledProblem,
    ks: Sequence[int],
    how: Search,
    ridges: FloatArray | None,
    parameter: Parameter | None,
) -> Path:
    """Return the path along the sorted ``ks`` with each ridge, each with a share of the time.

    A ``k`` without a solution leaves the others alone, with a warning.
    """
    refused: dict[int, SparseModelError] = {}
    problems = [compiled]
    if ridges is None:
        found = [_with_solutions(compiled, ks, how, refused)]
    else:
        problems = [compiled.with_ridge(float(factor)) for factor in ridges]
        found = []
        for place, problem in enumerate(counted(problems, "ridge")):
            with sharing(len(problems) - place):
                near = found[-1].points if found else ()
                left = [k for k in ks if k not in refused]
                found.append(_with_solutions(problem, left, replace(how, near=near), refused))
            if found[-1].stop is Stop.INTERRUPTED:
                break
        ridges = ridges[: len(found)]
        kept = [[p for p in one.points if p.k not in refused] for one in found]
        found = [one._replace(points=p) for one, p in zip(found, kept, strict=True)]
    if refused:
        ended = max(refused)
        listed = ", ".join(map(str, sorted(refused)))
        warnings.warn(f"k = {listed}: no solution. {refused[ended]}", stacklevel=5)
    return Path(reading, problems[: len(found)], found, how, ridges, parameter, refused)


_NO_SOLUTION = (InfeasibleError, UnboundedError)


def _with_solutions(
    problem: CompiledProblem,
    ks: Sequence[int],
    how: Search,
    refused: dict[int, SparseModelError],
) -> PathResult:
    """Return the path along the ``ks`` that have a solution, and note the others.

    Where the whole path is refused its halves are followed, then theirs: of ``m`` values, a few of
    which have no solution, that is the work of about ``log2(m)`` paths.

    Raises
    ------
    InfeasibleError, UnboundedError
        When none has one.
    """
    try:
        return problem.path(ks, how)
    except _NO_SOLUTION as error:
        if len(ks) == 1:
            refused[ks[0]] = error
            raise
        last = error
    found: PathResult | None = None
    half = len(ks) // 2
    for part in (ks[:half], ks[half:]):
        try:
            one = _with_solutions(problem, part, how, refused)
        except _NO_SOLUTION as error:
            last = error
            continue
        if found is None:
            found = one
        else:
            points, stop = found.points + one.points, max(found.stop, one.stop, key=_requested)
            found = PathResult(points, found.passes + one.passes, stop)
        if one.stop.requested:
            break
    if found is None:
        raise last
    return found


def _requested(stop: Stop) -> bool:
    return stop.requested
