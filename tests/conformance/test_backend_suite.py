"""The backend suite finds what is broken: one backend broken on purpose for every law."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from sparsemodel.interfaces import (
    Backend,
    Box,
    Capabilities,
    Context,
    Limits,
    Objective,
    Result,
    Stop,
    TwiceDifferentiable,
)
from sparsemodel.testing.backend_checks import (
    contract,
    equivariance,
    limits,
    quality,
    robustness,
    values,
)
from sparsemodel.testing.backends import BACKEND_CHECKS, VALUE_CHECKS, run_backend_suite
from sparsemodel.testing.instances import catalogue
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import CheckFailure, Outcome, Refusal
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.iht import IHT
from sparsemodel_backends.nhtp import NHTP
from sparsemodel_backends.segments import Segments

Solve = Callable[[Objective, Context], Result]


@dataclass(frozen=True)
class Tampered(Backend):
    """A good backend whose ``solve`` goes through ``tamper``."""

    tamper: Callable[[Solve, Objective, Context], Result] = field(
        default=lambda solve, objective, context: solve(objective, context)
    )
    inner: Backend = field(default_factory=IHT)

    name: ClassVar[str] = "iht"  # as in the events of the inner one
    reference: ClassVar[str] = "a test"
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,))

    def solve(self, objective: Objective, context: Context) -> Result:
        return self.tamper(self.inner.solve, objective, context)


def _point(result: Result, **changes: Any) -> Result:
    return replace(result, point=dataclasses.replace(result.point, **changes))


def infeasible(solve, objective, context):
    result = solve(objective, context)
    everything = np.arange(objective.shape[0])
    return replace(result, point=context.restricted(objective, everything, result.point))


def wrong_value(solve, objective, context):
    result = solve(objective, context)
    return _point(result, value=result.point.value * 0.999)


def nan(solve, objective, context):
    result = solve(objective, context)
    return _point(result, x=np.full_like(result.point.x, np.nan))


def unsorted_support(solve, objective, context):
    result = solve(objective, context)
    return _point(result, support=result.point.support[::-1])


def outside_the_support(solve, objective, context):
    result = solve(objective, context)
    x = result.point.x.copy()
    x[np.setdiff1d(np.arange(len(x)), result.point.support)[:1]] = 1e-30
    return _point(result, x=x)


def forgets_the_start(solve, objective, context):
    return solve(objective, replace(context, start=None, limits=Limits(max_iter=1)))


def draws_globally(solve, objective, context):
    result = solve(objective, context)
    x = result.point.x * (1.0 + 1e-13 * np.random.rand())  # noqa: NPY002
    return replace(result, point=objective.point(result.point.support, x[result.point.support]))


def prints(solve, objective, context):
    sys.stdout.write("iteration 1\n")
    return solve(objective, context)


def writes_to_the_data(solve, objective, context):
    objective.form.terms[0].target[0] += 1.0
    return solve(objective, context)


def hands_back_the_start(solve, objective, context):
    result = solve(objective, context)
    return result if context.start is None else _point(result, x=context.start)


def stops_halfway(solve, objective, context):
    return solve(objective, replace(context, limits=Limits(max_iter=1)))


def ignores_limits(solve, objective, context):
    return solve(objective, replace(context, limits=Limits()))


def ignores_callbacks(solve, objective, context):
    return solve(objective, replace(context, on_iterate=None))


def swallows_errors(solve, objective, context):
    def quietly(event):
        try:
            return context.on_iterate(event)
        except Exception:  # noqa: BLE001 - what this backend is wrong about
            return False

    callback = None if context.on_iterate is None else quietly
    return solve(objective, replace(context, on_iterate=callback))


def embellishes_the_history(solve, objective, context):
    result = solve(objective, context)
    better = tuple(replace(e, value=0.5 * e.value, best=0.5 * e.best) for e in result.history)
    return replace(result, history=better)


def always_interrupted(solve, objective, context):
    result = solve(objective, context)
    return replace(result, stop=Stop.INTERRUPTED)


def prefers_low_indices(solve, objective, context):
    first = objective.cardinality.coordinates(np.arange(objective.cardinality.k))
    return replace(
        solve(objective, context), point=context.restricted(objective, first, objective.origin())
    )


def thinks_in_units(solve, objective, context):
    result = solve(objective, context)
    small = np.abs(result.point.x) < 1e-2  # an absolute threshold
    x = np.where(small, 0.0, result.point.x)
    return replace(result, point=objective.point_from(x))


def lets_ctrl_c_through(solve, objective, context):
    result = solve(objective, context)
    if result.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    return result


BROKEN = [
    (infeasible, contract.feasible_for_every_k, catalogue.squared),
    (wrong_value, contract.feasible_for_every_k, catalogue.squared),
    (nan, contract.deterministic, catalogue.squared),
    (unsorted_support, contract.deterministic, catalogue.squared),
    (outside_the_support, contract.deterministic, catalogue.squared),
    (forgets_the_start, contract.never_worse_than_start, catalogue.logistic_ridge),
    (forgets_the_start, contract.stays_at_the_minimum, catalogue.logistic_ridge),
    (draws_globally, contract.deterministic, catalogue.squared),
    (draws_globally, contract.quiet, catalogue.squared),
    (prints, contract.quiet, catalogue.squared),
    (writes_to_the_data, contract.inputs_untouched, catalogue.squared),
    (hands_back_the_start, contract.inputs_untouched, catalogue.squared),
    (stops_halfway, quality.agrees_with_brute_force, catalogue.logistic_ridge),
    (stops_halfway, quality.recovers_the_planted_support, catalogue.logistic_ridge),
    (ignores_limits, limits.honours_the_iteration_limit, catalogue.logistic_ridge),
    (ignores_limits, limits.honours_the_deadline, catalogue.logistic_ridge),
    (ignores_callbacks, limits.callback_ends_the_run, catalogue.logistic_ridge),
    (ignores_callbacks, limits.history_is_true, catalogue.logistic_ridge),
    (swallows_errors, limits.callback_errors_surface, catalogue.logistic_ridge),
    (embellishes_the_history, limits.history_is_true, catalogue.logistic_ridge),
    (prefers_low_indices, equivariance.permuting_coordinates, catalogue.squared),
    (thinks_in_units, equivariance.scaling_the_design, catalogue.squared_ridge),
    (thinks_in_units, equivariance.scaling_the_target, catalogue.squared_ridge),
    (lets_ctrl_c_through, robustness.interrupted_returns_the_best, catalogue.logistic_ridge),
    (always_interrupted, quality.agrees_with_brute_force, catalogue.squared),
]


@pytest.mark.parametrize(
    ("tamper", "law", "maker"), BROKEN, ids=lambda item: getattr(item, "__name__", "")
)
def test_a_law_finds_what_breaks_it(tamper, law, maker):
    fresh = maker()  # its arrays may be written to, as a user's may
    law(Subject(Tampered()), fresh)
    with pytest.raises((CheckFailure, ValueError)):
        law(Subject(Tampered(tamper)), maker())


def test_interruption_that_goes_through_is_a_failure_and_no_interruption():
    with pytest.raises(CheckFailure, match="Ctrl-C"):
        robustness.interrupted_returns_the_best(
            Subject(Tampered(lets_ctrl_c_through)), catalogue.logistic_ridge()
        )


# ---- values ----------------------------------------------------------------------------------


class Mutable(GraHTP.__mro__[1]):
    """Not a dataclass, and with a name that cannot be typed."""

    name: ClassVar[str] = "My Backend"
    capabilities: ClassVar[Capabilities] = Capabilities()

    init = step = iterate = stopped = lambda self, *arguments: None


@dataclass
class Thawed(Tampered.__mro__[1]):
    """A dataclass whose options can be set."""

    step_size: float = 1.0

    name: ClassVar[str] = "thawed"
    reference: ClassVar[str] = "a test"
    capabilities: ClassVar[Capabilities] = Capabilities()

    __hash__ = object.__hash__

    def solve(self, objective: Objective, context: Context) -> Result:
        raise NotImplementedError


def test_values_are_checked():
    with pytest.raises(CheckFailure, match="name is 'My Backend'"):
        values.is_described(Mutable())
    with pytest.raises(CheckFailure, match="not a dataclass"):
        values.is_a_frozen_value(Mutable())
    with pytest.raises(CheckFailure, match="hash"):
        values.is_a_frozen_value(Thawed())
    assert Tampered().objections(catalogue.squared().form()) == ()


# ---- the suite as a whole --------------------------------------------------------------------


def test_refusals_are_counted_and_are_no_successes():
    instance = catalogue.squared()
    boxed = replace(instance, box=Box(np.zeros(7), np.ones(7)))
    with pytest.raises(Refusal, match="bounds"):
        Subject(NHTP()).run(boxed)
    report = run_backend_suite(Segments())
    refused = [r for r in report.results if r.outcome is Outcome.REFUSED]
    assert report.refused == len(refused) > 0
    assert all(r.detail for r in refused)
    assert report.executed + report.refused == len(report.results)
    total = len(VALUE_CHECKS) + sum(len(makers) for makers in BACKEND_CHECKS.values())
    assert len(report.results) == total


def test_every_law_has_a_docstring_and_runs_somewhere():
    for law, makers in BACKEND_CHECKS.items():
        assert law.__doc__
        assert makers
        assert len(set(makers)) == len(makers), f"{law.__name__} runs twice on an instance"
