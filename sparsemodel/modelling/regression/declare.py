"""Turn the language's objects into the compiler's plain declaration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.compiler.canonical.changes import changed
from sparsemodel.compiler.canonical.declaration import (
    Declaration,
    LossSpec,
    RidgeSpec,
    VariableSpec,
)
from sparsemodel.compiler.canonical.mirrored import mirrored
from sparsemodel.designs import as_design
from sparsemodel.interfaces import DataError, Design, FloatArray, ModelError
from sparsemodel.losses.functions.custom import CustomLoss
from sparsemodel.losses.residuals.linear import LinearLoss
from sparsemodel.losses.residuals.quadratic import SquaredLoss
from sparsemodel.modelling.declared import expressions_of
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import (
    Bound,
    CardinalityConstraint,
    Constraint,
    LinearConstraint,
    Requirement,
    Semicontinuous,
)
from sparsemodel.modelling.expressions.norms import NormConstraint
from sparsemodel.modelling.expressions.objective_terms import (
    Budget,
    LossTerm,
    Objective,
    Price,
    Ridge,
    counted_in,
)
from sparsemodel.modelling.expressions.parameters import Parameter, Quantity, resolve
from sparsemodel.modelling.expressions.symmetric import EdgeCount, EigenvalueBound
from sparsemodel.modelling.expressions.variables import Variable
from sparsemodel.modelling.loss_terms.terms import (
    checked_target,
    observation_weights,
    ridge_weight,
    scale_of,
)
from sparsemodel.modelling.precision_matrices.terms_and_constraints import EdgePattern
from sparsemodel.modelling.regression.coordinate_map import CoordinateMap, about_entries
from sparsemodel.modelling.regression.declare_constraints import (
    bound_spec,
    budget_spec,
    card_spec,
    diagonal_orders,
    edge_spec,
    forbidden_spec,
    image_spec,
    least_specs,
    linear_spec,
    norm_spec,
    price_spec,
    spectrum_specs,
    with_orders,
)


def declare(
    objective: Objective, constraints: tuple[Constraint, ...], variables: tuple[Variable, ...]
) -> Declaration:
    """Return the declaration for the compiler, with the parameters' present values."""
    _refuse(objective, constraints)
    expressions = list(expressions_of(objective, constraints))
    symmetric = any(v.symmetric for v in variables)
    counted = [part for c in constraints for part in counted_in(c)]
    counted += [term.counted for term in objective.terms if isinstance(term, Price)]
    entries = symmetric or about_entries(expressions, constraints)
    coordinates = CoordinateMap(variables, counted, entries=entries)
    losses, ridges, prices = [], [], []
    for term in (*objective.terms, *_linked(objective, constraints, variables)):
        if isinstance(term, LossTerm):
            losses.append(_loss(term, variables, coordinates))
        elif isinstance(term, Ridge):
            ridges.append(_ridge(term, variables, coordinates))
        elif isinstance(term, Price):
            prices.append(price_spec(term, coordinates))
        else:
            raise ModelError(f"{term!r} cannot stand beside losses of predictions.")
    by_kind: dict[type, list[Any]] = {kind: [] for kind in _UNDERSTOOD}
    for constraint in constraints:
        if type(constraint) not in by_kind:
            raise ModelError(
                f"The constraint {constraint!r} is not understood beside {objective!r}."
            )
        by_kind[type(constraint)].append(constraint)
    gaps = [least_specs(c, coordinates) for c in by_kind[Semicontinuous]]
    cards = (
        *prices,
        *(card for card, _, _ in gaps),
        *(card_spec(c, coordinates) for c in by_kind[CardinalityConstraint]),
        *(budget_spec(c, coordinates) for c in by_kind[Budget]),
        *(edge_spec(c, by_kind[EdgePattern], coordinates) for c in by_kind[EdgeCount]),
    )
    cards, orders = with_orders(cards, by_kind[Requirement], coordinates)
    psd = [v >> 0.0 for v in variables if v.proxied is not None and v.proxied.attributes["PSD"]]
    spectra = spectrum_specs((*by_kind[EigenvalueBound], *psd), coordinates)
    declaration = Declaration(
        variables=tuple(
            VariableSpec(
                v.name or _made_name(v, i, variables),
                v.shape,
                v.names,
                v.symmetric,
                v.tallied is not None,
            )
            for i, v in enumerate(variables)
        ),
        losses=tuple(losses),
        ridges=tuple(ridges),
        cards=cards,
        bounds=(
            *(bound_spec(c, coordinates) for c in by_kind[Bound]),
            *(bound for _, bound, _ in gaps),
            *(forbidden_spec(c, coordinates) for c in by_kind[EdgePattern] if not c.required),
        ),
        leasts=tuple(least for _, _, least in gaps),
        orders=(*orders, *diagonal_orders(spectra, coordinates)),
        linear=tuple(linear_spec(c, coordinates) for c in by_kind[LinearConstraint]),
        norms=tuple(norm_spec(c, coordinates) for c in by_kind[NormConstraint] if c.bare),
        images=tuple(image_spec(c, coordinates) for c in by_kind[NormConstraint] if not c.bare),
        spectra=tuple(spectra),
        constant=objective.constant + sum(map(_constant_of_weights, losses)),
        changes=coordinates.changes,
        entries=coordinates.entries,
    )
    return changed(mirrored(declaration))


