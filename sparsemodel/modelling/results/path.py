"""Solutions along k, and the choice among them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.documents import as_notebook
from sparsemodel.interfaces import (
    Cardinality,
    FloatArray,
    InfeasibleError,
    IntArray,
    ModelError,
    Stop,
)
from sparsemodel.modelling.expressions.parameters import Parameter
from sparsemodel.modelling.expressions.values import whole_number
from sparsemodel.modelling.formulations.formulation import CompiledProblem
from sparsemodel.modelling.results.shown import path_document
from sparsemodel.selection import (
    CrossValidation,
    Followed,
    at_the_end,
    best_carried,
    cross_validate,
    selection_frequencies,
)
from sparsemodel.threads import small_work


@final
@dataclass(frozen=True, slots=True, eq=False)
class PathSolution:
    """The solution for one k of a path, chosen by a rule."""

    k: int
    value: float
    """Objective."""
    support: Any
    """Names of the nonzero counted entries, or their indices if unnamed."""
    coefficients: Mapping[str, float | FloatArray]
    """Nonzero coefficients by name, uncounted ones included."""
    values: Mapping[str, Any]
    """Each variable's value by its label."""
    chosen_by: str
    scores: FloatArray
    """The rule's score for every k of the path; smaller is better."""

    def __str__(self) -> str:
        return f"k = {self.k} by {self.chosen_by}: objective {self.value:.8g}"


