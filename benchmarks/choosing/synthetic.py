"""Generated designs, signals and targets of the corpus; everything from a generator of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.fft import dct, idct
from scipy.signal import lfilter
from scipy.sparse.linalg import LinearOperator
from scipy.special import expit

Array = Any
Generator = np.random.Generator


def iid(rng: Generator, n: int, p: int) -> Array:
    return rng.standard_normal((n, p))


def autoregressive(rho: float) -> Callable[[Generator, int, int], Array]:
    """Neighbouring columns correlate by ``rho``, others by its powers."""

    def make(rng: Generator, n: int, p: int) -> Array:
        noise = rng.standard_normal((n, p))
        noise[:, 1:] *= np.sqrt(1.0 - rho**2)
        return np.asarray(lfilter([1.0], [1.0, -rho], noise, axis=1))

    return make


def equicorrelated(rho: float) -> Callable[[Generator, int, int], Array]:
    """All columns share a factor."""

    def make(rng: Generator, n: int, p: int) -> Array:
        shared = rng.standard_normal((n, 1))
        return np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * rng.standard_normal((n, p))

    return make


def blocks(rho: float, width: int = 10) -> Callable[[Generator, int, int], Array]:
    """Blocks of ``width`` columns share a factor each."""

    def make(rng: Generator, n: int, p: int) -> Array:
        shared = np.repeat(rng.standard_normal((n, -(-p // width))), width, axis=1)[:, :p]
        return np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * rng.standard_normal((n, p))

    return make


def factors(rank: int) -> Callable[[Generator, int, int], Array]:
    """Few factors explain most of every column, as in expression data."""

    def make(rng: Generator, n: int, p: int) -> Array:
        low = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) / np.sqrt(rank)
        return low + 0.5 * rng.standard_normal((n, p))

    return make


def scattered(density: float) -> Callable[[Generator, int, int], Any]:
    """A sparse matrix of counts with rare and common columns, as in text."""

    def make(rng: Generator, n: int, p: int) -> Any:
        rate = density * rng.pareto(1.5, p)
        rate = np.clip(rate / rate.mean() * density, 2.0 / n, 0.5)
        dense = (rng.random((n, p)) < rate) * rng.integers(1, 4, (n, p)).astype(float)
        return sp.csr_array(dense)

    return make


def few(each: int) -> Callable[[Generator, int, int], Any]:
    """A sparse matrix with ``each`` words a row on average, most of them among the common."""

    def make(rng: Generator, n: int, p: int) -> Any:
        chances = 1.0 / (np.arange(p) + 50.0)
        columns = rng.choice(p, n * each, p=chances / chances.sum())
        rows = rng.integers(0, n, n * each)
        return sp.csr_array((np.ones(n * each), (rows, columns)), shape=(n, p))

    return make


def cosines(rng: Generator, n: int, p: int) -> Array:
    """Random rows of a cosine transform with unit columns."""
    rows = np.sort(rng.choice(p, n, replace=False))
    A = np.cos(np.pi * np.outer(rows, np.arange(p) + 0.5) / p)
    return A / np.linalg.norm(A, axis=0)


def cosine_operator(rng: Generator, n: int, p: int) -> LinearOperator:
    """The same without storing it."""
    rows = np.sort(rng.choice(p, n, replace=False))

    def rmatvec(r: Array) -> Any:
        full = np.zeros(p)
        full[rows] = r.ravel()
        return idct(full, norm="ortho")

    def matvec(x: Array) -> Any:
        return dct(x.ravel(), norm="ortho")[rows]

    return LinearOperator((n, p), matvec=matvec, rmatvec=rmatvec, dtype=float)


def blur_operator(rng: Generator, n: int, p: int) -> LinearOperator:
    """Convolution with a bell curve, every ``p // n``-th sample kept: neighbours look alike."""
    lags = np.arange(-8, 9)
    kernel = np.exp(-np.square(lags / 2.0) / 2.0)
    kept = np.arange(n) * (p // n)

    def rmatvec(r: Array) -> Any:
        full = np.zeros(p)
        full[kept] = r.ravel()
        return np.convolve(full, kernel, "same")

    def matvec(x: Array) -> Any:
        return np.convolve(x.ravel(), kernel, "same")[kept]

    return LinearOperator((n, p), matvec=matvec, rmatvec=rmatvec, dtype=float)


# ---- signals and targets ---------------------------------------------------------------------


def signal(rng: Generator, p: int, k: int, *, outputs: int = 0) -> Array:
    """Return ``k`` Gaussian coefficients (rows of ``outputs``) at random places."""
    shape: tuple[int, ...] = (p, outputs) if outputs else (p,)
    x = np.zeros(shape)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal((k, *shape[1:]))
    return x


def noisy(rng: Generator, z: Array, snr: float) -> Array:
    """Return ``z`` with noise: the ratio of variances is ``snr`` (inf for none)."""
    return z + np.std(z) / np.sqrt(snr) * rng.standard_normal(z.shape)


def labels(rng: Generator, z: Array, strength: float = 2.0) -> Array:
    """Return -1 and 1 drawn from the logistic model of ``z``, standardised to ``strength``."""
    z = strength * (z - z.mean()) / max(float(z.std()), 1e-12)
    return np.where(rng.random(z.size) < expit(z), 1.0, -1.0)


def classes(rng: Generator, z: Array, strength: float = 2.0) -> Array:
    """Return classes from zero drawn from the multinomial model of ``z``, shape ``(n, m)``."""
    return np.argmax(strength * z / z.std() + rng.gumbel(size=z.shape), axis=1)


def counts(rng: Generator, z: Array) -> Array:
    """Return Poisson counts around two."""
    return rng.poisson(2.0 * np.exp(0.5 * (z - z.mean()) / z.std())).astype(float)


def waits(rng: Generator, z: Array) -> Array:
    """Return gamma variables of shape 3 with mean ``exp(z)``."""
    return rng.gamma(3.0, np.exp(0.5 * (z - z.mean()) / z.std()) / 3.0)


def outlying(rng: Generator, z: Array) -> Array:
    """Return ``z`` with Student noise of two degrees of freedom."""
    return z + 0.3 * z.std() * rng.standard_t(2.0, z.shape)
