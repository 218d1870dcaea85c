r"""Lower bounds on the best sparse precision matrix, valid in floating point.

For a symmetric ``U``, a modulus :math:`\mu \ge 0`, and entry bounds
:math:`|\Omega_{ij}| \le M_{ij}`, every matrix with at most ``k`` edges has

.. math:: L(\Omega) \ge \inf_{\alpha I \preceq \Omega \preceq \beta I}
          \left\{ -\log\det\Omega + \langle S + U, \Omega\rangle
          - \tfrac\mu2 \|\Omega\|_F^2 \right\}
          - \sum_i c_i - \sum_{\text{the } k \text{ largest}} c_{ij},

    c_{ij} = \max_{0 \le t \le M_{ij}} 2 |U_{ij}| t - \mu t^2, \qquad
    c_i = \max_{\alpha \le t \le \beta} U_{ii} t - \tfrac\mu2 t^2 .

Of several matrices with one pattern, the ``k`` largest sums are paid for. Required edges are
always paid for, forbidden ones never. The infimum is a function of the
eigenvalues of :math:`S + U`, nondecreasing in each, so eigenvalues lowered by their error bound
give a valid number. ``mu = 0``, ``U = 0`` is the trivial bound; :math:`\mu = \beta^{-2}` is the
perspective relaxation of the strong convexity. The bound is concave in ``U`` and :math:`\mu`
together, and holds for every modulus: beyond :math:`\beta^{-2}` single eigenvalues may be best at
:math:`\beta`, yet several times that modulus gives the best bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U as _U
from sparsemodel.certificates.proving.node import Minorant
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics import top_k
from sparsemodel.numerics.precision import eigenvalues, rounding
from sparsemodel.numerics.precision.spectral import optimal_eigenvalues, spectral_terms


@final
@dataclass(frozen=True, slots=True, eq=False)
class Enclosure:
    """A set that holds every matrix at least as good as a known one."""

    alpha: float
    beta: float
    entries: FloatArray
    """``M``, per coordinate of the form."""

    @property
    def modulus(self) -> float:
        """Return a strong-convexity constant of the likelihood on the enclosure."""
        if not math.isfinite(self.beta):
            return 0.0
        return (1.0 - 1e-12) / self.beta**2


def dual_value(
    forms: Sequence[SparsePrecision],
    U: FloatArray,
    mu: FloatArray,
    boxes: Sequence[Enclosure],
    shares: Sequence[float] = (1.0,),
) -> tuple[float, FloatArray, FloatArray]:
    """Return the bound for ``U`` in nats (rounding subtracted) and its slopes in ``U`` and ``mu``.

    Of the sum of the likelihoods, each times its share: an edge is paid for in all matrices, or in
    none. ``U`` and its supergradient have a row over the coordinates for each matrix, ``mu`` and
    its slopes a number.
    """
    ascent, slope = np.zeros_like(U), np.zeros_like(mu)
    every = [_spectrum(f, *at) for f, *at in zip(forms, U, mu.tolist(), boxes, strict=True)]
    found = [at for at in every if at is not None]
    if len(found) < len(every):
        return -np.inf, ascent, slope
    diagonal, counted = forms[0].rows == forms[0].cols, forms[0].sparsity.counted
    paid = [_paid(*at, diagonal) for at in zip(U, mu.tolist(), boxes, strict=True)]
    together = np.zeros(int(counted.sum()))
    for share, (_, costs) in zip(shares, paid, strict=True):
        together += share * costs[counted]
    kept = ~counted
    kept[np.flatnonzero(counted)[top_k(together, forms[0].sparsity.budget)]] = True
    twice = np.where(diagonal, 1.0, 2.0)
    values = []
    for g, (share, at, (x, costs)) in enumerate(zip(shares, found, paid, strict=True)):
        values.append(_summed(at.terms, at.low, at.t, costs[kept]))
        x[~kept] = 0.0
        ascent[g] = share * twice * (at.entries - x)
        slope[g] = 0.5 * share * (float(np.dot(twice, x**2)) - float(np.dot(at.t, at.t)))
    return added(shares, values, -1.0), ascent, slope


def added(shares: Sequence[float], values: Sequence[float], direction: float = 0.0) -> float:
    """Return the sum of values in nats, each times its share, rounded in ``direction``.

    Shares are quotients of weights: their rounding and that of what is made of the sum is in it.
    """
    if len(values) == 1 and shares[0] == 1.0:
        return values[0]
    products = [share * value for share, value in zip(shares, values, strict=True)]
    if not all(map(math.isfinite, products)):
        return sum(products)
    return math.fsum(products) + direction * 32.0 * _U * math.fsum(map(abs, products))


class AtNode(NamedTuple):
    """What a dual point proves where edges are still to be chosen."""

    minorant: Minorant
    """Over the counted edges, in nats."""
    entries: FloatArray
    """Of the matrix that attains the infimum."""
    least: float
    """The least eigenvalue of ``S + U``, rounded down."""
    t: float
    """The eigenvalue of the matrix there."""


def node_minorant(form: SparsePrecision, U: FloatArray, mu: float, box: Enclosure) -> AtNode | None:
    """Return the bound for ``U`` before edges are chosen; None where there is none."""
    at = _spectrum(form, U, mu, box)
    if at is None:
        return None
    costs = _paid(U, mu, box, form.rows == form.cols)[1]
    counted = form.sparsity.counted
    base = _summed(at.terms, at.low, at.t, costs[~counted])
    # Each cost is a difference of two numbers that are no larger than twice its first.
    gains = np.nextafter(costs[counted] + 8.0 * _U * 2.0 * np.abs(costs[counted]), np.inf)
    return AtNode(Minorant(base, gains), at.entries, float(at.low[0]), float(at.t[0]))


class _Spectrum(NamedTuple):
    """The infimum over the matrices within the eigenvalue bounds."""

    low: FloatArray
    """Eigenvalues of ``S + U``, rounded down."""
    t: FloatArray
    """Those of the matrix that attains the infimum."""
    terms: FloatArray
    entries: FloatArray
    """Of that matrix."""


def _spectrum(form: SparsePrecision, U: FloatArray, mu: float, box: Enclosure) -> _Spectrum | None:
    """Return the spectral part of the bound; None where it is unbounded."""
    B = form.covariance + form.matrix(U)
    sigma, V = np.linalg.eigh(B)
    low = sigma - rounding(B)
    t = optimal_eigenvalues(low, box.alpha, box.beta, mu)
    if not np.all(np.isfinite(t)):
        return None
    return _Spectrum(low, t, spectral_terms(low, t, mu), form.entries((V * t) @ V.T))


def narrowed(
    form: SparsePrecision,
    U: FloatArray,
    mu: float,
    box: Enclosure,
    gap: Callable[[Minorant], float],
    omega: FloatArray | None = None,
) -> Enclosure:
    r"""Return a smaller enclosure, from what a dual point leaves open.

    Parameters
    ----------
    U, mu
        The dual point. One for the modulus of the enclosure itself is made of it, where every term
        of the infimum is convex.
    gap
        Upper bound less the bound of a minorant over the edges that may be chosen.
    omega
        Where the dual point attains its infimum, if that is known; it need not be exact.

    Notes
    -----
    With :math:`\varphi(t) = -\log t + \sigma_1 t - \mu t^2 / 2` for the least eigenvalue of
    ``S + U``, a matrix with the eigenvalue ``t`` lies above the bound by at least
    :math:`\varphi(t) - \min \varphi`, by von Neumann's inequality; where that is more than the gap
    it is worse than the known one.
    """
    own = box.modulus
    if omega is None:
        at = node_minorant(form, U, mu, box)
        omega = None if at is None else at.entries
    if omega is None or not own > 0.0:
        return box
    shifted = U - (mu - own) * omega
    found = node_minorant(form, shifted, own, box)
    if found is None:
        return box
    s, t = found.least, found.t

    def rise(t: float) -> float:
        return -math.log(t) + s * t - 0.5 * own * t * t

    allowed = rise(t) + gap(found.minorant)
    allowed += 1e-12 * (abs(allowed) + abs(s) * box.beta + 1.0)
    low, high = t, box.beta
    if not rise(high) > allowed:
        return box
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rise(middle) > allowed else (middle, high)
    half = 0.5 * (high - box.alpha)
    entries = np.minimum(box.entries, np.where(form.rows == form.cols, high, half))
    return Enclosure(box.alpha, high, entries)


def unconstrained(covariance: FloatArray, sigma: FloatArray, alpha: float, beta: float) -> float:
    """Return :func:`dual_value` at ``U = 0`` and ``mu = 0``: the likelihood's own lower bound.

    ``sigma`` are the eigenvalues of the covariance as computed. At zero nothing is paid for edges.
    """
    low = sigma - rounding(covariance)
    t = optimal_eigenvalues(low, alpha, beta)
    if not np.all(np.isfinite(t)):
        return -np.inf
    return _summed(spectral_terms(low, t), low, t, np.zeros(0))


def _summed(terms: FloatArray, low: FloatArray, t: FloatArray, paid: FloatArray) -> float:
    """Return the sum of the terms less what is paid, and less what rounding can add to it."""
    size = float(np.abs(np.log(t)).sum() + np.abs(low * t).sum() + np.abs(paid).sum())
    return math.fsum(terms) - math.fsum(paid) - 64.0 * _U * (size + t.size)


def _paid(
    U: FloatArray, mu: float, box: Enclosure, diagonal: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return, per coordinate, the entry that is worst for the bound and what it costs."""
    size = np.abs(U)
    if mu > 0.0:
        off = np.minimum(size / mu, box.entries)
        on = np.clip(U / mu, box.alpha, box.beta)
    else:
        off = np.where(size > 0.0, box.entries, 0.0)
        on = np.where(U > 0.0, box.beta, box.alpha)
    with np.errstate(invalid="ignore"):
        on_cost = np.where(U == 0.0, -0.5 * mu * on**2, U * on - 0.5 * mu * on**2)
        off_cost = np.where(size == 0.0, 0.0, 2.0 * size * off - mu * off**2)
    x = np.where(diagonal, on, np.sign(U) * off)
    return x, np.where(diagonal, on_cost, off_cost)


