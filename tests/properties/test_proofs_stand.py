"""Certificates and proofs of random problems of every kind: valid, verifiable, never a crash."""

from __future__ import annotations

import functools
import itertools
import sys
import time
import types

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.certificates.dual_bounds.coefficient_bounds import rows_compiled
from sparsemodel.certificates.precision_matrices.proving import ascent_compiled
from sparsemodel.certificates.proving import attempts, search
from sparsemodel.certificates.proving.beyond_root import ended_by_interrupt
from sparsemodel.certificates.proving.compiling import interruptible
from sparsemodel.certificates.proving.gram.kernels.node_compiled import solve_node
from sparsemodel.certificates.proving.gram.kernels.node_problem import Limits, NodeProblem
from sparsemodel.certificates.proving.gram.part import GramPart
from sparsemodel.certificates.proving.gram.stage import Gram
from sparsemodel.certificates.relaxation.smooth import LossSmooth
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.numerics import RegressionObjective
from sparsemodel.numerics.minimisers.dispatch import minimise_restricted

LOSSES = [
    "squared",
    "logistic",
    "huber",
    "poisson",
    "gamma",
    "smoothed_hinge",
    "squared_hinge",
    "hinge",
    "absolute",
    "quantile",
    "epsilon_insensitive",
]


def target(name, u, shift, size, rng):
    """Return a target for a loss: unbalanced classes, shifted and scaled numbers."""
    if name in ("logistic", "smoothed_hinge", "squared_hinge", "hinge"):
        y = np.where(u > np.quantile(u, rng.choice([0.5, 0.85])), 1.0, -1.0)
        y[:2] = [1.0, -1.0]
        return y
    mean = np.exp(np.clip(0.5 * u + min(shift, 3.0), -3.0, 5.0))
    if name == "poisson":
        return rng.poisson(mean) + (np.arange(u.size) == 0) * 1.0
    return rng.exponential(mean) + 0.01 if name == "gamma" else (u + shift) * size


def problem(seed):
    """Return a problem: loss, sizes, collinearity, scales, shifts and ridge drawn from the seed."""
    rng = np.random.default_rng(seed)
    name = LOSSES[seed % len(LOSSES)]
    n, p = int(rng.integers(4, 16)), int(rng.integers(2, 6))
    x = rng.standard_normal((n, p)) + rng.choice([0, 1, 5]) * rng.standard_normal((n, 1))
    u = x[:, 0] - x[:, -1] + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(n)
    kind = int(rng.integers(5))
    if kind == 1:
        x[:, 1] = x[:, 0] * (1.0 + 10.0 ** rng.integers(-16, -3) * rng.standard_normal(n))
    elif kind == 2:
        x = x * 10.0 ** rng.integers(-8, 9, p)
    elif kind == 3:
        x = x * 10.0 ** float(rng.integers(-8, 9))
    elif kind == 4:
        x = np.round(x)
    shift = float(rng.choice([0.0, 0.0, 1.0, 100.0, 1e4, 1e7]))
    y = target(name, u, shift, float(rng.choice([1.0, 1.0, 1e-8, 1e8])), rng)
    more = {"weights": rng.uniform(0.01, 10.0, n)} if rng.random() < 0.3 else {}
    w, c = sm.Variable(p), sm.Variable()
    predictions = x @ w + c if rng.random() < 0.6 else x @ w
    if rng.random() < 0.2:
        predictions = predictions + rng.standard_normal(n) * 10.0 ** rng.integers(-3, 3)
    size = float(np.median(np.square(x).mean(axis=0)))
    ridge = 10.0 ** rng.uniform(-10.0, 1.0) * (size if rng.random() < 0.8 else 1e-20 * size)
    goal = sm.minimize(getattr(sm, f"{name}_loss")(predictions, y, **more) + sm.ridge(w, ridge))
    return sm.Problem(goal, sm.card(w) <= int(rng.integers(1, min(p, 4) + 1)))


def least(form):
    """Return the least objective, rounded up, over the minimisers on all supports."""
    objective, best = RegressionObjective(form), np.inf
    for chosen in itertools.combinations(range(form.sparsity.units), form.sparsity.k):
        own = form.sparsity.coordinates(np.array(chosen, dtype=np.intp))
        support = np.union1d(own, form.sparsity.free)
        try:
            x = minimise_restricted(objective, support, objective.origin()).x
        except sm.SparseModelError:
            continue
        if np.all(np.isfinite(x)):
            best = min(best, primal(form, x).upper)
    return best


