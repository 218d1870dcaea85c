"""The theorem of Axiotis and Sviridenko (2022) on adaptively regularised hard thresholding."""

from __future__ import annotations

import math

from sparsemodel.interfaces.self_description import (
    FAILS,
    HOLDS,
    OPEN,
    Guarantee,
    Setting,
    Theorem,
    at_the_most,
    between,
)


def arht_31(s: Setting) -> Guarantee:
    r"""ARHT, Theorem 3.1: ``k >= s* max(4 kappa + 7, 12 kappa + 6)``, kappa of levels 2, k + s*."""
    two, wide, own = s.at(2), s.at(2 * s.k), s.at(s.k)
    high = two.smoothness[1] / wide.convexity[0] if wide.convexity[0] > 0.0 else math.inf
    low = two.smoothness[0] / own.convexity[1] if own.convexity[1] > 0.0 else math.inf

    def most(kappa: float) -> int:
        if not math.isfinite(kappa):
            return 0
        return math.floor(s.k / max(4.0 * kappa + 7.0, 12.0 * kappa + 6.0))

    sure, perhaps = most(high), most(low)
    return Guarantee(
        "ARHT, Theorem 3.1",
        HOLDS if sure >= 1 else OPEN if perhaps >= 1 else FAILS,
        f"k >= s* max(4 kappa + 7, 12 kappa + 6) for a target of s* >= 1 nonzeros; kappa = "
        f"M_2/m_(k+s*) is {between(low, high)}, so s* <= {sure}" + at_the_most(sure, perhaps),
        "ARHT finds an objective within epsilon of every s*-sparse one, with probability 1 - 1/p",
        {"targets up to this sparsity": float(sure)},
    )


THEOREM_3_1 = Theorem("ARHT, Theorem 3.1", arht_31)


__all__ = ["THEOREM_3_1"]
