"""What comes from CVXPY: recognised, its constants followed like parameters, the rest translated.

Nothing here imports CVXPY: its objects are recognised by the module of their class. The functions
that translate expressions need the whole language, and the language needs them; they are entered
here by ``sparsemodel.modelling.from_cvxpy``, which every import of the language loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from sparsemodel.interfaces import ModelError
from sparsemodel.modelling.expressions.parameters import Parameter

_followed: WeakValueDictionary[int, Parameter] = WeakValueDictionary()
"""Our parameter for each constant of CVXPY that has parameters; it holds that constant."""

_reread: ContextVar[bool] = ContextVar("reread", default=False)
"""Whether what is read now is read again when a parameter in it changes."""


_translators: dict[str, Callable[[Any], Any]] = {}
"""What ``translate_with`` entered."""


def is_cvxpy(thing: Any) -> bool:
    """Return whether ``thing`` is CVXPY's: a variable, an expression, a constraint, a goal."""
    return type(thing).__module__.partition(".")[0] == "cvxpy"


def followed(constant: Any) -> Parameter:
    """Return the parameter whose value is always that of a constant CVXPY expression."""
    found = _followed.get(id(constant))
    if found is None or found.proxied is not constant:
        found = Parameter.of(constant, str(constant))
        _followed[id(constant)] = found
    return found


def taken(thing: Any) -> Any:
    """Return a constant of CVXPY as a parameter or a number; anything else as it is."""
    if not is_cvxpy(thing) or not hasattr(thing, "is_constant") or not thing.is_constant():
        return thing
    return followed(thing) if thing.parameters() else thing.value


def value_of(constant: Any) -> Any:
    """Return the present value of a constant CVXPY expression.

    Raises
    ------
    ModelError
        When a parameter in it has no value, or when its changes could not be noticed.
    """
    inside = constant.parameters()
    missing = [p.name() for p in inside if p.value is None]
    if missing:
        raise ModelError(
            f"The CVXPY parameter {', '.join(missing)} has no value: set "
            f"{', '.join(f'{name}.value' for name in missing)} before solving."
        )
    if inside and not _reread.get():
        names = ", ".join(p.name() for p in inside)
        raise ModelError(
            f"The CVXPY parameter {names} in {constant} cannot be followed here, in a call of "
            "sparsemodel. Write the whole objective with CVXPY's atoms, in cp.Minimize(...), or "
            "use sm.Parameter for it."
        )
    value = constant.value
    if not inside:
        return value
    return value.copy() if hasattr(value, "copy") else np.array(value)  # it may be changed in place


def translate_with(
    affine: Callable[[Any], Any], objective: Callable[[Any], Any], parts: Callable[[Any], Any]
) -> None:
    """Enter the functions that make affine expressions, objectives and parts of CVXPY's."""
    _translators.update(affine=affine, objective=objective, parts=parts)


def as_ours(thing: Any) -> Any:
    """Return an affine expression of CVXPY as ours; anything else as it is.

    Raises
    ------
    ModelError
        When it holds an operation that is not understood; the message names it.
    """
    return _translators["affine"](thing) if is_cvxpy(thing) else thing


def parts_as_ours(thing: Any) -> list[Any]:
    """Return the parts of a stack of CVXPY's as ours; anything else as the only part."""
    return list(_translators["parts"](thing)) if is_cvxpy(thing) else [thing]


def objective_as_ours(thing: Any) -> Any:
    """Return a convex expression of CVXPY as a sum of our terms; anything else as it is.

    Raises
    ------
    ModelError
        When an atom is not recognised, or not convex here; the message names it.
    """
    return _translators["objective"](thing) if is_cvxpy(thing) else thing


@contextmanager
def read_again() -> Iterator[None]:
    """Take the present values of CVXPY's parameters: the caller reads again when they change."""
    token = _reread.set(True)
    try:
        yield
    finally:
        _reread.reset(token)


def is_read_again() -> bool:
    """Return whether what is read now is read again when a parameter in it changes."""
    return _reread.get()
