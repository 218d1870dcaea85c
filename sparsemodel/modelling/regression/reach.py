"""Infeasible by arithmetic: how far a linear row can be from zero with so many nonzero entries."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import Box, FloatArray, InfeasibleError, SparseRegression

_ROUNDING = 1e-9
"""Share of the sizes of a row up to which a bound is met."""
_MOST = 20_000_000
"""Entries of linear rows up to which they are read (160 MB as an array)."""


def check_reach(form: SparseRegression, k: int | None = None) -> None:
    r"""Raise where the bounds on the entries keep a linear row from what it must be.

    With at most ``k`` units, a row :math:`c^\top x` is at most the sum of the ``k`` largest
    :math:`\sum_j \max(c_j l_j, c_j u_j, 0)` over units ``j``, and of the coordinates that are not
    counted. This is one reading of the rows.

    Raises
    ------
    InfeasibleError
        With the least ``k`` that the arithmetic allows.
    """
    if form.region is None or form.box is None or form.matrix:
        return
    box, budget = form.box.chosen, form.sparsity.budget
    if k is not None:
        budget = k - form.sparsity.forced_units
    for part in form.region.linear:
        if part.design.shape[0] * part.design.shape[1] > _MOST:
            continue
        for rows, block in part.design.row_blocks(64):
            ends = part.lower[rows], part.upper[rows]
            for c, lower, upper in zip(block, *ends, strict=True):
                # A row that is to be small is minus one that is to be large.
                for sign, wanted in ((1.0, lower), (-1.0, -upper)):
                    if np.isfinite(wanted):
                        _check(form, box, sign, sign * c, wanted, budget)


def _check(
    form: SparseRegression, box: Box, sign: float, c: FloatArray, wanted: float, budget: int
) -> None:
    sparsity = form.sparsity
    with np.errstate(invalid="ignore"):
        most = np.where(c == 0.0, 0.0, np.maximum(c * box.lower, c * box.upper))
    if not np.all(np.isfinite(most)):
        return
    always = float(most[sparsity.free].sum())
    # A unit may be zero, and so may each of its coordinates unless its bounds forbid it.
    gains = -np.sort(-sparsity.unit_scores(np.maximum(most, 0.0)))
    reach = always + np.concatenate([[0.0], np.cumsum(gains)])
    slack = _ROUNDING * (abs(wanted) + float(np.abs(most).sum()))
    here = float(reach[min(budget, gains.size)])
    if here >= wanted - slack:
        return
    enough = np.flatnonzero(reach >= wanted - slack)
    k = budget + sparsity.forced_units
    advice = "No number of them is enough: widen the bounds."
    if enough.size:
        least = int(enough[0]) + sparsity.forced_units
        advice = f"Allow at least {least} of them, or widen the bounds."
    below, above = ("at least", "at most") if sign > 0.0 else ("at most", "at least")
    what = "the sum of the entries" if np.all(c[c != 0.0] == sign) else "a linear constraint"
    raise InfeasibleError(
        f"Infeasible by arithmetic: {what} must be {below} {sign * wanted:.6g}, and {k} nonzero "
        f"{'entry' if k == 1 else 'entries'} within the bounds make it {above} {sign * here:.6g}. "
        f"{advice}"
    )
