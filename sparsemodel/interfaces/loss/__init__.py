"""What a loss is: its value and slope, its facets, and the traits that follow from them."""

from sparsemodel.interfaces.loss.base import DataFit, Loss, TargetKind, require
from sparsemodel.interfaces.loss.facets import (
    Affine,
    Conjugable,
    Curved,
    CvxModelled,
    IntervalConjugable,
    Likelihood,
    OfDifference,
    OfResidual,
    Piecewise,
    Quadratic,
    SimplexConjugable,
    Smoothable,
    SquaredDistance,
    TwiceDifferentiable,
)
from sparsemodel.interfaces.loss.traits import LossTraits

__all__ = [
    "Affine",
    "Conjugable",
    "Curved",
    "CvxModelled",
    "DataFit",
    "IntervalConjugable",
    "Likelihood",
    "Loss",
    "LossTraits",
    "OfDifference",
    "OfResidual",
    "Piecewise",
    "Quadratic",
    "SimplexConjugable",
    "Smoothable",
    "SquaredDistance",
    "TargetKind",
    "TwiceDifferentiable",
    "require",
]
