"""Standard transformations of the raw data sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def tfidf(counts: Any) -> Any:
    r"""Return term weights of a sparse count matrix, rows of unit Euclidean length.

    Entry ``(i, j)`` is :math:`(1 + \log c_{ij})\,(1 + \log\frac{1 + n}{1 + d_j})`, with
    :math:`d_j` the number of rows that have term ``j``, before the rows are normalised.
    """
    weights = sp.csr_array(counts, dtype=np.float64, copy=True)
    n, p = weights.shape
    documents = np.bincount(weights.indices, minlength=p)
    rarity = 1.0 + np.log((1.0 + n) / (1.0 + documents))
    weights.data = (1.0 + np.log(weights.data)) * rarity[weights.indices]
    row = np.repeat(np.arange(n), np.diff(weights.indptr))
    length = np.sqrt(np.bincount(row, weights=weights.data**2, minlength=n))
    weights.data /= length[row]
    return weights


def probe_features(
    images: NDArray[Any], p: int = 5000, *, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return ``(X, real)``: pixels, products of pixel pairs, and as many useless probes.

    The recipe of the Gisette set (feature selection challenge of NIPS 2003): pixels that are
    lit in more than 2 % of the images, geometric means of random pairs of them up to ``p / 2``
    columns, then a copy of those columns with the rows of each permuted; columns shuffled, values
    rounded to 0 .. 999. ``real`` marks the columns that are not probes.

    Raises
    ------
    ValueError
        If ``p`` is odd, or too small for the lit pixels.
    """
    rng = np.random.default_rng(seed)
    light = np.asarray(images, dtype=np.float32) / 255.0
    pixels = np.flatnonzero(np.mean(light > 0.0, axis=0) > 0.02)
    pairs = p // 2 - pixels.size
    if p % 2 or pairs < 0:
        raise ValueError(f"p must be even and at least {2 * pixels.size} for these images, not {p}")
    left, right = rng.choice(pixels, (2, pairs))
    genuine = np.hstack([light[:, pixels], np.sqrt(light[:, left] * light[:, right])])
    probes = rng.permuted(genuine, axis=0)
    order = rng.permutation(p)
    X = np.rint(999.0 * np.hstack([genuine, probes])[:, order]).astype(np.float32)
    return X, order < p // 2


__all__ = ["probe_features", "tfidf"]
