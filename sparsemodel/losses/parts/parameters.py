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
