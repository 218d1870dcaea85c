"""Exit codes, and the one line an error becomes."""

from __future__ import annotations

from enum import IntEnum

from sparsemodel.cli.printing import message
from sparsemodel.interfaces import (
    BackendContractError,
    BackendUnavailableError,
    CertificateError,
    DataError,
    DataTypeError,
    InfeasibleError,
    MissingDependencyError,
    SeparableDataError,
    SparseModelError,
    UnboundedError,
    UnsupportedProblemError,
)


class Exit(IntEnum):
    """What the shell gets; the values are part of the interface and never change meaning."""

    OK = 0
    INTERRUPTED_OUTPUT = 1
    """The output pipe was closed early."""
    USAGE = 2
    """Invalid command-line arguments."""
    DATA = 3
    """A file cannot be read, or its content cannot be used."""
    PROBLEM = 4
    """The problem has no solution, or no backend can solve it."""
    MISSING = 5
    """An optional package or a backend is not installed."""
    OUTPUT = 6
    """A file to be written exists already, or cannot be written."""
    REFUTED = 7
    """``verify``: the certificate does not hold for these data."""
    INTERNAL = 70
    """A bug, here or in a plug-in."""
    INTERRUPTED = 130


class UsageError(SparseModelError, ValueError):
    """Invalid command-line arguments, found after parsing."""


class OutputError(SparseModelError, OSError):
    """A file to be written exists already, or cannot be written."""


_CODES: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (OutputError, Exit.OUTPUT),
    ((MissingDependencyError, BackendUnavailableError), Exit.MISSING),
    (BackendContractError, Exit.INTERNAL),
    (
        (InfeasibleError, SeparableDataError, UnboundedError, UnsupportedProblemError),
        Exit.PROBLEM,
    ),
    ((DataError, DataTypeError, CertificateError, OSError, UnicodeError), Exit.DATA),
    (SparseModelError, Exit.USAGE),
    (MemoryError, Exit.DATA),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def code_of(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.INTERNAL)


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError):
        return "not enough memory for these data"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, SparseModelError):
        where = f"{error.filename}: " if error.filename else ""
        return message(f"{where}{error.strerror}")
    text = message(str(error)) or type(error).__name__
    if code_of(error) is Exit.INTERNAL and not isinstance(error, SparseModelError):
        text = f"internal error, {type(error).__name__}: {text} (run with --traceback to see where)"
    return text