@final
class Path:
    """Solutions for a range of k; made by :meth:`Problem.path`.

    Attributes
    ----------
    k
        The values, sorted.
    objective
        The objective at each; it never rises.
    support
        The support at each: names, or indices if unnamed; pairs for the edges of a precision
        matrix.
    passes
        What the path cost, in passes over the data.
    stop
        Why it ended: ``Stop.CONVERGED`` where all ``k`` are there, else the time limit or Ctrl-C.
        It then holds the values of ``k`` that were done.
    parameter
        The parameter that has the values ``k``; None where they are the number in all.
    """

    def __init__(
        self,
        compiled: CompiledProblem,
        followed: Followed,
        parameter: Parameter | None = None,
    ) -> None:
        points = followed.points
        self._compiled = compiled
        self._points = tuple(points)
        self.parameter = parameter
        self.passes: float = followed.passes
        self.stop: Stop = followed.stop
        self.k: IntArray = np.array([point.k for point in points])
        self.objective: FloatArray = np.array([point.value for point in points])
        self.support: list[Any] = [compiled.answer(point.x).support for point in points]

    @property
    def unit(self) -> str:
        """Return what ``k`` counts, in words."""
        return self._compiled.unit

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        early = f", stopped early: {self.stop.value}" if self.stop.requested else ""
        return (
            f"Path(k = {self.k[0]} .. {self.k[-1]}, objective {self.objective[0]:.6g} .. "
            f"{self.objective[-1]:.6g}{early})"
        )

    def _repr_html_(self) -> str:
        return as_notebook(path_document(self.k.tolist(), self.objective.tolist(), self.support))

    @small_work()
    def select(self, criterion: str = "ebic", *, gamma: float | None = None) -> PathSolution:
        """Return the solution that minimises an information criterion.

        Of a regression it is chosen among the ``k`` that the observations carry, at most
        ``n / (log p log log n)`` (:func:`sparsemodel.selection.criteria.carried`): beyond, where
        the residuals vanish, likelihoods mean nothing. A warning says where the choice is an end
        of the path, or of what may be chosen.

        Parameters
        ----------
        criterion
            ``"aic"``, ``"bic"``, ``"ebic"`` or ``"gic"``; see :mod:`sparsemodel.selection.criteria`
            for the formulas, and :mod:`sparsemodel.selection.precision_matrices` for those of
            precision matrices.
        gamma
            Of EBIC, at least 0, which is BIC; None is 1, for precision matrices 1/2.

        Raises
        ------
        ModelError
            For losses that are no likelihoods; use :meth:`cross_validate` for them. For a
            covariance matrix whose number of observations is not known.
        """
        scores = self._compiled.scores(self._points, criterion, gamma)
        most = self._compiled.most_carried()
        place = best_carried(scores, self.k.tolist(), most)
        self._warn_at_the_end(place, criterion, most)
        return self._chosen(place, criterion, scores)

    @small_work()
    def cross_validate(
        self, *, folds: int | Any = 5, one_standard_error: bool = False, seed: int = 0
    ) -> PathSolution:
        """Return the solution whose k predicts held-out observations best.

        Every fold is solved from its own observations alone. With ``one_standard_error`` the
        smallest k within one standard error of the best is taken: a smaller model that predicts
        less well. Where 0 is on the path, it is left only for a k that is better by more than a
        standard error of the difference.

        Parameters
        ----------
        folds
            How many, or an array with the fold of each observation.
        """
        found = self.cross_validation(folds=folds, one_standard_error=one_standard_error, seed=seed)
        place = int(np.flatnonzero(self.k == found.k)[0])
        rule = "cross-validation" + (" (one standard error)" if one_standard_error else "")
        self._warn_at_the_end(place, "cross-validation", None)
        return self._chosen(place, rule, found.mean)

    def cross_validation(
        self, *, folds: int | Any = 5, one_standard_error: bool = False, seed: int = 0
    ) -> CrossValidation:
        """Return the held-out losses behind :meth:`cross_validate`."""
        return cross_validate(
            self._compiled.observed(),
            self.k.tolist(),
            folds=folds,
            one_standard_error=one_standard_error,
            seed=seed,
        )

    @small_work()
    def stability(self, *, resamples: int = 50, seed: int = 0) -> FloatArray:
        """Return how often each coordinate is chosen for each k on random halves of the data.

        Shape ``(len(path), p)``, for the problem's coordinates in order.
        """
        observed = self._compiled.observed()
        return selection_frequencies(observed, self.k.tolist(), resamples=resamples, seed=seed)

    def _warn_at_the_end(self, place: int, by: str, most: int | None) -> None:
        sparsity = self._compiled.form.cardinality
        units = sparsity.units + sparsity.forced_units
        said = at_the_end(self.k.tolist(), place, by=by, units=units, most=most)
        if said is not None and not self.stop.requested:
            warnings.warn(said, stacklevel=3)

    def _chosen(self, place: int, rule: str, scores: FloatArray) -> PathSolution:
        point = self._points[place]
        answer = self._compiled.answer(point.x)
        return PathSolution(
            k=point.k,
            value=point.value,
            support=answer.support,
            coefficients=answer.coefficients,
            values=answer.values,
            chosen_by=rule,
            scores=scores,
        )

    def plot(self, axes: Any = None, *, chosen: PathSolution | None = None) -> Any:
        """Draw the objective against k, and the scores behind a choice; return Matplotlib's axes.

        See :func:`sparsemodel.reporting.plots.path`.
        """
        from sparsemodel.reporting.plots import path

        return path(self, chosen=chosen, axes=axes)


def checked_ks(values: Any, sparsity: Cardinality) -> list[int]:
    """Return the values of k, sorted and distinct, all in range."""
    forced = sparsity.forced_units
    most = sparsity.units + forced
    if isinstance(values, range) and values and not 0 <= min(values) <= max(values) <= most:
        raise ModelError(f"Every k of a path must be between 0 and {most}.")
    try:
        given = list(values)
    except TypeError as error:
        raise ModelError(f"A path needs several values of k, not {values!r}.") from error
    if not given:
        raise ModelError("A path needs whole numbers k, for example range(1, 51).")
    hint = " Write whole numbers, for example range(1, 51)."
    ks = sorted({whole_number(k, where="Every k of a path", hint=hint) for k in given})
    if ks[0] < 0 or ks[-1] > most:
        raise ModelError(f"Every k of a path must be between 0 and {most}.")
    if ks[0] < forced:
        raise InfeasibleError(
            f"A path over k = {ks[0]} has no solution there: the bounds keep {forced} of the units "
            f"away from zero. Begin at k = {forced}, or leave such bounds out."
        )
    return ks


__all__ = ["Path", "PathSolution", "checked_ks"]
