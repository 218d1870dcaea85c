"""Symmetric matrix variables: their off-diagonal entries, counted, and bounds on eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import ModelError
from sparsemodel.interfaces.numeric import real_number
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import Constraint
from sparsemodel.modelling.expressions.foreign import as_ours
from sparsemodel.modelling.expressions.parameters import Quantity


@final
class offdiag:
    r"""The entries off the diagonal of a symmetric matrix variable, to be counted by ``card``.

    Both triangles are counted: ``card(offdiag(Omega)) <= 2 * m`` allows ``m`` edges.

    Parameters
    ----------
    *matrices
        Symmetric variables of one shape; others raise a ``ModelError``. With several, a position
        counts once if any of the matrices is nonzero there,
        :math:`|\{(i, j) : i \ne j, \exists g\; \Omega^{(g)}_{ij} \ne 0\}|`:
        precision matrices with one pattern.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> Omega = sm.Variable((5, 5), symmetric=True, name="Omega")
    >>> sm.card(sm.offdiag(Omega)) <= 8
    card(offdiag(Omega)) <= 8
    >>> Theta = sm.Variable((5, 5), symmetric=True, name="Theta")
    >>> sm.card(sm.offdiag(Omega, Theta)) <= 8
    card(offdiag(Omega, Theta)) <= 8
    """

    @rejects_unknown_arguments
    def __init__(self, *matrices: Any) -> None:
        if not matrices:
            raise ModelError("offdiag takes a symmetric variable, offdiag(Omega), or several.")
        self.matrices: tuple[Affine, ...] = tuple(symmetric(m, "offdiag") for m in matrices)
        shapes = {matrix.shape for matrix in self.matrices}
        if len(shapes) > 1:
            raise ModelError(
                f"{self!r} counts one pattern of matrices of one shape, and these have "
                f"{' and '.join(map(str, sorted(shapes)))}."
            )
        if len({id(m.pieces[0].variable) for m in self.matrices}) < len(self.matrices):
            raise ModelError(f"{self!r} names a matrix twice; its pattern counts once anyway.")

    @property
    def value(self) -> int | None:
        """Return how many entries are not zero; None before the variables have values."""
        values = [matrix.value for matrix in self.matrices]
        if any(value is None for value in values):
            return None
        pattern = np.any([value != 0.0 for value in values], axis=0)
        return int(np.sum(pattern) - np.sum(np.diag(pattern)))

    def __repr__(self) -> str:
        return f"offdiag({', '.join(map(str, self.matrices))})"


@final
@dataclass(frozen=True, slots=True, eq=False)
class EdgeCount(Constraint):
    """``card(offdiag(Omega)) <= limit``, both triangles counted."""

    counted: offdiag
    limit: int | Quantity

    @property
    def expression(self) -> Affine:
        """Return the matrices, added up."""
        first, *others = self.counted.matrices
        return sum(others, first)

    @property
    def limit_on_units(self) -> tuple[Any, int]:
        return self.limit, 2

    def __repr__(self) -> str:
        return f"card({self.counted!r}) <= {self.limit!r}"


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
