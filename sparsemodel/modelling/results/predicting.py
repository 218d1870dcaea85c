"""Predictions for new data, by the names of their columns where there are names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np

from sparsemodel.designs import as_design, column_names
from sparsemodel.designs.tables.encoding import Encoding
from sparsemodel.designs.tables.formulas import Formula
from sparsemodel.designs.tables.frames import in_memory
from sparsemodel.interfaces import (
    DataError,
    DataFit,
    Design,
    FloatArray,
    Likelihood,
    ModelError,
    TargetKind,
)
from sparsemodel.interfaces.errors import closest
from sparsemodel.interfaces.numeric import described, is_one_of, plain_array, real_number
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.objective_terms import LossTerm
from sparsemodel.modelling.expressions.values import real_array
from sparsemodel.modelling.expressions.variables import Variable

Kind = Literal["response", "probability", "linear"]
"""What is predicted."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """What predicts from new data: coefficients, a constant, and what the loss makes of them."""

    loss: DataFit
    classes: tuple[Any, ...] | None
    coefficients: FloatArray
    """Shape ``(p,)`` or ``(p, m)``."""
    constant: Any
    """A number, or one for each output."""
    names: tuple[str, ...] | None
    """Those of the columns."""
    encoding: Encoding | Formula | None = None
    """How they are made from the columns of a table, where they are."""
    levels: tuple[Any, ...] | None = None
    """Ordered classes: the constants are then minus the thresholds between them."""
    offset: bool = False
    """Whether every observation had an offset of its own."""

    def __call__(
        self, new: Any, kind: Kind = "response", *, offset: Any = None, exposure: Any = None
    ) -> Any:
        """Return predictions for the rows of ``new``."""
        if not is_one_of(kind, ("response", "probability", "linear")):
            raise ModelError(
                f"kind must be 'response', 'probability' or 'linear', not {described(kind)}."
            )
        columns, coefficients = self._used(new)
        u = as_design(columns, where="The new data").matvec(coefficients)
        u = u + self._offset_of(u.shape, offset, exposure)
        if self.levels is not None:
            return self._ordered(u, kind)
        return self.of_linear(u + self.constant, kind)

    def _offset_of(self, shape: tuple[int, ...], offset: Any, exposure: Any) -> Any:
        """Return what is added to the predictions of new rows, which only the user can know."""
        if offset is None and exposure is None:
            if self.offset:
                raise ModelError(
                    "Every observation of the model has an offset, and new rows have their own: "
                    "write predict(new, offset=...), or predict(new, exposure=...) for the "
                    "logarithm of an exposure; of one unit each, exposure=1.0."
                )
            return 0.0
        if exposure is None:
            return _each_row(offset, "offset", shape)
        if offset is not None:
            raise ModelError("exposure= is log(exposure) as offset=; give one of them.")
        ends = self.loss.mean(np.array([0.0, 1.0]))
        if ends.shape != (2,) or not np.allclose(ends, np.exp([0.0, 1.0])):
            raise ModelError(
                f"exposure= is for losses whose mean is the exponential of the prediction, and "
                f"{self.loss.name} has another; write offset=."
            )
        rates = _each_row(exposure, "exposure", shape)
        if not np.all(rates > 0.0):
            raise DataError(f"exposure must be positive; the smallest is {np.min(rates):g}.")
        return np.log(rates)

    def of_linear(self, u: FloatArray, kind: Kind) -> Any:
        """Return predictions where ``A @ w + c`` is ``u``."""
        of_classes = self.loss.target_kind in (TargetKind.TWO_CLASSES, TargetKind.CLASSES)
        if kind == "linear":
            return u
        if kind == "probability":
            if not (of_classes and isinstance(self.loss, Likelihood)):
                raise ModelError(
                    f"{self.loss.name} gives no probabilities; those of classes need "
                    "sm.logistic_loss or sm.multinomial_loss."
                )
            return self.loss.mean(u)
        if not of_classes:
            return self.loss.mean(u)
        codes = (u > 0.0).astype(np.intp) if u.ndim == 1 else np.argmax(u, axis=1)
        return codes if self.classes is None else np.array(self.classes)[codes]

    def _ordered(self, u: FloatArray, kind: Kind) -> Any:
        """Return the class above as many thresholds as ``u`` is."""
        if kind == "linear":
            return u
        above = u[:, None] + self.constant
        if kind == "probability":
            return -np.diff(self.loss.mean(above), axis=1, prepend=1.0, append=0.0)
        return np.array(self.levels)[(above > 0.0).sum(axis=1)]

    def _used(self, new: Any) -> tuple[Any, FloatArray]:
        """Return the columns that are used, where there are names to find them, and what of them.

        Those with coefficients of zero may be absent, unless all are.
        """
        new, w = in_memory(new, "The new data"), self.coefficients
        given = None if isinstance(new, Design) else column_names(new)
        nonzero: Any = w.reshape(w.shape[0], -1).any(axis=1)
        nonzero |= not nonzero.any()
        if self.encoding is not None and given is not None:
            wanted, used = self.encoding.needed(nonzero)
            new = self._chosen(new, given, wanted)
            return self.encoding.of_frame(new, wanted, "The new data"), w[used]
        if self.names is not None and given is not None:
            wanted = tuple(self.names[j] for j in np.flatnonzero(nonzero))
            return self._chosen(new, given, wanted), w[nonzero]
        if getattr(new, "shape", None) is not None:
            shape = new.shape
        else:
            shape = plain_array(new, "The new data").shape
        if len(shape) != 2 or shape[1] != w.shape[0]:
            one = " For one row write `df.iloc[[0]]`, or `A[[0]]`." if len(shape) < 2 else ""
            found = f"have the shape {tuple(shape)}" if shape else f"are {described(new)}"
            raise DataError(
                f"The new data {found}; the model needs {w.shape[0]} "
                f"columns, in the order of the training data, and one row for each prediction.{one}"
            )
        return new, w

    @staticmethod
    def _chosen(new: Any, given: tuple[str, ...], wanted: tuple[str, ...]) -> Any:
        """Return the wanted columns of a data frame."""
        missing = [name for name in wanted if name not in given]
        if missing:
            close = closest(missing[0], given)
            hint = f" Is {close!r} meant?" if close else ""
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DataError(
                f"The new data lack the column {missing[0]!r}{more}, which the model uses.{hint}"
            )
        if given == wanted:
            return new
        by_name = {str(column): column for column in new.columns}
        return new[[by_name[name] for name in wanted]]


def _each_row(values: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return a number, or one for each new row (and output), as an array that adds to them."""
    several = np.ndim(values) > 0
    found: FloatArray = np.asarray((real_array if several else real_number)(values, where=name))
    if np.shape(found) == shape[:1] and len(shape) > 1:
        found = found[:, None]
    if np.shape(found) not in ((), shape, (*shape[:1], 1)):
        raise DataError(
            f"{name} has the shape {np.shape(values)}, and there are {shape[0]} new rows; give a "
            "number, or one for each row."
        )
    return np.asarray(found)