def enclose(form: SparsePrecision, U: FloatArray, upper: float, box: Enclosure) -> Enclosure:
    r"""Return a smaller enclosure of the matrices with :math:`L \le` ``upper`` inside ``box``.

    On it :math:`-\log\det\Omega + \langle B,\Omega\rangle \le \tau` with ``B = S + U`` and
    :math:`\tau` = ``upper`` plus the cost of ``U`` (taken with ``mu = 0``; ``U`` must vanish on
    the diagonal). Eigenvalues obey :math:`u - \log u - 1 \le \Delta` for
    :math:`u = \sigma t` and :math:`\Delta = \tau - \sum_i (1 + \log \sigma_i)`; entries are
    bounded by duality, for any :math:`\nu > 0`, by
    :math:`\pm\Omega_{ij} \le (\Delta - \log q(\mp\nu)) / (2\nu)` with
    :math:`q(\nu) = (1 + \nu P_{ij})^2 - \nu^2 P_{ii} P_{jj}` and ``P`` the inverse of ``B``.
    """
    B = form.covariance + form.matrix(U)
    sigma = eigenvalues(B)
    error = rounding(B)
    low, high = sigma - error, sigma + error
    # An inverse good to eight digits is asked for; without it the enclosure stays as it is.
    if not low[0] > 0.0 or high[-1] / low[0] * B.shape[0] * _U > 1e-9:
        return box
    costs = _paid(U, 0.0, box, form.rows == form.cols)[1]
    costs = np.where(form.rows == form.cols, 0.0, costs)
    counted = form.sparsity.counted
    level = upper + float(costs[~counted].sum())
    level += float(costs[counted][top_k(costs[counted], form.sparsity.budget)].sum())
    if not math.isfinite(level):
        return box
    delta = level - float((1.0 + np.log(low)).sum())
    delta = max(delta, 0.0) + 1e-12 * (abs(level) + float(np.abs(np.log(low)).sum())) + 1e-10
    alpha = max(box.alpha, _root(delta, False) / float(high[-1]))
    beta = min(box.beta, _root(delta, True) / float(low[0]))
    P: FloatArray = np.asarray(np.linalg.inv(B), dtype=np.float64)
    entries = np.minimum(box.entries, _entry_bounds(P, delta, form.rows, form.cols))
    entries = np.minimum(entries, np.where(form.rows == form.cols, beta, 0.5 * (beta - alpha)))
    return Enclosure(min(alpha, beta), beta, entries)


