"""The error tree. Every message says what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar


class SparseModelError(Exception):
    """Base of every error that sparsemodel raises on purpose."""


class ModelError(SparseModelError, ValueError):
    """The declaration is not valid: no loss, two objectives, a non-convex term."""


class DataError(SparseModelError, ValueError):
    """The data are unusable: NaN or infinite entries, wrong shapes, labels not understood."""


class DataTypeError(SparseModelError, TypeError):
    """An argument has a type or dtype that cannot be converted to the one that is needed."""


class InfeasibleError(SparseModelError, ValueError):
    """It is proved that no point satisfies the constraints, or that a loss is defined at none."""


class UnboundedError(SparseModelError, ValueError):
    """The objective has no minimiser: it is unbounded below, or its infimum is not attained.

    ``x`` is a point far along the way, in the coordinates of ``form``, where these are known.
    """

    def __init__(self, message: str, form: Any = None, x: Any = None) -> None:
        super().__init__(message)
        self.form, self.x = form, x


class SeparableDataError(UnboundedError):
    """A classification loss without ridge tends to its infimum as the coefficients grow."""


class NotSolvedError(SparseModelError, RuntimeError):
    """There is no result: none was asked for, or no feasible point was found in time."""


class UnsupportedProblemError(SparseModelError, ValueError):
    """The requested backend (or every backend) cannot solve the problem; ``reasons`` lists why."""

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


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name that was probably meant; exchanged letters are the likeliest slip."""
    from difflib import get_close_matches

    table = sorted(known)
    exchanged = [one for one in table if sorted(one) == sorted(name)]
    return next(iter(get_close_matches(name, exchanged or table, n=1, cutoff=cutoff)), None)


class NameHints:
    """Errors for missing attributes that say what to write for names of other packages."""

    __slots__ = ()

    _hints_by_name: ClassVar[dict[str, str]] = {}
    """What to write, by the name that is missing."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = self._hints_by_name.get(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + (f": {hint}" if hint else ""),
                name=name,
                obj=self,
            )


class WithNamedOptions:
    """A dataclass whose error for an option that it does not have lists those that it has."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, *_values: Any, **options: Any) -> WithNamedOptions:
            known = [one.name for one in fields(cls) if one.init] if options else ()
            for name in options:
                if name not in known:
                    close = closest(name, known)
                    hint = f"is {close!r} meant?" if close else f"it has {', '.join(known)}."
                    raise DataTypeError(f"{cls.__name__} has no option {name!r}; {hint}")
            return super().__new__(cls)
