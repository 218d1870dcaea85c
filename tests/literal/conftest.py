"""Small problems in plain NumPy, the same for the library, and a run that keeps its iterates.

The tests of this folder compare the backends, in literal mode, with the pseudo-code of their papers
written out here again: a few lines each, without anything of the library.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, Context, SparseRegression, Term
from sparsemodel.losses import HingeLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted

LOSSES = {
    "squared": SquaredLoss(),
    "logistic": LogisticLoss(),
    "smoothed hinge": SmoothedHingeLoss(0.25),
    "hinge": HingeLoss(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """``f(x) = sum_i l(a_i x, y_i) / weight_i + ridge ||x||^2 / 2``, at most ``k`` nonzeros.

    ``free`` coordinates are neither counted nor in the ridge: an intercept for instance.
    """

    A: np.ndarray
    y: np.ndarray
    k: int
    loss: str = "squared"
    ridge: float = 0.0
    weight: float | np.ndarray = 1.0
    free: tuple[int, ...] = ()

    @property
    def ridges(self):
        out = np.full(self.A.shape[1], self.ridge)
        out[list(self.free)] = 0.0
        return out

    def H(self, x, k):
        """``H_k``, ties to the lower index, of the counted coordinates; the free ones stay."""
        sizes = np.abs(x)
        sizes[list(self.free)] = np.inf
        keep = np.argsort(-sizes, kind="stable")[: k + len(self.free)]
        out = np.zeros_like(x)
        out[keep] = x[keep]
        return out

    def f(self, x):
        u = self.A @ x
        if self.loss == "squared":
            losses = 0.5 * (u - self.y) ** 2
        else:
            losses = np.logaddexp(0.0, -self.y * u)
        return np.sum(losses / self.weight) + 0.5 * self.ridges * x @ x

    def g(self, x):
        u = self.A @ x
        if self.loss == "squared":
            slope = u - self.y
        else:
            slope = -self.y / (1.0 + np.exp(self.y * u))
        return self.A.T @ (slope / self.weight) + self.ridges * x

    def hessian(self, x):
        if self.loss == "squared":
            c = np.ones(len(self.y))
        else:
            s = 1.0 / (1.0 + np.exp(-self.A @ x))
            c = s * (1.0 - s)
        return (self.A.T * (c / self.weight)) @ self.A + np.diag(self.ridges)

    def argmin(self, support, extra=None):
        """Newton's method on a support; ``extra`` is a diagonal added to the Hessian of ``f``."""
        p, S = self.A.shape[1], np.union1d(support, self.free).astype(int)
        d, x = np.zeros(p) if extra is None else extra, np.zeros(p)
        free = tuple(np.flatnonzero(np.isin(S, self.free)))
        part = replace(self, A=self.A[:, S], free=free)
        for _ in range(100 if S.size else 0):
            g = part.g(x[S]) + d[S] * x[S]
            step = np.linalg.solve(part.hessian(x[S]) + np.diag(d[S]), g)
            x[S] -= step
            if np.abs(step).max() <= 1e-12 * (1.0 + np.abs(x).max()):
                break
        return x

    def objective(self):
        n, p = self.A.shape
        loss, weights = LOSSES[self.loss], np.full(n, 1.0 / self.weight)
        term = Term(DenseDesign(self.A), loss, self.y, weights)
        free = np.array(self.free, dtype=np.intp)
        form = SparseRegression((term,), self.ridges, Cardinality(p, self.k, free=free))
        return RegressionObjective(form)


def drawn(seed, n, p, k, *, correlation=0.5, uneven=False, labels=False, noise=0.5):
    rng = np.random.default_rng(seed)
    A = (
        rng.standard_normal((n, p))
        @ np.linalg.cholesky((1.0 - correlation) * np.eye(p) + correlation).T
    )
    A /= np.linalg.norm(A, axis=0)
    if uneven:
        A *= rng.uniform(0.3, 1.5, p)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(1.0, 3.0, k)
    u = A @ x
    if labels:
        return A, np.where(u + noise * u.std() * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    return A, u + noise * u.std() * rng.standard_normal(n)


def weighted(problem, seed=0):
    """The problem with an intercept, and observations that count up to nine times as much."""
    n = len(problem.y)
    inverse = 1.0 / np.random.default_rng(seed).uniform(0.3, 2.7, n)
    A = np.column_stack((problem.A, np.full(n, 0.3)))
    y = problem.y if problem.loss == "logistic" else problem.y + 2.0
    return replace(problem, A=A, y=y, weight=inverse, free=(A.shape[1] - 1,))


def make_even():
    A, y = drawn(1, 30, 20, 5)
    return Plain(A, y, 5)


def make_uneven():
    A, y = drawn(2, 40, 24, 6, uneven=True)
    return Plain(A, y, 6, ridge=0.02)


def make_logistic():
    A, y = drawn(3, 80, 16, 4, uneven=True, labels=True, correlation=0.3)
    return Plain(3.0 * A, y, 4, "logistic", ridge=0.05)


PROBLEMS = {"even": make_even, "uneven": make_uneven, "logistic": make_logistic}


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request):
    """Squared losses of unit and of unequal columns, and a logistic loss."""
    return PROBLEMS[request.param]()


