"""Affine CVXPY expressions as ours; matrices are held by reference.

Nothing here imports CVXPY: expressions are recognised by the names of their classes, so that a
problem without them costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from sparsemodel.designs import SparseDesign
from sparsemodel.interfaces import FloatArray, IntArray, ModelError
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.foreign import followed, is_read_again, value_of
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity
from sparsemodel.modelling.expressions.variables import Variable

_proxies: WeakValueDictionary[int, Variable] = WeakValueDictionary()
"""Our variable for each CVXPY variable, by its number."""


def shown(thing: Any) -> str:
    """Return CVXPY's words for something on one line, with ``[...]`` in the place of arrays."""
    text = " ".join(str(thing).split())
    text = re.sub(r"\[[-+0-9.e ]{12,}\]", "[...]", text)
    return re.sub(r"\[(?:\[\.\.\.\]| |\.\.\.)+\]", "[...]", text)


def kind_of(expression: Any) -> str:
    """Return the name of an expression's atom; ``PowerApprox`` and the like lose their ending."""
    return type(expression).__name__.removesuffix("Approx")


def proxy_of(variable: Any) -> Variable:
    """Return the variable that stands for a CVXPY variable; its value is handed back there."""
    number = int(variable.id)
    found = _proxies.get(number)
    if found is None:
        square = bool(variable.attributes["symmetric"] or variable.attributes["PSD"])
        found = Variable(tuple(variable.shape), name=variable.name(), symmetric=square)
        found.proxied = variable
        _proxies[number] = found
    return found


class _NotRecognised(ModelError):
    """An operation of CVXPY's that has no counterpart here, by the expression it stands in."""


def affine_of(expression: Any) -> Affine:
    """Return an affine CVXPY expression as ours.

    Raises
    ------
    ModelError
        When it holds an operation that is not understood; the message names it.
    """
    try:
        return _by_structure(expression)
    except _NotRecognised:
        if expression.ndim > 1 or not expression.is_affine():
            raise
        return _by_derivatives(expression)


def _by_structure(expression: Any) -> Affine:
    """Return an affine expression whose operations are all known here: data stay as they are."""
    if isinstance(expression, AffineLike):
        return expression.as_affine()
    kind = kind_of(expression)
    if expression.is_constant():
        return Affine((), _constant(expression))
    if kind == "Variable":
        return proxy_of(expression).as_affine()
    if kind == "AddExpression":
        total = affine_of(expression.args[0])
        for part in expression.args[1:]:
            total = total.plus(affine_of(part))
        return total
    if kind == "NegExpression":
        return affine_of(expression.args[0]).times(-1.0)
    if kind == "Promote":
        return affine_of(expression.args[0])
    if kind == "Sum":
        return _sum(affine_of(expression.args[0]), expression.axis)
    if kind in ("MulExpression", "multiply"):
        left, right = expression.args
        vectors = right.ndim == 1 and left.ndim < 2
        if right.is_constant() and (kind == "multiply" or right.size == 1 or vectors):
            left, right = right, left
        if left.is_constant() and (kind == "multiply" or left.size == 1) and is_uniform(left):
            return affine_of(right).times(number_of(left))
        if left.is_constant() and kind == "MulExpression":
            return _product(left, right)
        if right.is_constant() and kind == "MulExpression":
            return affine_of(left).__matmul__(value_of(right))
    if kind == "DivExpression" and expression.args[1].is_constant():
        return affine_of(expression.args[0]).times(1.0 / number_of(expression.args[1]))
    if kind == "index" and kind_of(expression.args[0]) == "Variable":
        variable = proxy_of(expression.args[0])
        rows = np.atleast_1d(np.arange(variable.shape[0])[expression.key[0]])
        if len(expression.key) == 1:
            return variable[rows].as_affine()
        columns = np.atleast_1d(np.arange(variable.shape[1])[expression.key[1]])
        if columns.size == variable.shape[1] and expression.ndim == 2:
            return variable[rows].as_affine()
        return variable[rows, columns].as_affine()
    if kind == "index" and expression.args[0].ndim == 1 and expression.args[0].is_affine():
        rows = np.atleast_1d(np.arange(expression.args[0].size)[expression.key[0]])
        sliced = _sliced(affine_of(expression.args[0]), rows)
        if sliced is not None:
            return sliced
    if kind == "special_index" and expression.args[0].ndim == expression.ndim == 1:
        inside = affine_of(expression.args[0])
        rows = np.arange(expression.args[0].size)[expression.key]
        if np.any(np.diff(rows) <= 0):  # some perhaps more than once
            return inside.__rmatmul__(SparseDesign.identity(expression.args[0].size, rows))
        sliced = _sliced(inside, rows)
        if sliced is not None:
            return sliced
    raise _unknown(expression, kind)


