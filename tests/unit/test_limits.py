"""Time limits and Ctrl-C: what was found so far is returned, and nothing long is begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.certificates.proving import compiling
from sparsemodel.compiler.reductions.compress import Compress
from sparsemodel.interfaces import Stop
from sparsemodel.modelling import problem as problem_module
from sparsemodel.modelling.results import assembly
from sparsemodel.numerics import (
    RegressionObjective,
    minimise_on_support,
    minimise_restricted,
)
from sparsemodel.numerics.budget import budget, ending_by, without_deadline
from sparsemodel.numerics.minimisers.boxed import _OnSupport
from sparsemodel.numerics.search.descents import Descents
from sparsemodel.selection import cross_validation, precision_matrices
from sparsemodel.selection.path import PathResult
from sparsemodel.selection.regressions import RegressionObservations


def _regression(n: int = 60, p: int = 30, k: int = 5) -> sm.Problem:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p))
    y = X[:, :k].sum(axis=1) + rng.standard_normal(n)
    w = sm.Variable(p)
    return sm.Problem(sm.minimize(sm.squared_loss(X @ w, y) + sm.ridge(w, 0.1)), sm.card(w) <= k)


def _graph(p: int = 12, n: int = 60) -> sm.Problem:
    X = np.random.default_rng(1).standard_normal((n, p))
    Omega = sm.Variable((p, p), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(Omega, data=X))
    return sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 10)


class _Clock:
    """A clock that stands still, and jumps when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.perf_counter()
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


def _after(calls: int, function: Any, then: Callable[[], None]) -> Any:
    """Return ``function``, which does ``then`` first when it is called so many times and more."""
    count = 0

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count >= calls:
            then()
        return function(*arguments, **options)

    return called


def test_the_earlier_of_two_deadlines_holds_inside_and_neither_outside() -> None:
    assert budget().deadline is None
    with ending_by(10.0), ending_by(20.0) as left:
        assert left.deadline == budget().deadline == 10.0
        with ending_by(None), ending_by(5.0):
            assert budget().deadline == 5.0
        assert budget().deadline == 10.0
    assert budget().deadline is None


@pytest.mark.parametrize("stop", [Stop.TIME_LIMIT, Stop.INTERRUPTED])
def test_a_path_that_ends_early_keeps_the_points_that_are_done(
    monkeypatch: pytest.MonkeyPatch, stop: Stop
) -> None:
    problem = _regression()
    whole = problem.path(range(11), sweeps=0)
    assert whole.stop is Stop.CONVERGED
    clock = _Clock(monkeypatch)

    def end() -> None:
        if stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        clock.now += 100.0

    monkeypatch.setattr(Descents, "__call__", _after(5, Descents.__call__, end))
    path = problem.path(range(11), sweeps=0, time_limit=10.0)
    assert path.stop is stop
    assert stop.value in repr(path)
    assert path.k.tolist() == list(range(6 if stop is Stop.TIME_LIMIT else 5))
    assert np.allclose(path.objective, whole.objective[: len(path)], rtol=1e-6)


@pytest.mark.parametrize("problem", [_regression(), _graph()])
def test_a_path_without_time_has_a_feasible_point(problem: sm.Problem) -> None:
    path = problem.path([4, 6, 8], time_limit=0.0)
    assert path.stop is Stop.TIME_LIMIT
    assert path.k.tolist() == [4]
    assert len(path.support[0]) <= 4


def test_a_path_of_graphs_ends_with_the_search_that_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    step = "sparsemodel_backends.precision.swap.PrecisionSwap.step"
    from sparsemodel_backends.precision.swap import PrecisionSwap

    monkeypatch.setattr(step, _after(6, PrecisionSwap.step, interrupt))
    path = _graph().path([2, 4, 6, 8])
    assert path.stop is Stop.INTERRUPTED
    assert 1 <= len(path) < 4
    assert np.all(np.diff(path.objective) <= 0.0)


