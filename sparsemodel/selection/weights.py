r"""What weights of observations mean: the one place that says how many observations there are.

A fit depends on the weights alone; what is concluded from it depends on their meaning. Every
observation has a precision :math:`w_i` and a number :math:`m_i` of copies, so that minus its
log-likelihood is :math:`m_i` times that of one observation with the dispersion :math:`\phi / w_i`,
and there are :math:`n = \sum_i m_i` observations. Of weights :math:`c_i` these are

* ``"precision"``: :math:`w_i = c_i`, :math:`m_i = 1`. One over a variance, a number of trials, the
  working weights of iteratively reweighted least squares; ``weights=`` of R's ``lm`` and ``glm``,
  ``var_weights`` of statsmodels (McCullagh and Nelder, Generalized Linear Models, 1989, section
  2.2.2). An observation of weight zero is not there.
* ``"frequency"``: :math:`w_i = 1`, :math:`m_i = c_i`. A weight of three is three equal rows;
  ``freq_weights`` of statsmodels.
* ``"sampling"``: :math:`w_i = 1`, :math:`m_i = c_i \sum_j c_j / \sum_j c_j^2`. One over the chance
  to be in the sample; they add up to the effective number of observations
  :math:`(\sum_i c_i)^2 / \sum_i c_i^2` (Kish, Survey Sampling, 1965).

Where all weights are one the three are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.interfaces.numeric import is_one_of, shown

WeightsAre: TypeAlias = Literal["precision", "frequency", "sampling"]
"""What weights of observations mean."""


class Weighting(NamedTuple):
    """Precisions and copies of observations.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.selection.weights import Weighting
    >>> c = np.array([3.0, 1.0, 0.0])
    >>> [Weighting.of(c, are).n for are in ("precision", "frequency", "sampling")]
    [2.0, 4.0, 1.6]
    """

    precision: FloatArray
    copies: FloatArray

    @classmethod
    def of(cls, weights: FloatArray, meaning: str) -> Weighting:
        """Return what the weights mean; ``meaning`` is one of :data:`WeightsAre`."""
        if meaning == "precision":
            return cls(weights, (weights > 0.0).astype(np.float64))
        counts = weights if meaning == "frequency" else weights * effective_share(weights)
        return cls((weights > 0.0).astype(np.float64), counts)

    @classmethod
    def joined(cls, parts: Sequence[Weighting], inside: FloatArray) -> Weighting:
        """Return that of the observations of several losses.

        Losses are weighed against each other as ``inside`` weighs their observations, which leaves
        alone how much all count together.
        """
        copies = np.concatenate([part.copies for part in parts])
        total = sum(float(part.precision @ part.copies) for part in parts)
        share = inside * (total / float(inside.sum()))
        return cls(np.divide(share, copies, out=np.zeros_like(share), where=copies > 0.0), copies)

    @property
    def n(self) -> float:
        """Return the number of observations."""
        return float(self.copies.sum())

    @property
    def total(self) -> FloatArray:
        """Return what the log-likelihoods are multiplied by."""
        return self.precision * self.copies


def effective_share(weights: FloatArray) -> float:
    """Return what sampling weights are multiplied by to add up to their effective number."""
    return float(weights.sum() / np.square(weights).sum())


def independent_terms(
    values: FloatArray, weights: FloatArray, meaning: str
) -> tuple[FloatArray, FloatArray]:
    r"""Return terms whose mean, with the weights returned, is the weighted mean of ``values``.

    The terms are what a test takes to be independent and alike where the mean is zero. Copies are
    observations each. Otherwise an observation is one, whatever it weighs, and its term is
    :math:`c_i s_i \, n / \sum_j c_j`, so that the variance of the mean is that of a weighted sum,
    :math:`\sum_i c_i^2 s_i^2 / (\sum_i c_i)^2` (White, Econometrica 1980).
    """
    if meaning == "frequency":
        return values, weights
    there = (weights > 0.0).astype(np.float64)
    return values * (weights * (there.sum() / weights.sum())), there


def checked_meaning(meaning: object) -> str:
    """Return ``weights_are=``, or raise an error that says what it may be."""
    if not is_one_of(meaning, ("precision", "frequency", "sampling")):
        raise ModelError(
            'weights_are must be "precision" (one over a variance, as weights= of R), "frequency" '
            '(a weight of three is three equal rows) or "sampling" (one over the chance to be in '
            f"the sample), not {shown(meaning)}."
        )
    return str(meaning)