def _root(delta: float, large: bool) -> float:
    """Return a root of ``u - log u - 1 = delta``, rounded outwards."""
    low, high = (1.0, 2.0 + 2.0 * delta) if large else (math.exp(-1.0 - delta), 1.0)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if (middle - math.log(middle) - 1.0 < delta) == large:
            low = middle
        else:
            high = middle
    return high * (1.0 + 1e-9) if large else low * (1.0 - 1e-9)


_FRACTIONS = np.concatenate([np.geomspace(1e-3, 0.5, 12), 1.0 - np.geomspace(0.5, 1e-3, 12)])


def _entry_bounds(P: FloatArray, delta: float, rows: IntArray, cols: IntArray) -> FloatArray:
    """Return bounds on the absolute entries, by a search over ``nu`` on a grid."""
    d = np.sqrt(np.diagonal(P))
    scale = d[rows] * d[cols]
    r = np.clip(P[rows, cols] / scale, -1.0, 1.0)
    best = np.zeros_like(r)
    for sign in (-1.0, 1.0):
        side = np.full_like(r, np.inf)
        largest = 1.0 / np.maximum(1.0 - sign * r, 1e-8)
        for fraction in _FRACTIONS:
            a = fraction * np.minimum(largest, 1e4)
            q = (1.0 + sign * a * r) ** 2 - a**2
            usable = q > 1e-3
            # The inverse is good to eight digits and q to 1e-3: far less than this margin.
            bound = (delta + 1e-4 - np.log(np.where(usable, q, 1.0))) / (2.0 * a)
            side = np.where(usable, np.minimum(side, np.maximum(bound, 0.0)), side)
        best = np.maximum(best, side)
    out: FloatArray = best * scale * (1.0 + 1e-6)
    return np.where(rows == cols, np.inf, out)