def _linked(
    objective: Objective, constraints: tuple[Constraint, ...], variables: tuple[Variable, ...]
) -> list[LossTerm]:
    """Return losses of zero of the vectors that constraints alone link to those in losses.

    So ``abs(A @ w - b) <= t`` brings ``w`` in where ``t`` is minimised. Without any loss, as for a
    ridge alone under constraints, they are of all.
    """
    if not any(isinstance(term, LossTerm) for term in objective.terms):
        return [_nothing(v) for v in variables if v.shape]
    kinds = (LinearConstraint, NormConstraint)
    links = [[p.variable for p in c.expression.pieces] for c in constraints if isinstance(c, kinds)]
    if not links:
        return []
    inside = {id(p.variable) for e in expressions_of(objective, ()) for p in e.pieces}
    found: list[LossTerm] = []
    for _ in links:
        for link in links:
            for new in link if any(id(v) in inside for v in link) else ():
                if id(new) not in inside and len(new.shape) == 1:
                    inside.add(id(new))
                    found.append(_nothing(new))
    return found


def _nothing(variable: Variable) -> LossTerm:
    """Return a loss of a variable that is zero."""
    nothing = Affine((Piece(variable, None, as_design(np.zeros((1, variable.shape[0])))),))
    several = variable.shape[1:]
    loss = SquaredLoss() if several else LinearLoss()
    return LossTerm(loss, nothing, np.zeros((1, *several)), None, "sum")


_UNDERSTOOD = (
    CardinalityConstraint,
    EdgeCount,
    EdgePattern,
    EigenvalueBound,
    Budget,
    Semicontinuous,
    Requirement,
    Bound,
    LinearConstraint,
    NormConstraint,
)
"""What a problem with losses of predictions can be constrained by: all of it is declared."""


def _refuse(objective: Objective, constraints: tuple[Constraint, ...]) -> None:
    """Refuse objectives without a loss where nothing but bounds keeps points from zero."""
    kinds = {type(term) for term in objective.terms}
    if LossTerm in kinds or any(
        isinstance(c, (LinearConstraint, NormConstraint)) for c in constraints
    ):
        return
    raise ModelError(
        "The objective has no loss. Write, for example, "
        "sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 1e-2)). For the fewest features "
        "with a given fit bound the loss: `sm.Problem(sm.minimize(sm.card(w)), "
        "sm.squared_loss(A @ w, b) <= 0.1)`."
    )


def _made_name(variable: Variable, index: int, variables: tuple[Variable, ...]) -> str:
    vectors = [v for v in variables if v.shape and v.tallied is None]
    if not variable.shape:
        return "intercept" if len(variables) - len(vectors) == 1 else f"c{index}"
    return "w" if len(vectors) == 1 else f"w{index}"


