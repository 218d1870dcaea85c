"""Where a run begins: from what the user gave to the coordinates of the form."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.compiler.canonical.layout import VariableLayout
from sparsemodel.driver import Outcome
from sparsemodel.interfaces import FloatArray, Form, ModelError
from sparsemodel.interfaces.numeric import described
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.numerics import select


def given_start(
    start: Any,
    form: Form,
    layout: VariableLayout,
    variables: tuple[Variable, ...],
    fitting: bool = False,
) -> FloatArray | None:
    """Return the start as coordinates of ``form``.

    With ``fitting`` one that has too many nonzero units is None.

    Raises
    ------
    ModelError
        When it is of another shape, or has more nonzero units than the constraint allows.
    """
    if isinstance(start, str):
        if start != "value":
            raise ModelError(f"start must be an array, a mapping or 'value', not {start!r}.")
        values = {id(v): v.value for v in variables}
    elif isinstance(start, dict):
        values = {id(_own(key, variables)): value for key, value in start.items()}
    else:
        vectors = [v for v in variables if v.shape and v.tallied is None]
        if len(vectors) != 1:
            raise ModelError("With several variables, start is a mapping {variable: array}.")
        values = {id(vectors[0]): start}
    checked = []
    for variable in variables:
        probe = Variable(variable.shape, name=f"the start of {variable.label}")
        given = values.get(id(variable))
        if variable.tallied is not None:
            owner, rows, sizes = variable.tallied
            whole = values.get(id(owner))
            given = None if whole is None else np.minimum(np.asarray(whole)[rows] / sizes, 1.0)
        probe.value = given
        checked.append(probe.value)
    x = layout.join(tuple(checked))
    count, k = form.cardinality.count(x), form.cardinality.budget
    if count > k and fitting:
        return None
    if count > k:
        raise ModelError(
            f"The start has {count} nonzero units, and the constraint allows {k}. Set the others "
            "to zero."
        )
    return x


def _own(key: Any, variables: tuple[Variable, ...]) -> Variable:
    """Return the problem's variable that a key is; of CVXPY's, the one that stands for it."""
    for variable in variables:
        if key is variable or (key is variable.proxied and key is not None):
            return variable
    raise ModelError(
        f"start has a value for {described(key)}, which is not a variable of the problem; its "
        "keys are the variables themselves, `{w: array}`."
    )


def warm_start(form: Form, last: Outcome | None) -> FloatArray | None:
    """Return the last solution, fitted to the form's present constraints; None without one."""
    if last is None or last.x.shape != form.shape:
        return None
    x = np.zeros(form.shape)
    support = select(form.cardinality, last.x)
    x[support] = last.x[support]
    if form.box is not None:
        x = form.box.clipped(x)
    return x