@pytest.fixture(params=["even", "uneven"])
def quadratic(request):
    return PROBLEMS[request.param]()


@pytest.fixture(params=["squared", "logistic"])
def hard(request):
    """Many columns for few observations, so that supports change for a while."""
    labels = request.param == "logistic"
    A, y = drawn(7, 50, 150, 10, correlation=0.0, labels=labels, noise=0.3)
    return Plain(A * (3.0 if labels else 1.0), y, 10, request.param, ridge=0.05)


@pytest.fixture(params=["squared", "logistic"])
def weighted_hard(request):
    """The same with weights and an intercept."""
    labels = request.param == "logistic"
    A, y = drawn(7, 50, 150, 10, correlation=0.0, labels=labels, noise=0.3)
    return weighted(Plain(A * (3.0 if labels else 1.0), y, 10, request.param, ridge=0.05))


@pytest.fixture
def mean_loss():
    """A mean over observations with a ridge, as DIHT and HT-SVRG have it; by loss."""

    def make(loss, k=4, seed=5, n=24, p=12, ridge=0.3):
        A, y = drawn(seed, n, p, k, uneven=True, labels=loss != "squared")
        return Plain(2.0 * A, y, k, loss, ridge=ridge, weight=float(n))

    return make


@pytest.fixture
def borderline():
    """Where a change of eta by 5 % decides (20) of NHTP (found by a search over seeds)."""
    A, y = drawn(76, 20, 30, 5, correlation=0.3)
    return Plain(A, y, 5, ridge=0.05)


@pytest.fixture
def flat():
    """Short columns, so that the constant of (20) of NHTP decides (found by a search as well)."""
    A, y = drawn(3, 20, 30, 5, correlation=0.3)
    return Plain(0.3 * A, y, 5, ridge=0.0045)


@pytest.fixture(params=[14, 17])
def halved(request):
    """Where twice the exact step ends at a worse support once (seeds of a search)."""
    A, y = drawn(request.param, 50, 150, 10, correlation=0.0)
    return Plain(A, y, 10, ridge=0.05)


@pytest.fixture(params=["squared", "logistic"])
def correlated(request):
    """Columns that stand in for each other, so that forward steps are regretted."""
    labels = request.param == "logistic"
    A, y = drawn(
        2 if labels else 8, 60, 20, 5, correlation=0.9, uneven=True, labels=labels, noise=0.1
    )
    return Plain(A * (9.0 if labels else 1.0), y, 12, request.param, ridge=1e-3)


@pytest.fixture
def problem_of():
    return Plain


@pytest.fixture
def with_k():
    return lambda problem, k: replace(problem, k=k)


@pytest.fixture
def run():
    """Return a function: the states after every step of a backend (after the first, none)."""

    def states(backend, problem, steps=10, *, start=None, seed=0, first=False):
        objective = problem.objective() if isinstance(problem, Plain) else problem
        solver = minimise_restricted
        context = Context(solver, rng=np.random.default_rng(seed), start=start)
        state = backend.init(objective, context)
        out = [state] if first else []
        for _ in range(steps):
            state = backend.step(objective, state, context)
            out.append(state)
        return out

    return states


@pytest.fixture
def H():
    """Return ``H_k``: the k largest entries in magnitude, ties to the lower index."""

    def threshold(x, k):
        out = np.zeros_like(x)
        keep = np.argsort(-np.abs(x), kind="stable")[:k]
        out[keep] = x[keep]
        return out

    return threshold


@pytest.fixture
def same():
    """Return a check that two sequences of vectors agree, and that they do not stand still."""

    def check(ours, theirs, *, least=3, rtol=1e-7):
        assert len(ours) == len(theirs)
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            np.testing.assert_allclose(
                mine, other, rtol=rtol, atol=rtol * np.abs(other).max(), err_msg=f"step {number}"
            )
        different = {np.round(x, 6).tobytes() for x in theirs}
        assert len(different) >= least, "the problem is over at once: it tests nothing"

    return check