def predictor_of(reading: Reading, values: Sequence[FloatArray]) -> Predictor | ModelError:
    """Return what predicts with values of the variables, or the error that says why not."""
    losses = [
        term
        for term in getattr(reading.goal.objective, "terms", ())
        if isinstance(term, LossTerm) and term.prediction is not None
    ]
    # One row beside others is a linear term or a penalty; alone it is the one observation.
    terms = [term for term in losses if _rows(term) != 1] or [
        term for term in losses if not isinstance(term.loss, LinearLoss)
    ]
    levels = terms[0].levels if terms else None
    if len(terms) != 1 and (levels is None or any(term.levels is not levels for term in terms)):
        found = "no loss" if not terms else f"{len(terms)} losses"
        return ModelError(
            f"predict() is for problems with one loss of observations, and this one has {found}; "
            "multiply the new data by the .value of the variables."
        )
    known = {id(v): value for v, value in zip(reading.variables, values, strict=True)}
    each = [_of_term(term, reading.variables, known) for term in terms]
    first, constants = each[0], [one.constant for one in each if isinstance(one, Predictor)]
    if isinstance(first, ModelError) or levels is None:
        return first
    return replace(first, constant=np.array(constants), levels=levels)


def _rows(term: LossTerm) -> int:
    prediction = term.prediction
    if isinstance(prediction, Design):
        return int(prediction.shape[0])
    return int(prediction.value_shape()[0]) if isinstance(prediction, Affine) else 0


def _of_term(
    term: LossTerm, variables: tuple[Variable, ...], known: Mapping[int, FloatArray]
) -> Predictor | ModelError:
    prediction = term.prediction
    if isinstance(prediction, Design):
        vector = [variable for variable in variables if variable.shape]
        pieces: tuple[Piece, ...] = (Piece(vector[0], None, prediction),)
        offset: Any = None
    elif isinstance(prediction, Affine):
        pieces, offset = prediction.pieces, prediction.offset
    else:
        pieces, offset = (), None
    data = [piece for piece in pieces if piece.design is not None]
    rest = [piece for piece in pieces if piece.design is None]
    several = len(data) != 1 or data[0].multiplied
    own = np.ndim(offset) > 0  # of every observation
    if several or any(len(piece.shape) > 1 for piece in rest):
        return ModelError(
            "predict() is for predictions such as `A @ w + c`, with one data matrix, not for "
            f"{prediction!r}; write it of the new data and take its value, `(new @ w + c).value`. "
            "A data frame that was encoded is `sm.encode(new, like=A)[0]`."
        )
    if any(piece.shape not in ((), data[0].shape[1:]) for piece in rest):
        return ModelError(
            "predict() knows no constants of new rows: the prediction has one for each observation."
        )
    constant = sum((_value(piece, known) for piece in rest), 0.0) + (
        0.0 if offset is None or own else offset
    )
    main = data[0]
    names = main.variable.names
    if names is not None and main.rows is not None:
        names = tuple(names[j] for j in main.rows.tolist())
    return Predictor(
        term.loss,
        term.classes,
        _value(main, known),
        constant,
        None if names is None else tuple(str(name) for name in names),
        getattr(main.design, "encoding", None) if main.rows is None else None,
        offset=own,
    )


def _value(piece: Piece, known: Mapping[int, FloatArray]) -> Any:
    """Return what stands behind the data matrix of a piece, for values by the variables' ids."""
    owner = piece.variable.owner
    value = np.asarray(known[id(piece.variable if owner is None else owner)], dtype=np.float64)
    value = value if owner is None else value.ravel()
    if piece.rows is not None:
        value = value[piece.rows]
    if piece.right is not None:
        value = value @ piece.right
    return piece.factor * value