@pytest.mark.parametrize(  # each loss, and in the slow suite once more
    "seed", [*range(11), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(11, 22))]
)
def test_bounds_hold_and_certificates_verify(seed, tmp_path):
    declared = problem(seed)
    with np.errstate(all="ignore"):
        best = least(declared.form)
    try:
        solution = declared.solve()
        certificate = declared.certify(time_limit=0.3)
        proof = declared.prove(gap=10.0 ** -(seed % 7 + 2), time_limit=0.3)
    except sm.BoundError:
        raise
    except sm.SparseModelError as error:
        pytest.skip(f"refused: {error}")
    best = min(best, certificate.upper, proof.upper)
    assert max(solution.bound, certificate.bound, proof.bound) <= best
    assert proof.bound >= certificate.bound
    for number, found in enumerate((certificate, proof)):
        verify(found.save(tmp_path / f"{number}.json"), declared.form)


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
@pytest.mark.parametrize("first", [True, False])
def test_a_proof_without_time_still_has_the_bound_of_the_certificate(loss, first, request):
    if not first:  # a certificate of its own, of which the proof knows nothing
        request.getfixturevalue("at_the_root")
    rng = np.random.default_rng(5)
    x = rng.standard_normal((30, 40)) + rng.standard_normal((30, 1))
    u = x[:, :6] @ rng.standard_normal(6) + rng.standard_normal(30)

    def declared():
        w, c = sm.Variable(40), sm.Variable()
        y = np.sign(u) if loss is sm.logistic_loss else u
        return sm.Problem(sm.minimize(loss(x @ w + c, y) + sm.ridge(w, 0.05)), sm.card(w) <= 6)

    reference = declared()
    reference.solve("gp")
    certificate = reference.certify()
    tried = declared() if not first else reference
    tried.solve("gp")
    proof = tried.prove(time_limit=0.01 if first else 1.0)
    assert proof.bound >= certificate.bound - (0.0 if first else 1e-4 * abs(certificate.bound))
    verify(proof, tried.form)


def test_the_solver_of_nodes_divides_by_zero_without_raising():
    """Nothing to choose, no multiplier, and a matrix that Newton's method refuses."""
    q, one, far = np.array([[1.0, 5.0], [5.0, 1.0]]) * 1e3, np.ones(2), np.full(2, np.inf)
    none, limits = np.zeros(2), Limits(1.0, 1e-9, 50)
    undecided = np.zeros(2, np.int8)
    for status in (undecided, np.ones(2, np.int8)):
        node = NodeProblem(q, one, 0.0, one, -far, far, status, 2.0, one, none, 0.0)
        solve_node(node, none, 0.0, limits)
    node = NodeProblem(-q, one, 0.0, one, -far, far, undecided, 1.0, one, none, 0.0)
    solve_node(node, one, 0.0, limits)
    # No curvature beside that of the matrix, and a bound of zero.
    node = NodeProblem(q, one, 0.0, none, none, one, undecided, 1.0, one, none, 0.0)
    solve_node(node, one, 0.0, limits)


@pytest.mark.parametrize("ridge", [0.03, 0.01])
def test_a_node_with_more_columns_than_rows_is_solved_in_few_rounds(ridge):
    """Linear columns are dependent there, and a Newton step that helps nowhere is not taken."""
    n, p, tolerance = 30, 100, 1e-3
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a = rng.standard_normal((n, p))
        b = a[:, :4] @ [1.0, -1.0, 1.0, -1.0] + rng.standard_normal(n)
        b /= np.sqrt(b @ b / n)
        q, g = a.T @ a / n / ridge, a.T @ b / n / np.sqrt(ridge)
        one, far, status = np.ones(p), np.full(p, np.inf), np.zeros(p, np.int8)
        none = np.zeros(p)
        node = NodeProblem(q, g, 0.5, one, -far, far, status, 4.0, one, none, 0.0)
        w, _, bound, value, rounds = solve_node(node, none, 0.0, Limits(np.inf, tolerance, 200))
        assert rounds < 100
        assert 0.0 <= value - bound <= tolerance
        gains = np.sort(np.square(q @ w - g))[-4:]  # the bound of the point, written otherwise
        assert bound == pytest.approx(0.5 - 0.5 * w @ q @ w - 0.5 * gains.sum(), abs=1e-9)


def interrupted_after(count, original):
    """Return a method that is interrupted at its ``count``-th call, once."""
    calls = [0]

    def method(*arguments, **options):
        calls[0] += 1
        if calls[0] == count:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    return method


def wide(loss):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 60)) + rng.standard_normal((40, 1))
    u = x[:, :6] @ rng.standard_normal(6) + rng.standard_normal(40)
    w, c = sm.Variable(60), sm.Variable()
    y = u if loss in (sm.squared_loss, sm.huber_loss) else np.sign(u)
    declared = sm.Problem(sm.minimize(loss(x @ w + c, y) + sm.ridge(w, 0.3)), sm.card(w) <= 6)
    declared.solve("gp")
    return declared


