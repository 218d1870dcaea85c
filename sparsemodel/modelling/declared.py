"""What the user declared: the goal, the constraints, and the unknowns and parameters in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.interfaces.numeric import described
from sparsemodel.modelling.expressions.affine import Affine
from sparsemodel.modelling.expressions.comparisons import Constraint, Semicontinuous
from sparsemodel.modelling.expressions.foreign import followed, is_cvxpy, read_again
from sparsemodel.modelling.expressions.objective_terms import (
    Budget,
    LossLimit,
    LossTerm,
    Objective,
    Price,
    counted_in,
)
from sparsemodel.modelling.expressions.parameters import Parameter, parameters_in
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.from_cvxpy.choices import choices_of
from sparsemodel.modelling.from_cvxpy.goals import attributes_of, constraint_of, goal_of
from sparsemodel.modelling.goal import Minimize
from sparsemodel.modelling.regression.defined_variables import (
    Definitions,
    value_of_definition,
    without_defined_variables,
)
from sparsemodel.modelling.regression.fewest import Fewest, fewest_of
from sparsemodel.modelling.regression.minimum_counts import without_minimum_counts
from sparsemodel.modelling.regression.two_signs import without_two_signs

_DECIDES = {
    "k": "k",
    "limit": "k",
    "lower": "box",
    "upper": "box",
    "radius": "region",
    "most": "structure",
}
"""What the numbers of constraints decide."""


@final
@dataclass(frozen=True, eq=False)
class Reading:
    """A declaration in our own terms."""

    goal: Minimize
    constraints: tuple[Constraint, ...]
    """What variables are declared to be (``nonneg=True``) is among them."""
    variables: tuple[Variable, ...]
    """In the order of their appearance."""
    outer: tuple[Parameter, ...]
    """Parameters inside CVXPY's goal and constraints, whose present values were read."""
    definitions: Definitions = ()
    """Variables in whose place an expression of others is written."""
    fewest: Fewest | None = None
    """How the number of nonzeros is minimised, where that is the objective."""
    choices: tuple[tuple[Any, Variable], ...] = ()
    """Boolean variables of CVXPY's, each with the variable whose nonzeros it marks."""

    @cached_property
    def places(self) -> tuple[tuple[str, Parameter], ...]:
        """Return every parameter with what it decides, once for each place where it stands.

        Those inside CVXPY's expressions come first, with no place.
        """
        found = dict.fromkeys(("", p) for p in self.outer)
        for place, quantity in quantities(self.goal.objective, self.constraints):
            for parameter in parameters_in(quantity):
                found[place, parameter] = None
        return tuple(found)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return every parameter once; those inside CVXPY's expressions come first."""
        return tuple(dict.fromkeys(parameter for _, parameter in self.places))

    def introduced(self, plan: str) -> str:
        """Return a plan in words, that of the least loss after what is minimised in its place."""
        if self.fewest is None:
            return plan
        held = ", ".join(map(repr, self.constraints))
        return (
            f"Problem: {self.goal!r}, {held}\n\nSolved as the least loss for one number of "
            f"nonzeros after another, of which this is one.\n\n{plan}"
        )

    def fill(self, values: tuple[FloatArray, ...]) -> None:
        """Give all variables their values."""
        for variable, value in zip(self.variables, values, strict=True):
            variable.take(value)
        for variable, meaning in self.definitions:
            variable.value = value_of_definition(meaning)
        for boolean, variable in self.choices:
            boolean.save_value((np.asarray(variable.value) != 0.0).astype(np.float64))


