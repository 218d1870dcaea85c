"""Objectives without curvature, against all supports with a linear program on each."""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import replace
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.certificates.proving.dual import part
from sparsemodel.interfaces import Stop
from sparsemodel.losses import AbsoluteLoss, HuberLoss
from sparsemodel.numerics.linear_programs.formulation import Relaxation
from sparsemodel.testing.backend_checks import contract, equivariance, limits, robustness
from sparsemodel.testing.instances.generators import planted
from sparsemodel.testing.instances.problems import Instance
from sparsemodel.testing.instances.subject import Subject
from sparsemodel_backends.milp import MILP
from tests.referee import judge


class Declared:
    """A random declaration, with what enumerates it: arrays, and rules for sets of units."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        n = self.n = int(rng.integers(4, 10))
        self.k = int(rng.integers(1, min(n, 4) + 1))
        self.w = w = sm.Variable(n, name="w")
        self.cost = rng.standard_normal(n)
        self.low, self.high, self.least = np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n)
        self.equal, self.below = [], []  # (row, right side)
        self.norms = []  # |w - center|_1 <= radius
        self.unit = np.arange(n)
        self.rules, self.prices = [], np.zeros(n)
        self.said = []
        if rng.random() < 0.2:
            self.unit = np.arange(n) // 2
            self.said.append(sm.card(w, groups=self.unit) <= self.k)
        else:
            self.said.append(sm.card(w) <= self.k)
        grouped = self.unit[-1] < n - 1
        kinds = ["cap", "rows", "turnover", "price", "budget", "sectors", "minimum", "hierarchy"]
        kinds = kinds[:3] if grouped else kinds
        chosen = rng.choice(kinds, size=int(rng.integers(0, 4)), replace=False)
        self.sides("minimum" in chosen)
        if rng.random() < 0.7:
            total = float(rng.choice([1.0, 0.7]))
            self.said.append(w.sum() == total)
            self.equal.append((np.ones(n), total))
        goal = self.cost @ w
        self.fit = None
        if rng.random() < 0.4:
            m, tau = int(rng.integers(3, 9)), float(rng.choice([0.5, 0.3, 0.8]))
            self.fit = rng.standard_normal((m, n)), rng.standard_normal(m), tau
            loss = sm.quantile_loss(self.fit[0] @ w, self.fit[1], tau=tau, reduction="sum")
            goal = goal + 2.0 * loss
        for kind in chosen:
            getattr(self, kind)()
        if self.prices.any():
            goal = goal + (self.prices @ sm.chosen(w))
        self.problem = sm.Problem(sm.minimize(goal), self.said)

    def sides(self, one: bool) -> None:
        if one or self.rng.random() < 0.5:
            self.low = np.zeros(self.n)
            self.high = self.rng.uniform(0.3, 1.5, self.n)
        else:
            self.low = -self.rng.uniform(0.2, 1.0, self.n)
            self.high = self.rng.uniform(0.3, 1.5, self.n)
        if not one:
            self.said += [self.w >= self.low, self.w <= self.high]

    def cap(self) -> None:
        top = float(self.rng.uniform(0.2, 0.9))
        self.below.append((np.r_[1.0, np.zeros(self.n - 1)], top))
        self.said.append(self.w[0] <= top)

    def rows(self) -> None:
        a, b = self.rng.standard_normal((2, self.n)), self.rng.uniform(-0.1, 0.6, 2)
        self.below += list(zip(a, b, strict=True))
        self.said.append(a @ self.w <= b)

    def turnover(self) -> None:
        center, radius = self.rng.dirichlet(np.ones(self.n)), float(self.rng.uniform(0.5, 2.0))
        self.norms.append((center, radius))
        self.said.append(sm.norm(self.w - center, 1) <= radius)

    def minimum(self) -> None:
        self.least = np.full(self.n, float(self.rng.uniform(0.05, 0.25)))
        self.said.append(sm.semicontinuous(self.w, self.least, self.high))

    def price(self) -> None:
        self.prices = self.rng.uniform(0.0, 0.3, self.n)

    def budget(self) -> None:
        costs, most = self.rng.uniform(0.2, 2.0, self.n), float(self.rng.uniform(1.0, 4.0))
        self.rules.append(lambda units: costs[units].sum() <= most)
        self.said.append(costs @ sm.chosen(self.w) <= most)

    def sectors(self) -> None:
        most = int(self.rng.integers(1, 3))
        for begin, end in ((0, self.n // 2), (self.n // 3, self.n)):
            part = np.arange(begin, end)
            self.rules.append(lambda units, part=part: np.isin(units, part).sum() <= most)
            self.said.append(sm.card(self.w[begin:end]) <= most)

    def hierarchy(self) -> None:
        self.rules.append(lambda units: 0 in units or 1 not in units)
        self.said.append(sm.chosen(self.w)[1] <= sm.chosen(self.w)[0])

    # ---- enumeration -------------------------------------------------------------------------

    def best_on(self, units: np.ndarray) -> float:
        """Return the least objective where units are chosen; infinite where none is feasible.

        The unknowns are the entries, then a bound of each absolute value.
        """
        n, on = self.n, np.isin(self.unit, units)
        low = np.where(on, np.where(self.least > 0.0, self.least, self.low), 0.0)
        bounds = list(zip(low, np.where(on, self.high, 0.0), strict=True))
        fit, y, tau = self.fit or (np.zeros((0, n)), np.zeros(0), 0.5)
        m, q = len(y), n * len(self.norms)
        A_ub = [np.r_[row, np.zeros(m + q)] for row, _ in self.below]
        b_ub = [right for _, right in self.below]
        for i in range(m):  # the loss of a residual r is max(-tau r', (1 - tau) r') of r' = a w - y
            for slope in (-tau, 1.0 - tau):
                A_ub.append(np.r_[slope * fit[i], np.zeros(m + q)])
                A_ub[-1][n + i] = -1.0
                b_ub.append(slope * y[i])
        for number, (center, radius) in enumerate(self.norms):
            at = n + m + n * number
            for j in range(n):
                for sign in (-1.0, 1.0):
                    A_ub.append(np.zeros(n + m + q))
                    A_ub[-1][j], A_ub[-1][at + j] = sign, -1.0
                    b_ub.append(sign * center[j])
            A_ub.append(np.zeros(n + m + q))
            A_ub[-1][at : at + n] = 1.0
            b_ub.append(radius)
        found = linprog(
            np.r_[self.cost, np.full(m, 2.0), np.zeros(q)],
            A_ub=np.reshape(A_ub, (-1, n + m + q)),
            b_ub=b_ub,
            A_eq=np.reshape(
                [np.r_[row, np.zeros(m + q)] for row, _ in self.equal], (-1, n + m + q)
            ),
            b_eq=[right for _, right in self.equal],
            bounds=bounds + [(None, None)] * m + [(0.0, None)] * q,
        )
        return found.fun + self.prices[units].sum() if found.status == 0 else np.inf

    def optimum(self) -> float:
        units = range(int(self.unit[-1]) + 1)
        every = (
            np.array(chosen, dtype=int)
            for size in range(min(self.k, len(units)) + 1)
            for chosen in combinations(units, size)
        )
        allowed = (chosen for chosen in every if all(rule(chosen) for rule in self.rules))
        return min(map(self.best_on, allowed), default=np.inf)


@pytest.mark.parametrize(
    "seed", [*range(60), *(pytest.param(s, marks=pytest.mark.slow) for s in range(60, 200))]
)
def test_nothing_is_better_than_the_optimum_and_it_is_found(seed):
    declared = Declared(seed)
    best = declared.optimum()
    if not np.isfinite(best):
        with pytest.raises(sm.InfeasibleError):
            declared.problem.solve("milp")
        return
    solution = declared.problem.solve("milp")
    assert solution.value == pytest.approx(best, rel=1e-7, abs=1e-8)
    assert not judge(declared.problem, solution).faults


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_parts_are_bounded_by_linear_programs_until_the_proof_is_closed(seed):
    declared = Declared(seed)
    best = declared.optimum()
    if not np.isfinite(best):
        return
    certificate = declared.problem.prove(time_limit=None)
    assert certificate.claim is Claim.OPTIMAL
    assert certificate.bound <= best + 1e-9 * (1.0 + abs(best))
    verify(certificate, declared.problem.form)


def test_a_forged_dual_point_proves_no_more_than_it_is_worth(monkeypatch):
    """Multipliers come from floating point: whatever they are, the bound is below the optimum."""
    rng = np.random.default_rng(0)
    known = part.dual_point

    def forged(*given):
        x, duals = known(*given)
        return x, tuple(a * rng.uniform(0.5, 1.5, a.shape) for a in duals)

    monkeypatch.setattr(part, "dual_point", forged)
    for seed in (0, 3, 5, 9):
        declared = Declared(seed)
        best = declared.optimum()
        if np.isfinite(best):
            certificate = declared.problem.prove(time_limit=None, gap=1e-3)
            assert certificate.bound <= best + 1e-9 * (1.0 + abs(best))


# ---- which problems it takes ---------------------------------------------------------------------


def returns(n=30, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def test_a_linear_objective_is_solved_so_and_sorting_agrees():
    mu, w = returns(), sm.Variable(30, name="w")
    problem = sm.Problem(sm.minimize(-(mu @ w)), [w.sum() == 1, w >= 0, w <= 0.3, sm.card(w) <= 5])
    assert "a linear objective makes this a mixed-integer linear program" in str(problem.explain())
    solution = problem.solve()
    best = np.sort(mu)[::-1]
    assert solution.backend == "milp"
    assert solution.value == pytest.approx(-(0.3 * best[:3].sum() + 0.1 * best[3]), rel=1e-12)
    assert solution.status == "optimal (proved)"


def test_few_kinks_are_taken_and_many_are_not():
    rng = np.random.default_rng(1)
    plans = []
    for n in (50, 51):
        w, A = sm.Variable(20, name="w"), rng.standard_normal((n, 20))
        problem = sm.Problem(sm.minimize(sm.absolute_loss(A @ w, A[:, 0])), sm.card(w) <= 3)
        plans.append(problem.plan().stages[0].label)
    assert plans[0] == "milp" != plans[1]


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        (lambda w: sm.squared_loss(w, np.ones(4)), "no curvature"),
        (lambda w: sm.absolute_loss(w, np.ones(4)) + sm.ridge(w, 0.1), "without a ridge"),
        (lambda w: sm.hinge_loss(np.eye(4)[:2] @ w, np.array([1, -1])), "needs bounds"),
    ],
)
def test_what_it_cannot_solve_is_refused_in_words(goal, why):
    w = sm.Variable(4, name="w")
    problem = sm.Problem(sm.minimize(goal(w)), sm.card(w) <= 2)
    with pytest.raises(sm.UnsupportedProblemError, match=why):
        problem.solve("milp")


def test_an_objective_without_end_is_said_to_be():
    w = sm.Variable(4, name="w")
    problem = sm.Problem(sm.minimize(-w.sum()), w >= 0, sm.card(w) <= 2)
    with pytest.raises(sm.UnboundedError):
        problem.solve()


def test_infeasible_is_said_with_the_limit():
    w = sm.Variable(12, name="w")
    said = [w.sum() == 1, w >= 0, w <= 0.2, sm.card(w) <= 4]
    with pytest.raises(sm.InfeasibleError, match=r"by arithmetic.*Allow at least 5"):
        sm.Problem(sm.minimize(returns(12) @ w), said).solve()


@pytest.mark.parametrize("seed", range(6))
def test_limits_on_euclidean_norms_are_kept_by_tangents(seed):
    """Every support is a small cone program; those of Clarabel are compared."""
    rng = np.random.default_rng(seed)
    n, k, limit = 7, 3, float(rng.uniform(0.5, 0.9))
    F, mu = rng.standard_normal((n, n)) * 0.7, rng.standard_normal(n)
    best = np.inf
    for chosen in combinations(range(n), k):
        x = cp.Variable(k)
        on = list(chosen)
        each = cp.Problem(
            cp.Minimize(-mu[on] @ x), [cp.sum(x) == 1, x >= 0, cp.norm(F[:, on] @ x) <= limit]
        )
        each.solve(solver="CLARABEL")
        best = min(best, each.value)
    w = sm.Variable(n, name="w")
    problem = sm.Problem(
        sm.minimize(-(mu @ w)), [w.sum() == 1, w >= 0, sm.norm(F @ w) <= limit, sm.card(w) <= k]
    )
    if not np.isfinite(best):
        with pytest.raises(sm.InfeasibleError):
            problem.solve()
        return
    solution = problem.solve()
    assert solution.backend == "milp"
    assert solution.value == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert not judge(problem, solution).faults


# ---- the contract of backends --------------------------------------------------------------------


def kinks() -> Instance:
    """A least absolute deviation, of which the suite has no instance without a ridge."""
    base = planted("kinks", HuberLoss(), n=25, p=6, k=2, ridge=0.0)
    return replace(base, data=(replace(base.data[0], loss=AbsoluteLoss()),), planted=None)


@pytest.mark.parametrize(
    "law",
    [
        contract.deterministic,
        contract.inputs_untouched,
        contract.quiet,
        limits.honours_the_iteration_limit,
        limits.honours_the_deadline,
        limits.callback_ends_the_run,
        limits.callback_errors_surface,
        limits.history_is_true,
        robustness.thread_safe,
        equivariance.permuting_coordinates,
        equivariance.flipping_signs,
        equivariance.scaling_the_design,
        equivariance.scaling_the_objective,
    ],
)
def test_it_is_a_backend_as_others_are(law):
    law(Subject(MILP(), 1e-8, 1e-5, None), kinks())


def packing() -> sm.Problem:
    """Sixty things in ten bags, which takes HiGHS some seconds."""
    rng = np.random.default_rng(0)
    n = 60
    w, A, gain = sm.Variable(n, name="w"), rng.random((10, n)), rng.random(n)
    said = [sm.semicontinuous(w, 0.9, 1.0), A @ w <= 0.3 * A.sum(axis=1), sm.card(w) <= 18]
    return sm.Problem(sm.minimize(-(gain + A.mean(axis=0)) @ w), said)


def test_nodes_and_time_may_be_up():
    problem = packing()
    short = problem.solve(sm.backends.MILP(max_nodes=1))
    assert any("HiGHS ended after 1 nodes" in note for note in short.notes)
    assert short.value < 0.0
    assert problem.solve("milp", time_limit=1e-3).stop is Stop.TIME_LIMIT


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_ctrl_c_ends_a_program_and_keeps_the_best_point():
    problem = packing()
    timer = threading.Timer(1.0, signal.raise_signal, (signal.SIGINT,))
    began = time.perf_counter()
    timer.start()
    solution = problem.solve(sm.backends.MILP(max_nodes=10**9))
    timer.cancel()
    assert solution.stop in (Stop.INTERRUPTED, Stop.CONVERGED)
    assert time.perf_counter() - began < 60.0
    assert solution.value < 0.0


@pytest.mark.parametrize("seed", range(4))
def test_what_constraints_imply_contains_every_feasible_point(seed):
    rng = np.random.default_rng(seed)
    n = 6
    w, C = sm.Variable(n, name="w"), rng.standard_normal((4, n))
    problem = sm.Problem(
        sm.minimize(rng.standard_normal(n) @ w),
        [w.sum() == 1, w[:3] >= 0, w[3:] <= 0.5, w[3:] >= -1, C @ w <= 1.0, sm.card(w) <= 4],
    )
    low, high = Relaxation.of(problem.form).implied()
    box = problem.form.ends
    rows = [(part.design.to_array(), part.lower, part.upper) for part in problem.form.region.linear]
    matrix, lower, upper = (np.concatenate(each) for each in zip(*rows, strict=True))
    both, ends = np.r_[matrix, -matrix], np.r_[upper, -lower]
    kept = np.isfinite(ends)
    for j in range(n):
        for sign, end in ((1.0, low[j]), (-1.0, high[j])):
            cost = sign * np.eye(n)[j]
            sides = list(zip(box.lower, box.upper, strict=True))
            found = linprog(cost, A_ub=both[kept], b_ub=ends[kept], bounds=sides)
            if found.status == 0:
                assert sign * end <= found.fun + 1e-9
