"""What losses share: checks of parameters and targets, elementary functions, two bases."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsemodel.interfaces import (
    CvxModelled,
    DataError,
    FloatArray,
    IntervalConjugable,
    Loss,
    TargetKind,
)
from sparsemodel.interfaces.numeric import real_number

# ---- parameters --------------------------------------------------------------------------------


def real(value: object, name: str, loss: str) -> float:
    """Return a finite number as a float, or raise an error that names the parameter."""
    return real_number(value, where=f"{loss}: {name}", error=DataError)


def positive(value: object, name: str, loss: str, *, instead: str = "") -> float:
    """Return a positive number; ``instead`` says what to use where zero was meant."""
    number = real(value, name, loss)
    if number <= 0.0:
        raise DataError(f"{loss}: {name} must be positive, got {number:g}{instead}.")
    return number


def level(value: object, name: str, loss: str, kind: str) -> float:
    """Return a number strictly between 0 and 1, the level of a quantile or an expectile."""
    tau = real(value, name, loss)
    if not 0.0 < tau < 1.0:
        hint = f"; for the {tau:g} % {kind} pass {tau / 100:g}" if 1.0 < tau < 100.0 else ""
        raise DataError(f"{loss}: {name} must lie strictly between 0 and 1, got {tau:g}{hint}.")
    return tau


def nonnegative(value: object, name: str, loss: str) -> float:
    """Return a number that is not negative."""
    number = real(value, name, loss)
    if number < 0.0:
        raise DataError(f"{loss}: {name} must not be negative, got {number:g}.")
    return number


# ---- targets -----------------------------------------------------------------------------------


def vector(y: FloatArray, where: str, loss: str) -> FloatArray:
    """Return ``y`` if it is one-dimensional, or raise :class:`DataError`."""
    if y.ndim != 1:
        hint = "."
        if y.ndim == 2:
            hint = (
                "; pass y.ravel()."
                if 1 in y.shape
                else ". Add a term for each column: the sum over j of "
                f"sm.{loss}(A @ W[:, j], Y[:, j]), with sm.card(W, axis=1) <= k."
            )
        raise DataError(
            f"{where}: {loss} needs one number per observation (a one-dimensional array), "
            f"got an array of shape {y.shape}{hint}"
        )
    return y


def counts(y: FloatArray, where: str, loss: str) -> FloatArray:
    """Return a vector without negative entries, or raise :class:`DataError`."""
    vector(y, where, loss)
    bad = y < 0.0
    if np.any(bad):
        raise DataError(f"{where}: {loss} needs counts (numbers >= 0), found {first_bad(bad, y)}.")
    return y


def amounts(y: FloatArray, where: str, loss: str) -> FloatArray:
    """Return a vector of positive entries, or raise :class:`DataError`."""
    vector(y, where, loss)
    bad = y <= 0.0
    if np.any(bad):
        raise DataError(
            f"{where}: {loss} needs positive numbers, found {first_bad(bad, y)}; "
            "for counts with zeros use poisson_loss."
        )
    return y


def signs(y: FloatArray, where: str, loss: str) -> FloatArray:
    """Return labels as -1 and +1; 0/1 and -1/1 are understood, all else is a DataError."""
    vector(y, where, loss)
    positive = y == 1.0
    if np.all(positive | (y == -1.0)):
        return y
    if np.all(positive | (y == 0.0)):
        return np.where(positive, 1.0, -1.0)
    found = np.unique(y)
    shown = ", ".join(f"{v:g}" for v in found[:6]) + (", ..." if found.size > 6 else "")
    advice = (
        "recode them as 0 and 1"
        if found.size <= 2
        else "of k in m trials stack the rows twice, with targets 1 and 0 and weights "
        "np.r_[k, m - k]"
        if found[0] >= 0.0 and found[-1] <= 1.0
        else "choose one class against the rest (for example y == value), use multinomial_loss "
        "for several classes (ordinal_loss where they have an order), or "
        "squared_loss or huber_loss for a numerical target"
    )
    raise DataError(
        f"{where}: {loss} needs two classes coded 0/1 or -1/1, found {found.size} different "
        f"values ({shown}); {advice}."
    )


def first_bad(bad: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], y: FloatArray) -> str:
    """Return ``"3 entries, first at index 7: -2"`` for the entries marked in ``bad``."""
    where = np.flatnonzero(bad)
    entries = "1 entry" if where.size == 1 else f"{where.size} entries, the first"
    return f"{entries} at index {where[0]} (value {y.ravel()[where[0]]:g})"


# ---- elementary functions ----------------------------------------------------------------------

# SciPy's special functions take longer to load than a fit. Losses with exp(u) in them leave the
# range of floating point within reach of a bad step: beyond LIMIT they go on along the tangent,
# still convex, still once differentiable, below the true function, with the same conjugate at every
# slope met before. exp(LIMIT) is about 2e130: gradients can be squared, and no fit is near.

LIMIT = 300.0


def exponential(u: FloatArray) -> FloatArray:
    """Return ``exp(u)``, along its tangent beyond ``LIMIT``."""
    capped = np.minimum(u, LIMIT)
    return np.exp(capped) * (1.0 + (u - capped))


def exponential_slope(u: FloatArray) -> FloatArray:
    """Return the derivative of :func:`exponential`.

    It also serves as the second derivative, which is zero beyond ``LIMIT``; there the value kept
    is what brings a Newton step back.
    """
    return np.exp(np.minimum(u, LIMIT))


def chance(v: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-v))``, to full relative precision at both ends."""
    small: FloatArray = np.exp(-np.abs(v))
    return np.where(v >= 0.0, 1.0, small) / (1.0 + small)


def entropy(s: FloatArray) -> FloatArray:
    """Return ``-s log(s)`` by entry: 0 at zero, -inf below."""
    logs = np.log(s, out=np.zeros_like(s), where=s > 0.0)
    return np.where(s < 0.0, -np.inf, 0.0 - s * logs)


def within(a: FloatArray, lower: FloatArray, upper: FloatArray, values: FloatArray) -> FloatArray:
    """Return ``values`` where ``lower <= a <= upper`` and infinity elsewhere."""
    return np.where((lower <= a) & (a <= upper), values, np.inf)


# ---- bases -------------------------------------------------------------------------------------


class _Nonnegative(IntervalConjugable, CvxModelled, Loss):
    """A loss with a bounded or unbounded interval of slopes that is zero at its best."""

    __slots__ = ()

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0


class OfTwoClasses(_Nonnegative):
    """A loss of labels -1 and +1, of slopes ``a`` with ``-1 <= a y <= 0`` by default."""

    __slots__ = ()
    target_kind: ClassVar[TargetKind] = TargetKind.TWO_CLASSES

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return signs(y, where, self.name)


class OfNumbers(_Nonnegative):
    """A loss of one number per observation."""

    __slots__ = ()

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return vector(y, where, self.name)