def _unknown(expression: Any, kind: str) -> ModelError:
    """Return the error for an operation that is not understood."""
    if kind == "Pnorm" and getattr(expression, "axis", None) is not None:
        return ModelError(
            f"{shown(expression)}: norms of rows or columns are no terms here. What is to be zero "
            "as a whole is counted, sm.card(W, axis=1) <= k; shrinkage is cp.sum_squares(W)."
        )
    return _NotRecognised(
        f"The CVXPY operation {kind} in {shown(expression)} is not recognised; affine expressions "
        "are sums of `A @ w`, variables, their slices, and constants, and other affine functions "
        "whose value is a number or a vector. Write it with `A @ w` or for each column, "
        "`A @ W[:, j]`."
    )


def _by_derivatives(expression: Any) -> Affine:
    """Return an affine function that CVXPY alone knows: its value at zero and its derivatives."""
    for parameter in expression.parameters():
        value_of(parameter)  # or says why it cannot be followed
    variables = expression.variables()
    values = [variable.value for variable in variables]
    try:
        for variable in variables:
            variable.save_value(np.zeros(variable.shape))
        derivatives, constant = expression.grad, np.array(expression.value, dtype=np.float64)
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.save_value(value)
    total = Affine((), constant if constant.any() else None)
    for variable in variables:
        entries = proxy_of(variable)
        order = np.arange(variable.size).reshape(variable.shape, order="F").ravel()
        matrix = derivatives[variable].T.tocsc()[:, order]
        total = total.plus(SparseDesign(matrix) @ entries.entries)
    return total


def _product(matrix: Any, expression: Any) -> Affine:
    """Return a constant matrix times an expression: of stacked vectors its columns times each."""
    stacked = kind_of(expression) == "Hstack" and all(part.ndim == 1 for part in expression.args)
    if not stacked or matrix.parameters():
        return affine_of(expression).__rmatmul__(_factor(matrix))
    ends = np.cumsum([0, *(part.size for part in expression.args)])
    columns, total = value_of(matrix), Affine(())
    for part, first, last in zip(expression.args, ends[:-1], ends[1:], strict=True):
        total = total.plus(affine_of(part).__rmatmul__(columns[..., first:last]))
    return total


def _sliced(affine: Affine, rows: IntArray) -> Affine | None:
    """Return some entries of a sum of (slices of) vector variables; None of anything else."""
    offset = affine.offset
    plain = all(piece.bare and len(piece.shape) == 1 for piece in affine.pieces)
    if isinstance(offset, Quantity) or not plain:
        return None
    pieces = tuple(
        replace(piece, rows=rows if piece.rows is None else piece.rows[rows])
        for piece in affine.pieces
    )
    return Affine(pieces, offset[rows] if isinstance(offset, np.ndarray) else offset)


def parts_of(expression: Any) -> list[Affine]:
    """Return what a stack is made of, piece by piece; another expression is its only part.

    ``hstack``, ``vstack``, ``concatenate``, ``vec``: the order of entries is lost, which is no
    matter where they are counted.
    """
    if kind_of(expression) in ("Hstack", "Vstack", "Concatenate"):
        return [part for inside in expression.args for part in parts_of(inside)]
    if kind_of(expression) in ("reshape", "Vec", "transpose"):
        return parts_of(expression.args[0])
    return [affine_of(expression)]


def _sum(inside: Affine, axis: int | None) -> Affine:
    """Return a sum of entries: of all, of each column (0) or of each row (1)."""
    shape, piece = inside.value_shape(), inside.pieces[0]
    if len(shape) < 2:
        return inside.sum()
    if axis is None and len(inside.pieces) == 1 and piece.bare and inside.offset is None:
        if piece.rows is None:
            return piece.variable.entries.sum().times(piece.factor)
    elif axis == 0:
        return inside.__rmatmul__(np.ones((1, shape[0])))
    elif axis == 1:
        return inside @ np.ones(shape[1])
    raise _NotRecognised(
        f"The sum of {shown(inside)} is not understood; sums are those of a variable, of a vector, "
        "and of the rows or columns of a matrix."
    )


def is_uniform(constant: Any) -> bool:
    """Return whether a constant is one number, repeated for every entry perhaps."""
    values = value_of(constant)
    return not hasattr(values, "tocsr") and bool(np.all(values == np.ravel(values)[0]))


def number_of(constant: Any) -> float:
    """Return the value of a constant that is one number."""
    return float(np.ravel(value_of(constant))[0])


def _factor(matrix: Any) -> Any:
    """Return a data matrix, as a parameter where sparsemodel itself has to follow it."""
    return value_of(matrix) if is_read_again() or not matrix.parameters() else followed(matrix)


def _constant(constant: Any) -> FloatArray | float | Parameter:
    """Return the present value of a constant, or a parameter as above."""
    if constant.parameters() and not is_read_again():
        return followed(constant)
    array = np.asarray(value_of(constant), dtype=np.float64)
    return float(array) if array.ndim == 0 else array