@functools.cache
def proved_upper(loss):
    return wide(loss).prove(time_limit=0.3).upper


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "loss",
    [
        sm.logistic_loss,
        sm.huber_loss,
        pytest.param(sm.squared_hinge_loss, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_proof_returns_what_is_proved(loss, count, monkeypatch):
    upper, again = proved_upper(loss), wide(loss)
    method = interrupted_after(count, search.Search._look)
    monkeypatch.setattr(search.Search, "_look", lambda *a: method(*a))
    proof = again.prove(time_limit=2.0)
    assert proof.proof["summary"]["ended"] == "interrupted"
    assert proof.bound <= upper
    verify(proof, again.form)
    assert not count > 2 or proof.bound > 0.0


def test_an_interrupted_search_for_squares_returns_what_is_proved(monkeypatch):
    declared = wide(sm.squared_loss)
    method = interrupted_after(2, search.Search._look)
    monkeypatch.setattr(search.Search, "_look", lambda *a: method(*a))
    proof = declared.prove(time_limit=5.0)
    assert proof.proof["summary"]["ended"] == "interrupted"
    assert proof.bound > 0.0
    verify(proof, declared.form)


@pytest.mark.parametrize("ridge", [0.0, 0.02])
def test_nothing_is_proved_of_parts_that_an_interrupt_leaves(ridge, monkeypatch):
    """Without ridge nothing has been looked at when the bounds on the coefficients are computed."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((40, 100)) + rng.standard_normal((40, 1))
    y = x[:, :4].sum(axis=1) + 2.0 * rng.standard_normal(40)
    w = sm.Variable(100)
    loss = sm.squared_loss(x @ w, y) + sm.ridge(w, ridge)
    declared = sm.Problem(sm.minimize(loss), sm.card(w) <= 4)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(attempts, "from_data", interrupted)
    proof = declared.prove()
    assert proof.proof["summary"]["ended"] == "interrupted"
    assert proof.proof["summary"]["open"] >= 1
    assert proof.claim is not Claim.OPTIMAL
    assert proof.bound < 0.99 * proof.value
    assert ridge == 0.0 or proof.bound > 0.0
    verify(proof, declared.form)


@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("loss", [sm.logistic_loss, sm.huber_loss])
def test_an_interrupted_certificate_has_the_best_bound_so_far(loss, count, monkeypatch):
    declared = wide(loss)
    method = interrupted_after(count, LossSmooth.gradient)
    monkeypatch.setattr(LossSmooth, "gradient", lambda *a: method(*a))
    certificate = declared.certify()
    assert ended_by_interrupt(certificate)
    assert certificate.bound > 0.0
    verify(certificate, declared.form)


def test_compiling_does_not_count_as_search(monkeypatch):
    class Slow(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            time.sleep(0.2)
            return (lambda: 0.0) if name == "compiling" else name

    name = "sparsemodel.certificates.proving.gram.kernels.node_compiled"
    monkeypatch.setitem(sys.modules, name, Slow(name))
    monkeypatch.setattr("sparsemodel.certificates.proving.gram.stage.LOADING", 0.05)
    form = wide(sm.squared_loss).form
    gram = Gram.of(form, form, None)
    assert gram.compiled() == "solve_node"
    assert 0.1 <= gram.delay < 5.0


@pytest.mark.parametrize("module", [rows_compiled, ascent_compiled])
def test_what_is_compiled_already_delays_no_search(module):
    module.compiling()
    assert module.compiling() < 0.1


def test_ctrl_c_in_compiled_code_is_an_interrupt_and_other_errors_are_not():
    def stopped():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("a result with an exception set") from error

    def broken():
        raise SystemError("something else")

    with pytest.raises(KeyboardInterrupt):
        interruptible(stopped)()
    with pytest.raises(SystemError, match="something else"):
        interruptible(broken)()
    assert interruptible(max)(1, 2) == 2


def test_other_searches_have_the_time_that_compiling_took(monkeypatch):
    """The first search of a machine took it all: what was left for bounds and others was none."""
    monkeypatch.setattr(GramPart, "delay", property(lambda self: 1e3))
    deadlines, found = [], attempts.from_data

    def from_data(*given, deadline, **options):
        deadlines.append(deadline)
        return found(*given, deadline=deadline, **options)

    monkeypatch.setattr(attempts, "from_data", from_data)
    rng = np.random.default_rng(0)
    w = sm.Variable(12)
    loss = sm.squared_loss(rng.standard_normal((9, 12)) @ w, rng.standard_normal(9))
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 3)
    problem.solve()
    began = time.perf_counter()
    assert problem.prove(time_limit=60.0).relative_gap <= 1e-4
    assert min(deadlines) - began > 0.5 * 1e3
