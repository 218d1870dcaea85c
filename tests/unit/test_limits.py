"""Time limits and Ctrl-C: what was found so far is returned, and nothing long is begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Stop
from sparsemodel.numerics import forward_backward as climbing
from sparsemodel.numerics.budget import budget, ending_by
from sparsemodel.selection import precision_path


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

    monkeypatch.setattr(climbing, "_one_more", _after(5, climbing._one_more, end))
    path = problem.path(range(11), sweeps=0, time_limit=10.0)
    assert path.stop is stop
    assert stop.value in repr(path)
    assert path.k.tolist() == [0, 1, 2, 3, 4]
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

    monkeypatch.setattr(climbing, "_one_more", _after(5, climbing._one_more, interrupt))
    with pytest.raises(KeyboardInterrupt):
        path.cross_validate(folds=3)


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

    monkeypatch.setattr("sparsemodel.numerics.precision.newton._newton_step", refuse)
    monkeypatch.setattr("sparsemodel.certificates.precision_matrices.search.enclose", refuse)
    monkeypatch.setattr(precision_path, "removal_costs", refuse)
    solution = problem.solve(time_limit=5.0)
    certificate = problem.certify(time_limit=5.0)
    assert not begun
    assert solution.stop is Stop.TIME_LIMIT
    assert certificate.bound <= certificate.value