def _loss(term: LossTerm, variables: tuple[Variable, ...], coordinates: CoordinateMap) -> LossSpec:
    prediction = term.prediction
    name = term.loss.name
    offset: Any = None
    pieces: tuple[Piece, ...]
    if prediction is None:
        pieces = (Piece(the_vector(variables, f"sm.{name}(...)"), None, None),)
        shape = pieces[0].shape
        if isinstance(term.loss, CustomLoss):
            term.loss.check(shape)
        if coordinates.entries and len(shape) == 2:
            raise ModelError(
                f"{name} is a function of the whole matrix {pieces[0].variable.label}, whose "
                "entries cannot be counted or addressed one by one beside it; count its rows, "
                "sm.card(W, axis=1), or declare it for a vector of all entries."
            )
    elif isinstance(prediction, Design):
        variable = the_vector(variables, f"sm.{name}(A, b)")
        if prediction.shape[1] != (variable.shape or (1,))[0]:
            raise DataError(
                f"{name}(A, b): A has {prediction.shape[1]} columns and "
                f"{variable.label} has {(variable.shape or (1,))[0]} entries. They must be equal."
            )
        variable.adopt_names(term.column_names, None)
        pieces = (Piece(variable, None, prediction),)
        shape = pieces[0].shape
    else:
        pieces, offset = prediction.pieces, prediction.offset
        shape = prediction.value_shape()
    offset = resolve(offset, f"The offset of {name}")
    spec = LossSpec(
        loss=term.loss,
        blocks=coordinates.blocks(pieces, shape),
        offset=None if offset is None else np.asarray(offset, dtype=np.float64),
        target=_target(term, shape),
        observation_weights=_weights(term, shape[0]),
        reduction=term.reduction,
        scale=scale_of(term.scale, name),
        levels=term.levels,
        weights_are=term.weights_are,
    )
    return _by_entries(spec, shape) if coordinates.entries and len(shape) == 2 else spec


def _constant_of_weights(spec: LossSpec) -> float:
    """Return what the weights add to the objective, whatever the coefficients."""
    if spec.observation_weights is None:
        return 0.0
    rows = spec.target.shape[0] if spec.reduction == "mean" else 1
    return spec.scale / rows * spec.loss.constant_of(spec.target, spec.observation_weights)


def _by_entries(spec: LossSpec, shape: tuple[int, ...]) -> LossSpec:
    """Return a loss of a matrix of predictions as one of all its entries, row by row."""
    if spec.target.shape != shape:
        raise ModelError(
            f"{spec.loss.name} is not a sum over the entries of its predictions, of shape {shape}: "
            f"its target has shape {spec.target.shape}. Beside such a loss the rows of a matrix "
            "are counted, sm.card(W, axis=1), and not its entries or columns."
        )
    m, weights = shape[1], spec.observation_weights
    return replace(
        spec,
        offset=None if spec.offset is None else np.broadcast_to(spec.offset, shape).ravel(),
        target=spec.target.ravel(),
        observation_weights=None if weights is None else np.repeat(weights, m),
        scale=spec.scale * m if spec.reduction == "mean" else spec.scale,
    )


def _target(term: LossTerm, shape: tuple[int, ...]) -> FloatArray:
    target = term.target
    if target is None:
        return np.zeros(shape)
    if not isinstance(target, Quantity):
        return target
    value = resolve(target, f"The target of {term.loss.name}")
    if isinstance(target, Parameter):  # the same array as long as the value is the same
        return target.derived(("target", term.loss), lambda: checked_target(term.loss, value)[0])
    return checked_target(term.loss, value)[0]


def _weights(term: LossTerm, rows: int) -> FloatArray | None:
    if not isinstance(term.weights, Quantity):
        return term.weights
    value = resolve(term.weights, f"The weights of {term.loss.name}")
    return observation_weights(value, rows, term.loss.name)


def _ridge(term: Ridge, variables: tuple[Variable, ...], coordinates: CoordinateMap) -> RidgeSpec:
    if term.expression is None:
        piece = Piece(the_vector(variables, "sm.ridge(lam)"), None, None)
    else:
        piece = term.expression.pieces[0]
    weight = term.weight
    if isinstance(weight, Quantity):
        weight = ridge_weight(resolve(weight, "The weight lam of ridge"))
    squared = weight if piece.factor == 1.0 else weight * piece.factor**2
    return RidgeSpec(*coordinates.of(piece), coordinates.flat(squared, piece))


def the_vector(variables: tuple[Variable, ...], what: str) -> Variable:
    """Return the one vector or matrix variable that a short form means."""
    vectors = [v for v in variables if v.shape and v.tallied is None]
    if len(vectors) != 1:
        names = ", ".join(v.label for v in vectors) or "none"
        raise ModelError(
            f"The short form {what} means the problem's one vector variable, and this problem has "
            f"{len(vectors)} ({names}). Name it: `A @ w`, `sm.ridge(w, lam)`."
        )
    return vectors[0]
