"""Numbers that cross the interfaces: types of arrays, and one check for all single numbers.

Errors name what the user calls a number.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces.errors import DataError, DataTypeError, ModelError, SparseModelError

FloatArray: TypeAlias = NDArray[np.float64]
"""Vectors and small matrices of the solvers; always float64, whatever a design stores."""

IntArray: TypeAlias = NDArray[np.intp]
"""Indices of coordinates, groups or observations."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""Masks over coordinates or observations."""


UNIT_ROUNDOFF = 2.0**-53
"""Of float64."""


def is_masked(values: Any) -> bool:
    """Return whether ``values`` are a masked array, without loading ``numpy.ma`` to ask it."""
    loaded = sys.modules.get("numpy.ma")
    return loaded is not None and isinstance(values, loaded.MaskedArray)


def plain_array(values: Any, where: str) -> NDArray[Any]:
    """Return ``values`` as an array of whatever they are; nested lists have rows of one length."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(f"{where} must be an array, with rows of one length.") from error


def dimensions(values: Any, where: str) -> int:
    """Return the number of dimensions; nested lists have rows of one length."""
    return int(np.ndim(values if hasattr(values, "ndim") else plain_array(values, where)))


def rowwise(factors: FloatArray, values: FloatArray) -> FloatArray:
    """Return the rows (the entries) of ``values``, each times its factor."""
    return factors * values if values.ndim == 1 else factors[:, None] * values


def viewed(index: IntArray) -> IntArray | slice:
    """Return sorted indices, where they are consecutive, as a slice: a view, not a copy."""
    if index.size and index[-1] - index[0] == index.size - 1:
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def least_squares(
    matrix: FloatArray, right: FloatArray, *, rcond: float | None = None
) -> FloatArray:
    """Return the shortest ``x`` among those with the least ``|matrix @ x - right|``.

    Raises
    ------
    LinAlgError
        Where the matrix is not finite: LAPACK would write about it to standard error, too.
    """
    if not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError("least squares of infs or NaNs")
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=rcond)[0])


def real_number(
    value: Any,
    *,
    where: str,
    minimum: float | None = None,
    error: type[SparseModelError] = ModelError,
) -> float:
    """Return ``value`` as a finite float, at least ``minimum``.

    Parameters
    ----------
    value
        Any real number: Python's, NumPy's, a fraction.
    where
        What the user calls it, for the messages.
    minimum
        The least value there may be.
    error
        Class of the error for a number of the right kind that cannot be used.

    Raises
    ------
    DataTypeError
        When it is no real number, for instance a text or a truth value.
    """
    value = _checked(value, where, "a real number")
    try:
        with np.errstate(all="ignore"):  # longer floats that overflow show in the result
            number = float(value)
    except OverflowError as overflow:
        raise error(
            f"{where} is {shown(value)}, beyond the largest double (1.8e308); use a smaller number."
        ) from overflow
    if not np.isfinite(number):
        raise error(f"{where} must be finite, not {number}.")
    if minimum is not None and number < minimum:
        raise error(f"{where} must be at least {minimum:g}, not {number:g}.")
    return number


def whole_number(
    value: Any,
    *,
    where: str,
    minimum: int | None = None,
    maximum: int | None = 2**63 - 1,
    hint: str = "",
) -> int:
    """Return ``value`` as an int from ``minimum`` to ``maximum``; ``2.0`` is whole, ``True`` not.

    ``hint`` is what to write instead. Errors are those of :func:`real_number`.
    """
    value = _checked(value, where, "a whole number")
    try:
        number = int(value)
    except (OverflowError, ValueError):  # infinite, NaN
        number = None
    if number is None or number != value:
        raise ModelError(f"{where} must be a whole number, not {shown(value)}.{hint}")
    if minimum is not None and number < minimum:
        raise ModelError(f"{where} must be at least {minimum}, not {shown(number)}.")
    if maximum is not None and number > maximum:
        raise ModelError(f"{where} must be at most {shown(maximum)}, not {shown(number)}.")
    return number


_COMMON = {"max_iter": "at least 0", "tol": "at least 0"}
"""What the options that most backends have must be."""


def check_options(options: object, **allowed: str) -> None:
    """Raise :class:`ModelError` unless the options of a backend are what is allowed, in words.

    Words are joined by ``or``: ``positive``, ``at least 1``, ``in [0, 1)``, ``None``, texts in
    quotes. ``max_iter`` and ``tol`` must be at least 0 unless something else is said of them.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_options(SimpleNamespace(tol=1.0), tol="in (0, 1) or None")
    Traceback (most recent call last):
    sparsemodel.interfaces.errors.ModelError: tol must be in (0, 1) or None, not 1.
    """
    common = {name: words for name, words in _COMMON.items() if hasattr(options, name)}
    for name, words in (common | allowed).items():
        value = getattr(options, name)
        if not any(_allows(word, value) for word in words.split(" or ")):
            raise ModelError(f"{name} must be {words}, not {shown(value)}.")
        if name == "max_iter" and value is not None:
            whole_number(value, where=name)


def _allows(word: str, value: Any) -> bool:
    if value is None or isinstance(value, str):
        return word == repr(value)
    ends = _ends(word)
    if ends is None or not isinstance(value, (int, float, numbers.Real)):
        return False
    low, high, with_low, with_high = ends
    number: Any = value
    return bool(
        low < number < high or (number == low and with_low) or (number == high and with_high)
    )


@cache
def _ends(word: str) -> tuple[float, float, bool, bool] | None:
    """Return the ends of the numbers that a word allows, and whether they belong to them."""
    if word.startswith("at least "):
        return float(word.removeprefix("at least ")), math.inf, True, True
    if word == "positive":
        return 0.0, math.inf, False, True
    if not word.startswith("in "):
        return None
    low, high = (float(end) for end in word[len("in (") : -1].split(", "))
    return low, high, "[" in word, "]" in word


def random_numbers(seed: Any) -> np.random.Generator:
    """Return the generator of a seed that a user gave."""
    return np.random.default_rng(checked_seed(seed))


def checked_seed(seed: Any) -> int:
    """Return a seed: a whole number that is not negative."""
    return whole_number(seed, where="seed", minimum=0, maximum=2**128)


def _checked(value: Any, where: str, wanted: str) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise DataTypeError(f"{where} must be {wanted}, not {described(value)}.")
    return value


def is_one_of(value: Any, words: Iterable[str]) -> bool:
    """Return whether a value is one of the words; arrays and other objects are none."""
    return isinstance(value, str) and value in words


def described(value: Any) -> str:
    """Return what a value is, for a message: its type, with its shape or its shortened text."""
    kind, shape = type(value).__name__, getattr(value, "shape", ())
    return f"{kind} of shape {shape}" if shape else f"{kind} {shown(value)}"


def shown(value: Any) -> str:
    """Return ``repr(value)``, shortened; also of whole numbers that Python refuses to print."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return f"a whole number of about {value.bit_length() * 0.30103:.0f} digits"
    text = f"{value:g}" if isinstance(value, (float, np.floating)) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def known_sum(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of sizes, None where one of them is not known."""
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total
