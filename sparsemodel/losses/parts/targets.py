"""Checks of targets that several losses share, with errors that say what was found."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import DataError, FloatArray


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
