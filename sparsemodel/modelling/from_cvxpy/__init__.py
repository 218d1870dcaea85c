"""Declarations in CVXPY, read into our own terms."""

from sparsemodel.modelling.expressions.foreign import translate_with
from sparsemodel.modelling.from_cvxpy.affine_expressions import affine_of, parts_of
from sparsemodel.modelling.from_cvxpy.atoms import objective_of

translate_with(affine=affine_of, objective=objective_of, parts=parts_of)

__all__ = ["affine_of", "objective_of"]