def test_ctrl_c_inside_a_fold_ends_the_cross_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    path = _regression().path(range(4))

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Descents, "__call__", _after(5, Descents.__call__, interrupt))
    with pytest.raises(KeyboardInterrupt):
        path.cross_validate(folds=3, time_limit=50.0)


def test_ctrl_c_keeps_the_folds_that_were_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    path = _regression().path(range(4))
    whole = path.cross_validation(folds=4)
    begun: list[object] = []
    solutions = RegressionObservations.solutions

    def interrupted(*given: Any) -> Any:
        begun.append(given)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return solutions(*given)

    monkeypatch.setattr(RegressionObservations, "solutions", interrupted)
    found = path.cross_validation(folds=4)
    assert found.stop is Stop.INTERRUPTED
    np.testing.assert_array_equal(found.losses, whole.losses[:3])


def _watched(
    monkeypatch: pytest.MonkeyPatch, seconds: list[float], reached: list[int]
) -> tuple[list[float | None], list[int]]:
    """Return the shares of time of the paths of folds, and how many ``k`` each is asked for.

    They take so many seconds of a clock that stands still otherwise; those that reach fewer ``k``
    than they are asked for were ended by the time limit.
    """
    clock, solutions = _Clock(monkeypatch), RegressionObservations.solutions
    limits: list[float | None] = []
    asked: list[int] = []

    def watched(one: Any, kept: Any, ks: Any, how: Any) -> PathResult:
        limits.append(budget().limit)
        asked.append(len(ks))
        with without_deadline():
            found = solutions(one, kept, ks, how)
        clock.now += seconds[len(limits) - 1]
        most = reached[len(limits) - 1]
        if most >= len(ks):
            return found
        return found._replace(points=found.points[:most], stop=Stop.TIME_LIMIT)

    monkeypatch.setattr(RegressionObservations, "solutions", watched)
    return limits, asked


def test_folds_share_the_time_and_only_what_all_reached_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = _regression().path(range(8))
    whole = path.cross_validation(folds=3)
    chosen = path.cross_validate(folds=3)
    assert whole.k == chosen.k > 3
    assert whole.stop is chosen.stop is Stop.CONVERGED
    assert "early" not in str(chosen)
    limits, asked = _watched(monkeypatch, [4.0, 2.0, 6.0] * 2, [8, 4, 8] * 2)
    found = path.cross_validation(folds=3, time_limit=12.0)
    assert limits == pytest.approx([4.0, 4.0, 6.0])
    assert asked == [8, 8, 4]  # what cannot be chosen any more is not followed
    assert found.stop is Stop.TIME_LIMIT
    assert np.isfinite(found.losses).sum(axis=1).tolist() == [8, 4, 4]
    assert np.isnan(found.mean).tolist() == [False] * 4 + [True] * 4
    assert found.losses[:2, :4] == pytest.approx(whole.losses[:2, :4])
    assert found.k == 3
    cut = path.cross_validate(folds=3, time_limit=12.0)
    assert (cut.k, cut.stop) == (3, Stop.TIME_LIMIT)
    assert cut.scores == pytest.approx(found.mean, nan_ok=True)
    assert str(cut).endswith("stopped early: time limit")


def test_paths_with_ridges_share_the_time_of_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    path = _regression().path(range(8), ridges=[0.1, 1.0])
    limits, asked = _watched(monkeypatch, [3.0, 1.0, 3.0, 5.0], [8, 6, 3, 8])
    found = path.cross_validation(folds=2, time_limit=12.0)
    assert limits == pytest.approx([3.0, 3.0, 4.0, 5.0])
    assert asked == [8, 8, 6, 3]
    assert np.isnan(found.mean).sum(axis=0).tolist() == [5, 5]
    assert found.k <= 2


