"""Symmetric matrix variables: their off-diagonal entries, counted, and bounds on eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import ModelError
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.foreign import as_ours
from sparsemodel.modelling.expressions.parameters import Quantity


@final
class offdiag:
    """The entries off the diagonal of a symmetric matrix variable, to be counted by ``card``.

    Both triangles are counted: ``card(offdiag(Omega)) <= 2 * m`` allows ``m`` edges.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> Omega = sm.Variable((5, 5), symmetric=True, name="Omega")
    >>> sm.card(sm.offdiag(Omega)) <= 8
    card(offdiag(Omega)) <= 8
    """

    def __init__(self, matrix: Any) -> None:
        self.expression: Affine = symmetric(matrix, "offdiag")

    def __repr__(self) -> str:
        return f"offdiag({self.expression})"


@final
@dataclass(frozen=True, slots=True, eq=False)
class EdgeCount(Constraint):
    """``card(offdiag(Omega)) <= limit``, both triangles counted."""

    expression: Affine
    limit: int | Quantity

    @property
    def limit_on_units(self) -> tuple[Any, int]:
        return self.limit, 2

    def __repr__(self) -> str:
        return f"card(offdiag({self.expression})) <= {self.limit!r}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class EigenvalueBound(Constraint):
    """``Omega >> alpha`` or ``Omega << beta``: a bound on all eigenvalues."""

    expression: Affine
    bound: float
    upper: bool

    def __repr__(self) -> str:
        return f"{self.expression} {'<<' if self.upper else '>>'} {self.bound:g}"


def eigenvalue_bound(matrix: AffineLike, bound: Any, *, upper: bool) -> EigenvalueBound:
    """Return the constraint ``matrix << bound`` (``upper``) or ``matrix >> bound``."""
    sign = "<<" if upper else ">>"
    affine = symmetric(matrix, sign)
    if isinstance(bound, np.ndarray) and bound.ndim == 2:
        diagonal = np.diag(bound)
        if np.array_equal(bound, np.diag(diagonal)) and np.all(diagonal == diagonal[0]):
            bound = float(diagonal[0])
    where = f"The eigenvalue bound of `{affine} {sign} ...`"
    number = real_number(bound, where=where, minimum=0.0)
    return EigenvalueBound(affine, number, upper)


def symmetric(matrix: Any, what: str) -> Affine:
    """Return the expression of a symmetric variable alone, or raise an error that says ``what``."""
    matrix = as_ours(matrix)
    affine = matrix.as_affine() if isinstance(matrix, AffineLike) else None
    plain = affine is not None and len(affine.pieces) == 1 and affine.offset is None
    if affine is None or not plain or affine.pieces[0].rows is not None:
        raise ModelError(f"{what} takes a symmetric variable, not {matrix!r}.")
    variable = affine.pieces[0].variable
    if not variable.symmetric:
        package = "sm" if variable.proxied is None else "cp"
        raise ModelError(
            f"{what} takes a symmetric variable; declare {variable.label} as "
            f"{package}.Variable((p, p), symmetric=True)."
        )
    if not affine.pieces[0].bare or affine.pieces[0].factor != 1.0:
        raise ModelError(f"{what} takes {variable.label} itself, not {matrix!r}.")
    return affine
