r"""The relaxation with curvature taken out of squared losses, and the choice of what to take.

With :math:`H - \Delta \succeq 0` the relaxation has :math:`H - \Delta` in the loss and
:math:`\lambda + \Delta` in the regulariser. Its value is concave in :math:`\Delta` with
supergradient :math:`\frac12 w_j^2 (1/z_j - 1)`, so that better diagonals come from

.. math:: \max_\Delta\ \sum_j s_j \Delta_j + \tau (\log\det(H - \Delta) + \sum_j \log \Delta_j)

(Newton's method, O(p^3) a step) followed by a line search between the old diagonal and the new.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri

from sparsemodel.certificates.dual_bounds.curvature import Curvature, safe
from sparsemodel.certificates.dual_bounds.witness import extracted
from sparsemodel.certificates.relaxation.accelerated import minimise
from sparsemodel.certificates.relaxation.engine import Relaxed
from sparsemodel.certificates.relaxation.regulariser import Regulariser, entrywise
from sparsemodel.certificates.relaxation.smooth import QuadraticSmooth, schur
from sparsemodel.certificates.relaxation.squares import Squares
from sparsemodel.certificates.relaxation.state import Report, State, StoppingRule
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, SparseRegression
from sparsemodel.interfaces.numeric import rowwise
from sparsemodel.numerics.budget import Budget, cholesky_cost, inverse_cost

_SWEEPS = 6
_FIRST_TAU, _TAUS, _NEWTON_STEPS = 0.3, 2, 8
_LENGTHS = (1.0, 0.5, 0.2, 0.05)


@final
class ExtractedRelaxation:
    """The relaxations of one squared-loss problem for changing diagonals."""

    def __init__(self, form: SparseRegression, taken: Curvature) -> None:
        self.form = form
        self.taken = taken
        squares = Squares(form)
        self._free = form.sparsity.free
        keep = taken.counted
        # The free coordinates are minimised out: their ridge belongs to the quadratic then.
        h = taken.hessian.copy()
        h[self._free, self._free] += form.ridge[self._free]
        self._q, self._g, extra, self._solve_h, self._solve_g = schur(
            h, squares.linear, keep, self._free
        )
        self._constant = squares.constant + float(extra[0])
        self.solved: int = 0

    def solve(
        self,
        diagonal: FloatArray,
        start: FloatArray,
        *,
        goal: Callable[[State], bool],
        deadline: float | None = None,
        keep: IntArray | None = None,
        fixed: BoolArray | None = None,
    ) -> tuple[State, FloatArray]:
        """Return the state for a diagonal (full length), and the shares' supergradient.

        ``keep`` are positions among the counted coordinates, the others being zero, and ``fixed``
        marks units that are in for good.
        """
        counted = self.taken.counted if keep is None else self.taken.counted[keep]
        curvature = self.form.ridge + diagonal
        regulariser = Regulariser(self.form, counted, curvature, fixed=fixed)
        q = self._q.copy() if keep is None else self._q[np.ix_(keep, keep)]
        q[np.diag_indices_from(q)] -= diagonal[counted]
        g = self._g if keep is None else self._g[keep]
        smooth = QuadraticSmooth(q, g, self._constant)
        state = minimise(smooth, regulariser, start, goal=goal, deadline=deadline)
        self.solved += 1
        return state, _supergradient(regulariser, state)

    def at(self, x: FloatArray) -> FloatArray:
        """Return the full point for values of the counted coordinates."""
        full = np.zeros(self.form.shape)
        full[self.taken.counted] = x
        if self._free.size:
            full[self._free] = self._solve_g - self._solve_h @ x
        return full

    def witness(self, state: State, diagonal: FloatArray) -> Witness:
        """Return the witness of a state's bound."""
        point = state.bound_point if state.bound_point is not None else state.x
        return extracted(self.form, self.at(point), diagonal)

    def gains(self, state: State, diagonal: FloatArray) -> FloatArray:
        """Return the gains of the counted units at the bound's point."""
        counted = self.taken.counted
        point = state.bound_point if state.bound_point is not None else state.x
        v = self._q @ point - rowwise(diagonal[counted], point) - self._g
        regulariser = Regulariser(self.form, counted, self.form.ridge + diagonal)
        return regulariser.gains(v)[0]


def applies_to(form: SparseRegression) -> bool:
    """Return whether the engine can take curvature out here: ungrouped, free ones unbounded.

    Entries of a matrix whose rows are counted may have no bounds of their own.
    """
    if form.sparsity.groups is not None or entrywise(form):
        return False
    if form.box is None:
        return True
    free = form.sparsity.free
    return bool(np.all(np.isinf(form.box.lower[free]) & np.isinf(form.box.upper[free])))