def test_of_folds_that_reach_different_k_the_gains_of_folds_are_tested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, held = _regression().path(range(8)), []
    choose = cross_validation.chosen_cell

    def watched(*losses: Any, **options: Any) -> tuple[int, int]:
        held.append(options["held"])
        return choose(*losses, **options)

    monkeypatch.setattr(cross_validation, "chosen_cell", watched)
    _watched(monkeypatch, [1.0] * 6, [5, 8, 8, 8, 8, 5])
    for _ in range(2):
        path.cross_validate(folds=3, time_limit=12.0)
    assert held[0] is not None
    assert held[1] is None


@pytest.mark.parametrize("problem", [_regression(), _graph()])
def test_folds_without_time_for_two_k_leave_no_choice(problem: sm.Problem) -> None:
    path = problem.path([2, 4, 6])
    with pytest.raises(sm.NotSolvedError, match=r"fold 1 of 3 .* Allow more time"):
        path.cross_validate(folds=3, time_limit=0.0)


def test_the_paths_of_folds_end_with_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock = _regression().path(range(8), sweeps=0), _Clock(monkeypatch)

    def tick() -> None:
        clock.now += 1.0

    monkeypatch.setattr(Descents, "__call__", _after(1, Descents.__call__, tick))
    found = path.cross_validation(folds=3, time_limit=12.0)
    assert found.stop is Stop.TIME_LIMIT
    assert 2 <= np.isfinite(found.mean).sum() < 8


def test_constants_without_time_are_wider_and_hold_all_the_same() -> None:
    problem = _regression(n=400, p=300)
    whole = problem.theory()
    hasty = problem.theory(time_limit=0.0)
    assert whole.complete
    assert not hasty.complete
    assert "time was up" in str(hasty)
    for c, wide in zip(whole.constants, hasty.constants, strict=True):
        assert wide.smoothness[0] <= c.smoothness[1] * (1.0 + 1e-9)
        assert c.smoothness[0] <= wide.smoothness[1] * (1.0 + 1e-9)
        assert wide.convexity[0] <= c.convexity[1] * (1.0 + 1e-9)
        assert c.convexity[0] <= wide.convexity[1] * (1.0 + 1e-9)


def test_graphs_are_searched_and_certified_by_work_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = _graph(p=60, n=200)
    monkeypatch.setattr("sparsemodel.numerics.budget.rate", lambda: 1e3)
    monkeypatch.setattr("sparsemodel.numerics.budget._FREE", 0.0)
    begun: list[str] = []

    def refuse(*_: Any, **__: Any) -> Any:
        begun.append("a decomposition")
        raise AssertionError

    monkeypatch.setattr("sparsemodel.numerics.precision.log_det_newton._newton_step", refuse)
    monkeypatch.setattr("sparsemodel.certificates.precision_matrices.ascent.enclose", refuse)
    monkeypatch.setattr(precision_matrices, "removal_costs", refuse)
    solution = problem.solve(time_limit=5.0)
    certificate = problem.certify(time_limit=5.0)
    assert not begun
    assert solution.stop is Stop.TIME_LIMIT
    assert certificate.bound == -np.inf  # no eigenvalues, no claim
    assert certificate.claim is Claim.NONE
    assert verify(certificate, problem.form).claim is Claim.NONE