@final
class Declared:
    """A goal and constraints as they were given.

    Whatever is CVXPY's is read again when a parameter inside it has changed: so it is followed
    wherever it stands, and nothing of it is kept from an earlier value.
    """

    def __init__(self, goal: Any, given: tuple[Any, ...]) -> None:
        if is_cvxpy(goal) and hasattr(goal, "objective"):  # a Problem of CVXPY's
            goal, given = goal.objective, (*goal.constraints, *given)
        if not isinstance(goal, Minimize) and not is_cvxpy(goal):
            raise ModelError(f"A Problem needs sm.minimize(...) first, not {type(goal).__name__}.")
        self._goal, self._given = goal, given
        inside = [p for item in _cvxpy_items((goal, given)) for p in item.parameters()]
        self._outer: tuple[Parameter, ...] = tuple(
            followed(p) for p in {id(p): p for p in inside}.values()
        )
        self._reading: Reading | None = None
        self._versions: tuple[int, ...] = ()
        if not self.missing:
            self.reading  # says at once what is wrong with it  # noqa: B018

    @property
    def reading(self) -> Reading:
        """Return the declaration for the present values of CVXPY's parameters."""
        versions = tuple([parameter.version for parameter in self._outer])
        if self._reading is None or versions != self._versions:
            with read_again():
                self._reading = self._read()
            self._versions = versions
        return self._reading

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of CVXPY's parameters without which nothing can be read."""
        return tuple(dict.fromkeys(name for p in self._outer for name in p.missing))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return every parameter once; those inside CVXPY's expressions come first."""
        if self.missing:
            return self._outer
        return self.reading.parameters

    def _read(self) -> Reading:
        goal = goal_of(self._goal) if is_cvxpy(self._goal) else self._goal
        choices = choices_of(goal.objective, self._given)
        objective, flat = without_two_signs(choices.objective, flatten(choices.constraints))
        kept = without_minimum_counts(objective, flat)
        every = kept + attributes_of(collect_variables(objective, flat))
        fewest = fewest_of(objective, every)
        whole = (objective, every) if fewest is None else fewest.declaration
        found = without_defined_variables(*whole)
        variables, outer = collect_variables(found.objective, found.constraints), self._outer
        if fewest is None:
            goal, every = Minimize(found.objective), found.constraints
        else:
            goal, outer = Minimize(objective), (*outer, fewest.k)
        return Reading(goal, every, variables, outer, found.definitions, fewest, choices.marked)

    def __repr__(self) -> str:
        if self.missing:
            return f"Problem(without a value: {', '.join(self.missing)})"
        constraints = ", ".join(repr(c) for c in self.reading.constraints)
        return f"Problem({self.reading.goal!r}, [{constraints}])"


def _cvxpy_items(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from _cvxpy_items(item)
        elif is_cvxpy(item):
            yield item


def flatten(constraints: Iterable[Any]) -> tuple[Constraint, ...]:
    """Return the constraints given one by one, in lists, or both."""
    out: list[Constraint] = []
    for item in constraints:
        if isinstance(item, (list, tuple)):
            out.extend(flatten(item))
        elif isinstance(item, Constraint):
            out.append(item)
        elif is_cvxpy(item):
            out.extend(flatten([constraint_of(item)]))
        elif isinstance(item, Minimize):
            raise ModelError(
                "A Problem has one objective; add the terms up inside one sm.minimize(...)."
            )
        else:
            hint = (
                " Python compared two objects by identity; compare losses, counts and costs "
                "with `<=`."
                if isinstance(item, (bool, np.bool_))
                else ""
            )
            raise ModelError(
                "A constraint is a comparison such as `sm.card(w) <= k`, not "
                f"{described(item)}.{hint}"
            )
    return tuple(out)


def collect_variables(
    objective: Objective, constraints: tuple[Constraint, ...]
) -> tuple[Variable, ...]:
    """Return every variable once, in the order of appearance."""
    seen: dict[int, Variable] = {}
    for affine in expressions_of(objective, constraints):
        for piece in affine.pieces:
            owner = piece.variable.owner
            variable = piece.variable if owner is None else owner
            seen.setdefault(id(variable), variable)
    return tuple(seen.values())


def present_values(declared: Reading) -> tuple[tuple[str, str], ...]:
    """Return where every parameter stands, with its name and its present value in words.

    Where is the last word of the line of a certificate that its value decides; nothing for
    parameters inside CVXPY's expressions.
    """
    return tuple((place, parameter.in_words()) for place, parameter in declared.places)


def expressions_of(objective: Objective, constraints: tuple[Constraint, ...]) -> Iterator[Affine]:
    """Yield every expression of variables in a declaration."""
    for term in objective.terms:
        expression = term.prediction if isinstance(term, LossTerm) else term.expression
        if isinstance(expression, Affine):
            yield expression
    for constraint in constraints:
        if isinstance(constraint, LossLimit):
            yield from expressions_of(constraint.loss, ())
        if not isinstance(constraint, Semicontinuous):  # its expression follows
            yield from (part.expression for part in counted_in(constraint))
        expression = getattr(constraint, "expression", None)
        if isinstance(expression, Affine):
            yield expression


def quantities(
    objective: Objective, constraints: tuple[Constraint, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield whatever may be a parameter, or hold one, with what it decides."""
    for affine in expressions_of(objective, constraints):
        yield "offset", affine.offset
        for piece in affine.pieces:
            yield "design", piece.design
    for term in objective.terms:
        if isinstance(term, LossTerm):
            yield "target", term.target
            yield from (("weights", term.weights), ("weights", term.scale))
        elif isinstance(term, Price):
            yield "price", term.gamma
        else:
            yield "ridge", term.weight
    for constraint in constraints:
        if isinstance(constraint, LossLimit):
            yield from quantities(constraint.loss, ())
        if isinstance(constraint, Budget):
            yield from (("structure", term.gamma) for term in constraint.terms)
        for name, place in _DECIDES.items():
            yield place, getattr(constraint, name, None)
