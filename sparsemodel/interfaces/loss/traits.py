"""What follows from a loss's facets: the one place where it is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import final

from sparsemodel.interfaces.loss.base import DataFit, Loss, TargetKind
from sparsemodel.interfaces.loss.facets import (
    Affine,
    Conjugable,
    Curved,
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
from sparsemodel.interfaces.numeric import FloatArray


@final
@dataclass(frozen=True, slots=True)
class LossTraits:
    """What is known of a loss, or of every loss of a sum.

    Derived by :meth:`of` from the facets that the loss inherits and from its curvature bounds;
    no other module looks at the class or the name of a loss. ``form.traits`` holds what
    all terms have in common.
    """

    by_observation: bool
    """A sum over observations."""
    has_hessian: bool
    """Products with the Hessian are available (almost everywhere)."""
    curved: bool
    """The Hessian is one second derivative per observation."""
    quadratic: bool
    """The Hessian is constant."""
    affine: bool
    """Linear in the predictions."""
    square: bool
    """Half a squared distance to a centre, times a constant."""
    gram: bool
    """One of these two: the products of the data, their Gram matrix, say all about it."""
    of_difference: bool
    """A function of the residual alone."""
    of_residual: bool
    """A function of the residual alone, zero at zero and positive elsewhere."""
    smooth: bool
    """The gradient exists everywhere: there is a Hessian, or a bound on the curvature."""
    smoothable: bool
    """Smooth approximations from below are available."""
    piecewise: bool
    """A sum of pieces that are linear, parabolic and linear again, with or without squares."""
    strictly_convex: bool
    """Strictly convex, or affine, along every line of predictions."""
    everywhere: bool
    """Defined for all predictions."""
    separable: bool
    """A loss of labels whose infimum is not attained when the classes can be separated."""
    likelihood: bool
    """A negative log-likelihood, up to constants."""
    conjugable: bool
    """The conjugate is known."""
    interval: bool
    """... on an interval for each observation."""
    simplex: bool
    """... on the unit simplex, in probabilities of the classes."""
    lower: float
    """Bound from below on the second derivative, for weights of one."""
    upper: float
    """... from above; ``inf`` where there is none."""

    @classmethod
    def of(cls, loss: DataFit, y: FloatArray) -> LossTraits:
        """Return the traits of a loss, with the curvature that it has for the target ``y``."""
        return _of_class_curved(type(loss), *loss.curvature(y))

    @classmethod
    def common(cls, several: Sequence[LossTraits]) -> LossTraits:
        """Return what holds for all; the bounds are the least and the largest."""
        if len(several) == 1:
            return several[0]
        shared = {name: all(getattr(t, name) for t in several) for name in _YES_OR_NO}
        # Squared losses beside pieces are pieces, too: parabolas without ends.
        shared["piecewise"] = all(t.piecewise or t.square for t in several) and any(
            t.piecewise for t in several
        )
        return cls(
            **shared,
            lower=min((t.lower for t in several), default=0.0),
            upper=max((t.upper for t in several), default=0.0),
        )

    @property
    def lipschitz(self) -> bool:
        """Return whether the gradient has a global Lipschitz constant."""
        return math.isfinite(self.upper)


@lru_cache(maxsize=256)
def _of_class_curved(kind: type[DataFit], lower: float, upper: float) -> LossTraits:
    """Return the traits of the losses of a class with these bounds on their curvature."""
    traits = _of_class(kind)
    smooth = traits.has_hessian or math.isfinite(upper)
    return replace(traits, lower=lower, upper=upper, smooth=smooth)


_YES_OR_NO = tuple(f.name for f in fields(LossTraits) if f.type == "bool")


@lru_cache(maxsize=256)
def _of_class(kind: type[DataFit]) -> LossTraits:
    """Return the traits that all losses of a class share."""
    labels = kind.target_kind in (TargetKind.TWO_CLASSES, TargetKind.CLASSES)
    return LossTraits(
        by_observation=issubclass(kind, Loss),
        has_hessian=issubclass(kind, TwiceDifferentiable),
        curved=issubclass(kind, Curved),
        quadratic=issubclass(kind, Quadratic),
        affine=issubclass(kind, Affine),
        square=issubclass(kind, SquaredDistance),
        gram=issubclass(kind, (SquaredDistance, Affine)),
        of_difference=issubclass(kind, OfDifference),
        of_residual=issubclass(kind, OfResidual),
        smooth=False,
        smoothable=issubclass(kind, Smoothable),
        piecewise=issubclass(kind, Piecewise),
        strictly_convex=kind.strictly_convex,
        everywhere=kind.everywhere,
        separable=labels and kind.strictly_convex,
        likelihood=issubclass(kind, Likelihood),
        conjugable=issubclass(kind, Conjugable),
        interval=issubclass(kind, IntervalConjugable),
        simplex=issubclass(kind, SimplexConjugable),
        lower=0.0,
        upper=math.inf,
    )