def _no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every factorisation too long for any limit."""
    monkeypatch.setattr("sparsemodel.numerics.budget.rate", lambda: 1.0)
    monkeypatch.setattr("sparsemodel.numerics.budget._FREE", 0.0)


def test_what_cannot_be_factored_in_time_is_minimised_by_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form, support = _regression().form, np.arange(5)
    one, other = RegressionObjective(form), RegressionObjective(form)
    expected = minimise_on_support(one, support, one.origin())
    assert one.work.factorizations > 0
    _no_time(monkeypatch)
    with ending_by(time.perf_counter() + 100.0) as left:
        found = minimise_on_support(other, support, other.origin())
    assert other.work.factorizations == 0
    assert not left.cut  # another way to the same point leaves nothing out
    assert np.allclose(found.x, expected.x, rtol=1e-8, atol=1e-10)


def test_observations_are_compressed_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _regression(n=2000, p=70)
    with monkeypatch.context() as patch:
        _no_time(patch)
        assert problem.solve(time_limit=50.0).stop is Stop.CONVERGED
        assert not _compressed(problem)
        hurried = problem.value
    assert problem.solve().value == pytest.approx(hurried, rel=1e-9)
    assert _compressed(problem)


def _compressed(problem: sm.Problem) -> bool:
    reduced = problem._compiled()._reduced  # as the last solve had it
    assert reduced is not None
    return any(isinstance(reduction, Compress) for reduction in reduced.reductions)


def test_the_first_solve_of_a_proof_counts_in_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []
    run = assembly.run

    def watched(*arguments: Any) -> Any:
        seen.append(budget().deadline)
        return run(*arguments)

    monkeypatch.setattr(assembly, "run", watched)
    _regression().prove(time_limit=50.0)
    assert len(seen) == 1
    assert seen[0] is not None


def test_compiled_code_is_not_loaded_where_little_time_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    X, w = rng.standard_normal((20, 30)), sm.Variable(30)
    loss = sm.squared_loss(X @ w, X[:, 0] + rng.standard_normal(20))
    declared = (sm.minimize(loss + sm.ridge(w, 0.01)), sm.card(w) <= 3)
    codes = compiling.NODES, compiling.QUADRATIC, compiling.BOUNDS, compiling.GRAPHS
    for code in codes:
        monkeypatch.setattr(code, "loaded", False)
    monkeypatch.setattr(compiling, "LOADING", 100.0)  # seconds that loading takes
    short = [sm.Problem(*declared).prove(time_limit=limit) for limit in (50.0, None)]
    assert short[0].proof is None
    assert short[0].witness.bounds is None
    assert short[1].proof is not None
    for code in codes:
        monkeypatch.setattr(code, "loaded", False)
    assert _graph(p=6).prove(time_limit=50.0).proof is None
    monkeypatch.setattr(compiling.GRAPHS, "loaded", True)
    assert _graph(p=6).prove(time_limit=50.0).proof is not None


def test_what_proofs_need_is_imported_before_a_solve_uses_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(problem_module, "import_certificates", lambda: done.append("loaded"))
    monkeypatch.setattr(sm.Problem, "_solved", lambda self: done.append("solved") or 1 / 0)
    for ask in (_regression().prove, _regression().certify):
        done.clear()
        with pytest.raises(ZeroDivisionError):
            ask(time_limit=1.0)
        assert done == ["loaded", "solved"]


@pytest.mark.parametrize("direct", [True, False])
def test_minimising_between_bounds_ends_with_the_time(
    direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not direct:  # what many unknowns are left to
        monkeypatch.setattr("sparsemodel.numerics.minimisers.boxed.DIRECT_LIMIT", 5)
    rng = np.random.default_rng(0)
    w = sm.Variable(8)
    goal = sm.logistic_loss(rng.standard_normal((40, 8)) @ w, rng.integers(0, 2, 40))
    form = sm.Problem(sm.minimize(goal + sm.ridge(w, 1e-6)), w >= -0.01, w <= 0.3).form
    objective, calls = RegressionObjective(form), [0, 0]
    for limited in (False, True):

        def count(limited: bool = limited) -> None:
            calls[limited] += 1

        counted = _after(1, _OnSupport.evaluate, count)
        with monkeypatch.context() as patch, ending_by(time.perf_counter() if limited else None):
            patch.setattr(_OnSupport, "evaluate", lambda *a, f=counted: f(*a))
            point = minimise_restricted(objective, np.arange(8), objective.origin())
        assert np.all((point.x >= -0.01) & (point.x <= 0.3))
    assert calls[True] < 0.6 * calls[False]
