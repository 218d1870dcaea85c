r"""Which columns separate the data: what an error about a minimiser at infinity names.

A loss of one prediction falls for ever, or stays level, along a direction ``d`` if every prediction
moves only where its loss does not rise: :math:`a_i^\top d \ge 0` where
:math:`\ell_i` does not rise to the right, :math:`\le 0` where it does not rise to the left, zero
where it rises to both sides. For the logistic loss this is :math:`y_i a_i^\top d \ge 0`, (quasi-)
complete separation (Albert and Anderson, Biometrika 1984). A direction of the least
:math:`\sum_j |d_j| \max_i |a_{ij}|` is the solution of a linear program (Konis, Linear programming
algorithms for detecting separated data in binary logistic regression models, 2007), and has few
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from sparsemodel.interfaces import FloatArray, IntArray, Loss, SparseRegression, Term

_FAR = 500.0
"""Predictions at which the slope of a loss is that at infinity: exp(-500) is 1e-217, and losses are
defined up to predictions of 1e3."""
_LEVEL = 1e-9
"""Slopes up to this size, where those of an observation are about one, are none."""
_MOST = 20_000_000
"""Entries of columns up to which the program is solved (160 MB): some seconds."""


def separating_columns(form: SparseRegression, x: FloatArray) -> tuple[IntArray, bool]:
    """Return the counted coordinates that separate the data alone; else those of one direction.

    And whether each does it alone. Empty where none was found, or where losses are not of one
    prediction each.

    Parameters
    ----------
    x
        A point whose nonzero coordinates have such a direction, with those that are not counted.
    """
    from scipy.optimize import linprog

    empty = np.empty(0, dtype=np.intp)
    simple = all(isinstance(t.loss, Loss) and t.target.ndim == 1 for t in form.terms)
    if x.ndim > 1 or not simple:
        return empty, False
    alone = _alone(form)
    if alone.size:
        return alone, True
    support = np.union1d(np.flatnonzero(x.reshape(x.shape[0], -1).any(axis=1)), form.sparsity.free)
    support = support[form.ridge[support] == 0.0]
    rows = sum(int(term.target.shape[0]) for term in form.terms)
    if not support.size or rows * support.size > _MOST:
        return empty, False
    parts = [_cone(term, support) for term in form.terms]
    moving = np.vstack([part[0] for part in parts])
    fixed = np.vstack([part[1] for part in parts])
    if not moving.shape[0]:
        return empty, False
    counted = form.sparsity.counted[support]
    sizes = np.abs(np.vstack([moving, fixed])).max(axis=0)
    sizes[sizes == 0.0] = 1.0
    moving, fixed = moving / sizes, fixed / sizes
    costs = np.where(counted, 1.0, 1e-3)
    # d = plus - minus; predictions move by one in all.
    total = moving.sum(axis=0)[None, :]
    equal = np.vstack([total, fixed])
    found = linprog(
        np.concatenate([costs, costs]),
        A_ub=-np.hstack([moving, -moving]),
        b_ub=np.zeros(moving.shape[0]),
        A_eq=np.hstack([equal, -equal]),
        b_eq=np.append(1.0, np.zeros(fixed.shape[0])),
        method="highs",
        options={"time_limit": 5.0},
    )
    if found.x is None:
        return empty, False
    plus, minus = np.split(found.x, 2)
    direction = np.abs(plus - minus) * counted
    chosen = support[direction > 1e-6 * direction.max(initial=0.0)]
    return chosen, False


def _alone(form: SparseRegression) -> IntArray:
    """Return the counted coordinates along which alone no loss rises, to one side at least."""
    entries = sum(int(np.prod(term.design.shape)) for term in form.terms)
    if entries > _MOST:
        return np.empty(0, dtype=np.intp)
    low, high = np.zeros(form.ridge.size), np.zeros(form.ridge.size)
    for term in form.terms:
        signs, still = _sides(term)
        for rows, block in term.design.row_blocks(max(1, _MOST // 100 // form.ridge.size)):
            moved = signs[rows, None] * block
            moved[still[rows]] = np.where(block[still[rows]] == 0.0, 0.0, np.nan)  # may not move
            low, high = np.minimum(low, moved.min(axis=0)), np.maximum(high, moved.max(axis=0))
    separates = ((low == 0.0) & (high > 0.0)) | ((low < 0.0) & (high == 0.0))
    return np.flatnonzero(separates & form.sparsity.counted & (form.ridge == 0.0))


def _sides(term: Term) -> tuple[FloatArray, Any]:
    """Return where each prediction may move, 1 or -1 (0 for both), and which may not at all.

    Observations of weight zero may move anywhere.
    """
    loss, y = cast("Loss", term.loss), term.target
    far = np.full(y.shape, _FAR)
    right = (loss.derivative(far, y) <= _LEVEL) | (term.weights == 0.0)
    left = (loss.derivative(-far, y) >= -_LEVEL) | (term.weights == 0.0)
    return right.astype(np.float64) - left, ~(right | left)


def _cone(term: Term, support: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return rows whose products with a direction must not be negative, and must be zero."""
    A = term.design.restrict(support).to_array()
    signs, still = _sides(term)
    moves = signs != 0.0
    return signs[moves, None] * A[moves], A[still]


def with_columns(message: str, names: Sequence[str], *, alone: bool) -> str:
    """Return a message that names the columns after what is wrong, with what can be done."""
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    several = len(names) > 1
    how = "does it alone" if not several else "do it, each alone" if alone else "do it together"
    said = f"as the coefficients grow. The column{'s' * several} {listed} {how}."
    cure = "Add a ridge, for example sm.ridge(w, 1e-3), or bounds"
    which = "it" if not several else "them" if alone else "one of them"
    left_out = f"{cure}, or leave {which} out"
    return message.replace("as the coefficients grow.", said).replace(cure, left_out)
