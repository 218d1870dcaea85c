"""What a path follows: one parameter, in one constraint alone, its values, and ridges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.interfaces import Cardinality, FloatArray, InfeasibleError, ModelError
from sparsemodel.interfaces.numeric import plain_array, shown, whole_number
from sparsemodel.modelling.declared import Declared, Reading, quantities
from sparsemodel.modelling.expressions.comparisons import CardinalityConstraint, Constraint
from sparsemodel.modelling.expressions.objective_terms import Price
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity, parameters_in
from sparsemodel.modelling.expressions.values import real_array


def followed_values(k: Any, values: Any, reading: Reading) -> tuple[float, bool]:
    """Return the largest value that a path over ``k`` follows, and whether there is another limit.

    Other limits, and several that ``k`` is in, hold for every value as they were declared.

    Raises
    ------
    ModelError
        When ``k`` is not the limit of a cardinality constraint, or when the problem changes with
        it in any other way: a path changes the limit alone.
    """
    if not isinstance(k, Parameter):
        raise ModelError("path takes a Parameter and values, or values alone.")
    if values is None:
        raise ModelError("path(k, values) needs the values of k, for example range(1, 51).")
    limits = [c for c in reading.constraints if _is_limit(c, k)]
    if not limits:
        raise ModelError(
            f"{k!r} is not the limit of a cardinality constraint of this problem; set its "
            "value and solve again instead."
        )
    given = [*values[:1], *values[-1:]] if isinstance(values, range) else values  # may be long
    numbers = plain_array(list(given) if hasattr(given, "__iter__") else [], "The k of a path")
    if not numbers.size or numbers.dtype.kind not in "iuf":
        raise ModelError("A path needs whole numbers k, for example range(1, 51).")
    # The cardinality is compiled anew for every value, whatever limits depend on it.
    own = [_limit(c) for c in reading.constraints if isinstance(c, CardinalityConstraint)]
    own += [_limit(c) for c in limits]
    others = [
        p
        for _, quantity in quantities(reading.goal.objective, reading.constraints)
        if not any(quantity is limit for limit in own)
        for p in parameters_in(quantity)
    ]
    if any(_depends(p, k) for p in (*others, *reading.outer)):
        raise ModelError(
            f"{k!r} stands elsewhere in the problem too, and a path changes the limit alone; "
            "set its value and solve again for each."
        )
    prices = any(isinstance(term, Price) for term in reading.goal.objective.terms)
    known = sum(_limit(c) is not None for c in reading.constraints)
    twice = any(isinstance(c, CardinalityConstraint) for c in limits)
    uneven = twice and any(v.symmetric for v in reading.variables)  # pairs are two of k
    return float(numbers.max()), known > 1 or prices or uneven


def check_limits_are_set(declared: Declared) -> None:
    """Refuse a path over numbers alone where a limit has no value: it may be what is followed."""
    if declared.missing:
        return  # what is missing is said where it is needed
    for constraint in declared.reading.constraints:
        for k in parameters_in(_limit(constraint)):
            if k.missing:
                raise ModelError(
                    f"path(values) is about the total number of nonzeros, and {k!r} in "
                    f"{constraint!r} has no value. To follow {k!r}, write path({k!r}, values), "
                    f"for example path({k!r}, range(1, 51)); to hold it, set {k!r}.value."
                )


def _depends(parameter: Parameter, k: Parameter) -> bool:
    """Return whether a parameter is ``k``, or a CVXPY expression that ``k`` is a part of."""
    if parameter is k or parameter.proxied is None or k.proxied is None:
        return parameter is k
    return any(part is k.proxied for part in parameter.proxied.parameters())


def _limit(constraint: Constraint) -> Any:
    found = constraint.limit_on_units
    return None if found is None else found[0]


def _is_limit(constraint: Constraint, k: Parameter) -> bool:
    """Return whether a constraint is ``card(w) <= k``, or ``card(offdiag(Omega)) <= 2 * k``."""
    limit, entries = constraint.limit_on_units or (None, 0)
    if entries <= 1:
        return limit is k
    if not isinstance(limit, Quantity) or not any(p is k for p in limit.parameters()):
        return False
    for number in (1.0, 2.0):
        with k.assuming(number):
            if limit.value is None or float(limit.value) != entries * number:
                raise ModelError(
                    f"A path over edges needs card(offdiag(...)) <= {entries} * {k!r}, two "
                    f"entries for each edge, not {constraint!r}."
                )
    return True


def checked_ridges(values: Any) -> FloatArray:
    """Return the factors of the ridge, sorted and distinct, none negative."""
    factors = np.unique(real_array(np.atleast_1d(plain_array(values, "ridges")), where="ridges"))
    if factors.size == 0 or factors[0] < 0.0:
        raise ModelError("ridges must be numbers from 0 on, for example [1e-3, 0.1, 1.0].")
    return factors


def checked_ks(values: Any, sparsity: Cardinality, *, several: bool = False) -> list[int]:
    """Return the values of k, sorted and distinct; more than there are mean all of them.

    With ``several`` limits ``k`` may be that of a part, which says nothing of the others.
    """
    most = sparsity.units + sparsity.forced_units
    if isinstance(values, range):  # which may be long
        up = values if values.step > 0 else values[::-1]
        values = range(up.start, min(up.stop, most + up.step + 1), up.step)
    try:
        given = list(values)
    except TypeError as error:
        raise ModelError(f"A path needs several values of k, not {values!r}.") from error
    if not given:
        raise ModelError("A path needs whole numbers k, for example range(1, 51).")
    hint = " Write whole numbers, for example range(1, 51)."
    ks = sorted({min(whole_number(k, where="Every k of a path", hint=hint), most) for k in given})
    if ks[0] < 0:
        least = shown(ks[0])
        raise ModelError(f"Every k of a path must be at least 0, and the smallest is {least}.")
    if not several:
        _check_least(ks[0], sparsity)
    return ks


def _check_least(k: int, sparsity: Cardinality) -> None:
    """Raise an error unless ``k`` leaves room for what bounds keep away from zero."""
    forced = sparsity.forced_units
    if k < forced:
        raise InfeasibleError(
            f"A path over k = {k} has no solution there: the bounds keep {forced} of the units "
            f"away from zero. Begin at k = {forced}, or leave such bounds out."
        )
    if replace(sparsity, k=k).closing(np.empty(0, dtype=np.intp)) is None:
        raise InfeasibleError(
            f"A path over k = {k} has no solution there: what bounds keep away from zero needs "
            "others beside it. Begin with a larger k, or leave such bounds out."
        )
