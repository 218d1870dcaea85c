"""Affine expressions and what they are made of."""

from sparsemodel.modelling.expressions.affine.expressions import Affine, AffineLike
from sparsemodel.modelling.expressions.affine.pieces import Piece

__all__ = ["Affine", "AffineLike", "Piece"]