def relax_extracted(
    form: SparseRegression,
    taken: Curvature,
    diagonals: list[FloatArray],
    start: FloatArray,
    *,
    report: Report | None = None,
    deadline: float | None = None,
) -> Relaxed | None:
    """Return the best relaxation over diagonals, improved by barrier sweeps.

    ``diagonals`` are starting points over the counted coordinates; None when none is provable.
    """
    problem = ExtractedRelaxation(form, taken)
    x = start[taken.counted]
    best: tuple[State, FloatArray, FloatArray] | None = None
    stopping = StoppingRule(report, deadline)
    budget, p = Budget(deadline), form.sparsity.size
    for diagonal in diagonals:
        if best is not None and not budget.fits(cholesky_cost(p)):
            break
        extraction = safe(taken, diagonal)
        if extraction is None:
            continue
        state, slopes = problem.solve(
            extraction.diagonal, x, goal=_goal(stopping), deadline=deadline
        )
        if best is None or state.bound > best[0].bound:
            best = (state, extraction.diagonal, slopes)
        if state.interrupted or stopping.over(best[0].value, best[0].bound):
            best[0].interrupted = best[0].interrupted or state.interrupted
            break
    if best is None:
        return None
    for _ in range(_SWEEPS):
        if best[0].interrupted or stopping.over(best[0].value, best[0].bound):
            break
        improved = _sweep(problem, best, stopping)
        if improved is None:
            break
        gained = improved[0].bound - best[0].bound
        best = improved
        if gained <= 1e-4 * abs(best[0].bound):
            break
    state, diagonal, _ = best
    return Relaxed(
        x=problem.at(state.x),
        value=state.value,
        bound=state.bound,
        witness=problem.witness(state, diagonal),
        gains=problem.gains(state, diagonal),
        iterations=state.iterations,
        interrupted=state.interrupted,
    )


def _sweep(
    problem: ExtractedRelaxation,
    best: tuple[State, FloatArray, FloatArray],
    stopping: StoppingRule,
) -> tuple[State, FloatArray, FloatArray] | None:
    """Return a better diagonal, by one barrier problem and a line search, or None."""
    state, diagonal, slopes = best
    counted = problem.taken.counted
    budget, solved = Budget(stopping.deadline), _goal(stopping)
    aim = barrier(problem.taken.schur, slopes, diagonal[counted], budget)
    if aim is None:
        return None
    for length in _LENGTHS:
        if not budget.fits(cholesky_cost(diagonal.size)):
            return None
        mixed = diagonal[counted] + length * (aim - diagonal[counted])
        extraction = safe(problem.taken, mixed)
        if extraction is None:
            continue
        floor = state.bound

        def goal(s: State, floor: float = floor) -> bool:
            # A relaxation whose value falls below the bound at hand is no improvement.
            return s.value < floor or solved(s)

        trial, slopes_there = problem.solve(
            extraction.diagonal, state.x, goal=goal, deadline=stopping.deadline
        )
        if trial.bound > state.bound:
            return trial, extraction.diagonal, slopes_there
        state.interrupted = trial.interrupted
        if trial.interrupted or stopping.out_of_time:
            return None
    return None


def barrier(
    matrix: FloatArray, slopes: FloatArray, start: FloatArray, budget: Budget | None = None
) -> FloatArray | None:
    """Maximise ``slopes @ d`` over ``0 <= d``, ``matrix - diag(d)`` PSD, by a barrier method.

    A step that would not end within ``budget`` is not begun; the best point so far is returned.
    """
    p = matrix.shape[0]
    slopes = np.maximum(slopes, 0.0)
    total = float(slopes @ start)
    if not total > 0.0:
        return None
    d = np.maximum(0.9 * start, 1e-3 * float(start.mean()))
    best: FloatArray | None = None
    tau = _FIRST_TAU * total / p
    factor = _factor(matrix, d)
    if factor is None:
        return None
    for _ in range(_TAUS):
        for _ in range(_NEWTON_STEPS):
            if budget is not None and not budget.fits(inverse_cost(p), 3.0 * cholesky_cost(p)):
                return best
            inverse = _inverse(factor)
            gradient = slopes - tau * np.diag(inverse) + tau / d
            curvature = tau * np.square(inverse)
            curvature[np.diag_indices(p)] += tau / np.square(d)
            if not (np.all(np.isfinite(curvature)) and np.all(np.isfinite(gradient))):
                return best
            try:
                step = cho_solve(cho_factor(curvature, lower=True), gradient)
            except np.linalg.LinAlgError:
                return best
            decrement = float(gradient @ step)
            length = 1.0 if decrement < 0.25 * tau else 1.0 / (1.0 + math.sqrt(decrement / tau))
            following = None
            while length > 1e-6:
                ahead = d + length * step
                following = _factor(matrix, ahead) if np.all(ahead > 0.0) else None
                if following is not None:
                    break
                length *= 0.5
            if following is None:
                break
            d, factor = ahead, following
            if decrement < 0.05 * p * tau:
                break  # a line search follows: a rough maximiser will do
        best = d
        tau *= 0.15
    return best


def _factor(matrix: FloatArray, d: FloatArray) -> tuple[FloatArray, bool] | None:
    shifted = matrix.copy()
    shifted[np.diag_indices_from(shifted)] -= d
    try:
        factor: tuple[FloatArray, bool] = cho_factor(shifted, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:
        return None
    return factor


def _inverse(factor: tuple[FloatArray, bool]) -> FloatArray:
    lower = np.asfortranarray(factor[0])
    inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
    below = np.tril(inverse, -1)
    return np.asarray(below + below.T + np.diag(np.diag(inverse)))


def _supergradient(regulariser: Regulariser, state: State) -> FloatArray:
    z = state.z
    if z.size != state.x.shape[0]:
        return np.zeros(0)  # some units are in for good: not needed then
    share = np.divide(1.0, z, out=np.ones_like(z), where=z > 0.0)
    return np.asarray(0.5 * np.square(regulariser.sizes(state.x)) * (share - 1.0))


def _goal(stopping: StoppingRule) -> Callable[[State], bool]:
    def goal(state: State) -> bool:
        return stopping.enough(state.value, state.bound) or stopping.met(state.value, state.bound)

    return goal
