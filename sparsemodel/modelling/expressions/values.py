"""Checks of the numbers users hand over, with errors that say what was found and where."""

from __future__ import annotations

import numbers
import operator
import sys
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemodel.designs.remote.foreign import fetched, is_foreign
from sparsemodel.designs.tables.frames import frame_array, series_array
from sparsemodel.interfaces import DataError, DataTypeError, FloatArray, IntArray, ModelError
from sparsemodel.interfaces.numeric import (
    described,
    dimensions,
    is_masked,
    plain_array,
    real_number,
    whole_number,
)


def array_of(values: Any, where: str) -> Any:
    """Return a DataFrame or a Series (anything with ``to_numpy``) as an array."""
    two = getattr(values, "ndim", 1) == 2
    return frame_array(values, where) if two else series_array(values, where)


def _plain(values: Any, where: str) -> npt.NDArray[Any]:
    """Return ``values`` as an array of whatever they are."""
    if hasattr(values, "to_numpy"):
        values = array_of(values, where)
    if is_foreign(values):
        values = fetched(values, where)
    if is_masked(values):
        raise DataTypeError(f"{where} must not be masked; fill or drop the missing entries first.")
    return plain_array(values, where)


def real_array(values: Any, *, where: str, ndim: tuple[int, ...] = (1,)) -> FloatArray:
    """Return ``values`` as a finite float64 array, or raise an error that names ``where``."""
    array = _plain(values, where)
    if array.dtype.kind == "O":
        array = _from_objects(array, where)
    if array.dtype.kind == "c":
        raise DataTypeError(f"{where} must be real numbers, not complex ones.")
    refuse_fields(array, where)
    if array.dtype.kind not in "biuf":
        raise DataTypeError(
            f"{where} must be numbers, not of dtype {array.dtype}. Convert with astype(float)."
        )
    if array.ndim not in ndim:
        wanted = " or ".join(f"{d}-dimensional" for d in ndim)
        hint = ""
        if 1 in ndim and array.ndim == 2 and 1 in array.shape:
            hint = " Write `.ravel()` behind it."
        elif 1 in ndim and array.ndim == 0:
            hint = f" Write an array of it, `np.full(n, {array[()]})`."
        raise DataError(f"{where} must be {wanted}, not of shape {array.shape}.{hint}")
    with np.errstate(all="ignore"):  # longer floats that overflow are infinite, which is said
        out = array.astype(np.float64, copy=False)
    finite = np.isfinite(out)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        shown = first[0] if len(first) == 1 else first
        raise DataError(
            f"{where} must be finite: {int((~finite).sum())} value(s) are NaN or infinite, the "
            f"first at index {shown}. Drop or impute them."
        )
    return out


def refuse_fields(values: Any, where: str) -> None:
    """Refuse an array of records, such as scikit-survival's, with what to write for it."""
    fields = getattr(getattr(values, "dtype", None), "names", None)
    if fields:
        # Of survival the times come first, then the events.
        order = sorted(fields, key=lambda name: values.dtype[name].kind == "b")
        columns = ", ".join(f"y[{name!r}]" for name in order)
        raise DataTypeError(
            f"{where} has the fields {', '.join(fields)}; make columns of them, for survival the "
            f"times first, then the events: `np.column_stack([{columns}])`."
        )


def _from_objects(array: Any, where: str) -> Any:
    if array.size and all(isinstance(v, numbers.Real) for v in array.ravel().tolist()):
        try:
            return array.astype(np.float64)
        except OverflowError as error:
            raise DataError(
                f"{where} must be at most the largest double (1.8e308); rescale them."
            ) from error
    raise DataTypeError(
        f"{where} must be numbers, not of dtype object, which can hold anything; convert with "
        "astype(float) after encoding text and missing values."
    )


def checked_shape(shape: Any, what: str) -> tuple[int, ...]:
    """Return the shape of a variable or a parameter as a tuple of at most two positive sizes."""
    sizes = shape if isinstance(shape, tuple) else (shape,)
    try:
        checked = tuple(operator.index(s) for s in sizes)
    except TypeError as error:
        raise DataTypeError(
            f"The shape of a {what} is a whole number or a tuple of them, not {shape!r}. "
            "Give a name with name=."
        ) from error
    if len(checked) > 2:
        raise ModelError(f"A {what} has at most two dimensions, not shape {checked}.")
    if any(s < 1 for s in checked):
        raise ModelError(f"Every dimension of a {what} must be at least 1, not {checked}.")
    return checked


def cardinality_bound(value: Any) -> int:
    """Return the ``k`` of ``card(w) <= k``: a whole number that is not negative."""
    k = whole_number(
        value,
        where="The k of card(...) <= k",
        minimum=0,
        maximum=None,  # more than there are coefficients means all of them
        hint=" Round it explicitly, e.g. int(k).",
    )
    return min(k, sys.maxsize)


def checked_prices(prices: Any, count: int) -> float | FloatArray:
    """Return prices as numbers: one, or one for each unit that is counted; none is negative."""
    several = dimensions(prices, "costs in costs @ chosen(...)") > 0
    where = "costs in costs @ chosen(...)" if several else "The price of card"
    if not several:
        return real_number(prices, where=where, minimum=0.0)
    array = plain_array(prices, where)
    if array.dtype.kind == "f" and np.any(array == np.inf):
        raise ModelError(
            f"{where} must be finite, and that at index {int(np.argmax(array == np.inf))} is "
            "infinite. What may not be in the model is zero, `w[out] == 0`."
        )
    found = real_array(prices, where=where)
    if found.size != count:
        raise ModelError(
            f"costs @ chosen(...) needs a cost for each of the {count} that are counted, "
            f"and has {found.size}."
        )
    if np.any(found < 0.0):
        raise ModelError(
            f"The costs in costs @ chosen(...) must not be negative, and the one at index "
            f"{int(np.argmax(found < 0.0))} is {found.min():g}. Do not count entries whose cost is "
            "negative; they are then always in the model."
        )
    return found


