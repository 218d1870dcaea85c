r"""The likelihood as a function of eigenvalues: its infimum over an eigenvalue box.

For a symmetric ``B`` with eigenvalues :math:`\sigma_i` and a modulus :math:`\mu \ge 0`,

.. math:: \inf_{\alpha I \preceq \Omega \preceq \beta I}
          -\log\det\Omega + \langle B, \Omega\rangle - \tfrac{\mu}{2}\|\Omega\|_F^2
          = \sum_i \min_{\alpha \le t \le \beta} -\log t + \sigma_i t - \tfrac{\mu}{2} t^2

by von Neumann's trace inequality. Where :math:`\mu \beta^2 > 1` a term is not convex in ``t``; it
is least at its smaller stationary point or at :math:`\beta`. The infimum is concave in ``B`` and
:math:`\mu` all the same, as one of linear functions.
"""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import FloatArray


def eigenvalues(matrix: FloatArray) -> FloatArray:
    """Return the eigenvalues of a symmetric matrix in ascending order."""
    return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)


def optimal_eigenvalues(
    sigma: FloatArray, alpha: float, beta: float, mu: float = 0.0
) -> FloatArray:
    """Return the minimisers ``t`` of the single terms; ``inf`` where there is none."""
    with np.errstate(divide="ignore"):
        if mu == 0.0:
            t = np.where(sigma > 0.0, 1.0 / np.maximum(sigma, 1e-300), np.inf)
        else:
            # -1/t + sigma - mu t = 0 has its smaller root at 2 / (sigma + sqrt(sigma^2 - 4 mu)).
            edge = 2.0 * np.sqrt(mu)
            root = np.sqrt(np.maximum(sigma - edge, 0.0)) * np.sqrt(np.maximum(sigma + edge, 0.0))
            t = np.where(sigma >= edge, 2.0 / np.maximum(sigma + root, 1e-300), np.inf)
    out: FloatArray = np.clip(t, alpha, beta)
    if mu > 0.0 and mu * beta**2 > 1.0:
        if not np.isfinite(beta):
            return np.full_like(out, np.inf)
        last = spectral_terms(sigma, np.full_like(out, beta), mu)
        out = np.where(last < spectral_terms(sigma, out, mu), beta, out)
    return out


def spectral_terms(sigma: FloatArray, t: FloatArray, mu: float = 0.0) -> FloatArray:
    """Return ``-log t + sigma t - mu t^2 / 2``; ``-inf`` where ``t`` is infinite."""
    finite = np.isfinite(t)
    safe = np.where(finite, t, 1.0)
    terms = -np.log(safe) + sigma * safe - 0.5 * mu * safe**2
    out: FloatArray = np.where(finite, terms, -np.inf)
    return out


def spectral_infimum(sigma: FloatArray, alpha: float, beta: float, mu: float = 0.0) -> float:
    """Return the infimum over the eigenvalue box, up to rounding; ``-inf`` when unbounded."""
    return float(spectral_terms(sigma, optimal_eigenvalues(sigma, alpha, beta, mu), mu).sum())
