"""Checks of the hyper-parameters of losses."""

from __future__ import annotations

from sparsemodel.interfaces import DataError
from sparsemodel.interfaces.numeric import real_number


def real(value: object, name: str, loss: str) -> float:
    """Return a finite number as a float, or raise an error that names the parameter."""
    return real_number(value, where=f"{loss}: {name}", error=DataError)


def positive(value: object, name: str, loss: str, *, instead: str = "") -> float:
    """Return a positive number; ``instead`` says what to use where zero was meant."""
    number = real(value, name, loss)
    if number <= 0.0:
        raise DataError(f"{loss}: {name} must be positive, got {number:g}{instead}.")
    return number


def nonnegative(value: object, name: str, loss: str) -> float:
    """Return a number that is not negative."""
    number = real(value, name, loss)
    if number < 0.0:
        raise DataError(f"{loss}: {name} must not be negative, got {number:g}.")
    return number


__all__ = ["nonnegative", "positive", "real"]
