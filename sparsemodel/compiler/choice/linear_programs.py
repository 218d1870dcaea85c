"""Whether a solve writes the problem down as a mixed-integer linear program."""

from __future__ import annotations

from typing import cast

from sparsemodel.compiler.choice.candidates import Candidates, Choice
from sparsemodel.interfaces import Piecewise, Role, SparseRegression
from sparsemodel.numerics import is_of_segments
from sparsemodel.numerics.linear_programs.formulation import objections

_KINKS = 1000
"""Kinks times units up to which losses with kinks are solved so, a size of the program. Of 51
problems up to there (absolute, quantile and hinge losses, 10 to 50 observations, 6 to 20 features)
it took a quarter of the time of enumeration and search together, ended 1 to 7 % lower on four and
higher on none; with 2000 to 5000 it takes two to twenty times as long as a search."""


def of_linear_program(form: SparseRegression, candidates: Candidates) -> Choice | None:
    """Return the stage that solves a linear program with choices, where one pays.

    Where the objective is linear nothing else knows where to go: a minimiser on a support is at a
    vertex of the constraints, and says nothing of what another unit would gain. With kinks the
    program grows by a row for each of them, and a search does better once there are many.
    """
    if is_of_segments(form) or objections(form) or _kinks(form) * form.sparsity.units > _KINKS:
        return None
    name = candidates.best(Role.LINEAR)
    if name is None:
        return None
    what = "a loss of few straight pieces" if _kinks(form) else "a linear objective"
    return Choice((candidates.stage(name, f"{what} makes this a mixed-integer linear program"),))


def _kinks(form: SparseRegression) -> int:
    """Return how many pieces losses with kinks have."""
    return sum(
        term.target.size * len(cast("Piecewise", term.loss).pieces(term.target))
        for term in form.terms
        if not term.traits.affine
    )