def flag(value: Any, name: str, of_some: str = "") -> bool:
    """Return a choice between True and False; a list of them would count as True."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return bool(value)
    hint = f" For some of the entries write a constraint, {of_some}." if of_some else ""
    raise DataTypeError(f"{name} must be True or False, not {described(value)}.{hint}")


def one_name(name: Any, several: str = "") -> str:
    """Return the name of a variable or a parameter as text."""
    if np.iterable(name) and not isinstance(name, str):
        hint = f" Names of the entries are `{several}=`." if several else ""
        raise DataTypeError(f"name must be text, not {described(name)}.{hint}")
    return text_of(name, "The name")


def text_of(value: Any, where: str) -> str:
    """Return ``value`` as text that can be written as UTF-8, which lone surrogates cannot."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where} is {text!a}, which cannot be written as UTF-8 (a lone surrogate at index "
            f"{error.start}); decode the text it comes from with its own encoding."
        ) from error
    return text


def names_of_entries(names: Any, count: int, label: str) -> tuple[str, ...]:
    """Return the names of the entries (rows) of a variable: one for each, all distinct."""
    if isinstance(names, str) or not np.iterable(names):
        raise DataTypeError(
            f"names must be a list with a name for each entry, not {described(names)}; "
            "the name of the whole is `name=`."
        )
    listed = list(names)
    for j, each in enumerate(listed):
        if not isinstance(each, Hashable):
            raise DataTypeError(
                f"Name {j} of {label} must be text, not {described(each)}; names is a list with "
                "a name for each entry."
            )
    checked = tuple(text_of(each, f"Name {j} of {label}") for j, each in enumerate(listed))
    if len(checked) != count:
        raise ModelError(
            f"names has {len(checked)} entries, and {label} has {count}; give one name per entry."
        )
    if len(set(checked)) < count:
        times = Counter(checked)
        i = next(i for i, each in enumerate(checked) if times[each] > 1)
        raise ModelError(
            f"Entries {i} and {checked.index(checked[i], i + 1)} of {label} are both named "
            f"{checked[i]!r}; names (of a data frame, those of its columns) must be distinct."
        )
    return checked


def labels(values: Any, *, where: str) -> tuple[FloatArray, tuple[Any, ...] | None]:
    """Return a target as numbers, with its classes if it came as text or booleans.

    Two distinct strings become 0 and 1 in sorted order, more become 0, 1, 2, ...; booleans
    become 0 and 1; numbers stay what they are.
    """
    array = _plain(values, where)
    if array.dtype.kind == "b":
        return array.astype(np.float64), (False, True)
    text = array.dtype.kind in "US" or array.dtype.kind == "T"
    if array.dtype.kind == "O" and array.size:
        text = all(isinstance(v, str) for v in array.ravel().tolist())
    if text:
        classes, codes = np.unique(array.astype(str), return_inverse=True)
        named = tuple(text_of(c, f"A class of {where}") for c in classes)
        return codes.reshape(array.shape).astype(np.float64), named
    return real_array(array, where=where, ndim=(1, 2)), None


def names_of_groups(groups: Any) -> tuple[str, ...] | None:
    """Return the labels of groups in the order of their numbers, where these are text."""
    array = np.asarray(array_of(groups, "groups") if hasattr(groups, "to_numpy") else groups)
    if array.dtype.kind == "O":
        array = array.astype(str)
    return tuple(np.unique(array).tolist()) if array.dtype.kind == "U" else None


def group_codes(groups: Any, shape: tuple[int, ...], *, whole: bool) -> IntArray:
    """Return the labels as numbers: one for each entry, for each row of a matrix, or, ``whole``,
    for each entry of a matrix, in its shape."""
    size = shape[0]
    lists = isinstance(groups, (list, tuple)) and any(isinstance(g, (list, tuple)) for g in groups)
    labelled = whole and len(shape) == 2 and lists and {np.size(g) for g in groups} == {shape[1]}
    if lists and not (labelled and len(groups) == size):
        raise ModelError(
            f"groups has one label for each of the {size} entries, equal for those that count "
            "together, not a list of entries for each group: `[0, 0, 1]` for [[0, 1], [2]]."
        )
    if isinstance(groups, Mapping):
        raise ModelError(
            "groups has one label for each entry in its order, and this is a mapping: write "
            "`groups=[labels[name] for name in w.names]`."
        )
    array = np.asarray(array_of(groups, "groups") if hasattr(groups, "to_numpy") else groups)
    if whole and len(shape) == 2 and array.shape == shape:
        array, size = array.ravel(), array.size
    if array.shape != (size,):
        raise ModelError(
            f"groups needs one label for each of the {size} entries, and its shape is "
            f"{array.shape}."
        )
    if array.dtype.kind == "f" and np.any(np.isnan(array)):
        raise ModelError(f"groups has no label at index {int(np.argmax(np.isnan(array)))} (NaN).")
    if array.dtype.kind == "O":
        array = array.astype(str)
    return np.unique(array, return_inverse=True)[1].reshape(-1)
