"""The error tree. Every message says what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence


class SparseModelError(Exception):
    """Base of every error that sparsemodel raises on purpose."""


class ModelError(SparseModelError, ValueError):
    """The declaration is not valid: no loss, two objectives, a non-convex term."""


class DataError(SparseModelError, ValueError):
    """The data are unusable: NaN or infinite entries, wrong shapes, labels not understood."""


class DataTypeError(SparseModelError, TypeError):
    """An argument has a type or dtype that cannot be converted to the one that is needed."""


class InfeasibleError(SparseModelError, ValueError):
    """No point satisfies the constraints."""


class UnboundedError(SparseModelError, ValueError):
    """The objective has no minimiser: it is unbounded below, or its infimum is not attained."""


class SeparableDataError(UnboundedError):
    """A classification loss without ridge tends to its infimum as the coefficients grow."""


class NotSolvedError(SparseModelError, RuntimeError):
    """A result was requested from a problem that has not been solved yet."""


class UnsupportedProblemError(SparseModelError, ValueError):
    """The requested backend (or every backend) objects to the problem; the reasons are listed."""

    def __init__(self, message: str, reasons: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reasons: tuple[str, ...] = tuple(reasons)


class BackendUnavailableError(SparseModelError, LookupError):
    """There is no backend of that name, or its plug-in could not be loaded."""


class BackendContractError(SparseModelError, RuntimeError):
    """A backend broke its contract, for instance by returning an infeasible point."""


class BoundError(SparseModelError, RuntimeError):
    """A lower bound lies above the value of a feasible point: a bound or a loss is wrong."""


class CertificateError(SparseModelError, ValueError):
    """A certificate file is malformed, was tampered with, or belongs to other data."""


class MissingDependencyError(SparseModelError, ImportError):
    """An optional package that the call needs is not installed."""
