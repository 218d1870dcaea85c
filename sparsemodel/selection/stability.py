"""How stable a support is when half of the observations are left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemodel.compiler import Facts, reduce_form
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.interfaces.numeric import random_numbers, whole_number
from sparsemodel.selection.cross_validation import observed, on_observations
from sparsemodel.selection.path import solve_path


def selection_frequencies(
    form: SparseRegression, ks: Sequence[int], *, resamples: int = 50, seed: int = 0
) -> FloatArray:
    """Return how often each coordinate is chosen for each k, shape ``(len(ks), p)``.

    Random halves of the observations and their complements are solved in turn (complementary
    pairs: Shah and Samworth, JRSS B 2013, after Meinshausen and Buehlmann, JRSS B 2010).
    """
    resamples = whole_number(resamples, where="resamples", minimum=2)
    rng = random_numbers(seed)
    chosen = np.zeros((len(ks), form.sparsity.size))
    halves: list[list[np.ndarray]] = []
    for _ in range((resamples + 1) // 2):
        one = [_half(term.target.shape[0], rng) for term in form.terms]
        halves += [_with_model(form, one), _with_model(form, [~mask for mask in one])]
    for masks in halves[:resamples]:
        part = on_observations(form, masks)
        points = solve_path(part, reduce_form(part, Facts(part)), ks).uninterrupted()
        for row, point in enumerate(points):
            nonzero = point.x != 0.0
            chosen[row] += nonzero if nonzero.ndim == 1 else nonzero.any(axis=1)
    return chosen / resamples


def _with_model(form: SparseRegression, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the masks with the terms of a single row, which are no observations, kept."""
    return [
        mask if observed(term) else np.ones(1, dtype=bool)
        for term, mask in zip(form.terms, masks, strict=True)
    ]


def _half(n: int, rng: np.random.Generator) -> np.ndarray:
    mask = np.zeros(n, dtype=bool)
    mask[rng.permutation(n)[: n // 2]] = True
    return mask


__all__ = ["selection_frequencies"]
