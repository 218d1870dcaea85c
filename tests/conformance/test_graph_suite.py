"""The laws for precision matrices find what is broken, and their answers are right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from sparsemodel.interfaces import Backend, Capabilities, Context, Limits, Objective, Result
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.testing import graphs
from sparsemodel.testing.backend_checks import contract, limits
from sparsemodel.testing.backend_checks import precision_matrices as laws
from sparsemodel.testing.backends import GRAPH_CHECKS
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import CheckFailure, Refusal
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.precision import PrecisionFBS, PrecisionGraHTP, PrecisionSwap


@dataclass(frozen=True)
class Tampered(Backend):
    """A good backend whose ``solve`` goes through ``tamper``."""

    tamper: Any
    inner: Backend = field(default_factory=PrecisionFBS)

    name: ClassVar[str] = "precision_fbs"
    reference: ClassVar[str] = "a test"
    capabilities: ClassVar[Capabilities] = Capabilities(forms=(SparsePrecision,), groups=False)

    def solve(self, objective: Objective, context: Context) -> Result:
        return self.tamper(self.inner.solve, objective, context)


def too_many_edges(solve, objective, context):
    result = solve(objective, context)
    everything = np.arange(objective.shape[0])
    return replace(result, point=context.restricted(objective, everything, result.point))


def wrong_value(solve, objective, context):
    result = solve(objective, context)
    return replace(result, point=replace(result.point, value=result.point.value - 1e-3))


def out_of_bounds(solve, objective, context):
    result = solve(objective, context)
    return replace(result, point=replace(result.point, x=2.0 * result.point.x))


def stops_early(solve, objective, context):
    return solve(objective, replace(context, limits=Limits(max_iter=1)))


def forgets_the_start(solve, objective, context):
    return solve(objective, replace(context, start=None, limits=Limits(max_iter=0)))


def ignores_limits(solve, objective, context):
    return solve(objective, replace(context, limits=Limits()))


def ignores_callbacks(solve, objective, context):
    return solve(objective, replace(context, on_iterate=None))


def writes_to_the_data(solve, objective, context):
    objective.form.covariance[0, 0] *= 1.0
    return solve(objective, context)


def prefers_low_indices(solve, objective, context):
    sparsity = objective.cardinality
    first = sparsity.coordinates(np.arange(min(sparsity.k, sparsity.units)))
    result = solve(objective, context)
    return replace(result, point=context.restricted(objective, first, objective.origin()))


def draws_globally(solve, objective, context):
    result = solve(objective, context)
    x = result.point.x * (1.0 - 1e-12 * np.random.rand())  # noqa: NPY002
    return replace(result, point=objective.point(result.point.support, x[result.point.support]))


def lets_ctrl_c_through(solve, objective, context):
    result = solve(objective, context)
    if result.stop.name == "INTERRUPTED":
        raise KeyboardInterrupt
    return result


BROKEN = [
    (too_many_edges, contract.deterministic, graphs.chain),
    (wrong_value, contract.deterministic, graphs.chain),
    (out_of_bounds, contract.deterministic, graphs.bounded),
    (draws_globally, contract.deterministic, graphs.chain),
    (stops_early, laws.graph_agrees_with_brute_force, graphs.chain),
    (stops_early, laws.graph_is_recovered, graphs.longer_chain),
    (stops_early, laws.graph_is_feasible_for_every_k, graphs.chain),
    (forgets_the_start, laws.graph_is_never_worse_than_start, graphs.chain),
    (ignores_limits, limits.honours_the_iteration_limit, graphs.chain),
    (ignores_callbacks, limits.callback_ends_the_run, graphs.chain),
    (writes_to_the_data, contract.inputs_untouched, graphs.chain),
    (prefers_low_indices, laws.relabelling_variables, graphs.chain),
    (lets_ctrl_c_through, laws.graph_interrupted_returns_the_best, graphs.longer_chain),
]


@pytest.mark.parametrize(
    ("tamper", "law", "make"), BROKEN, ids=lambda item: getattr(item, "__name__", "")
)
def test_a_law_finds_what_breaks_it(tamper, law, make) -> None:
    law(Subject(PrecisionFBS()), make())
    with pytest.raises((CheckFailure, ValueError)):
        law(Subject(Tampered(tamper)), make())


def test_units_that_matter_are_found() -> None:
    law = laws.rescaling_variables
    law(Subject(PrecisionGraHTP()), graphs.longer_chain())
    with pytest.raises(CheckFailure, match="units"):
        law(Subject(PrecisionGraHTP(scaled=False)), graphs.longer_chain())


def test_regressions_are_refused() -> None:
    with pytest.raises(Refusal):
        Subject(GraHTP()).run(graphs.chain())


def test_the_reference_satisfies_the_equations_of_the_likelihood() -> None:
    for make in (graphs.chain, graphs.weighted, graphs.longer_chain):
        instance = make()
        edges = np.triu(np.random.default_rng(0).random((instance.order,) * 2) < 0.4, 1)
        omega = graphs.fit_on(instance.covariance, edges)
        joined = edges | edges.T | np.eye(instance.order, dtype=bool)
        assert not omega[~joined].any()
        np.testing.assert_allclose(
            np.linalg.inv(omega)[joined], instance.covariance[joined], atol=1e-8
        )


def test_the_instances_are_what_they_say() -> None:
    spectrum = np.linalg.eigvalsh
    bounded = graphs.bounded()
    found = Subject(PrecisionSwap()).run(bounded).point.x
    inside = spectrum(bounded.form().matrix(found))
    assert inside[0] == pytest.approx(bounded.alpha, rel=1e-6)
    assert inside[-1] == pytest.approx(bounded.beta, rel=1e-6)
    assert spectrum(graphs.few_samples().covariance)[0] < 1e-12
    assert spectrum(graphs.duplicated().covariance)[0] < 1e-12


def test_every_law_has_a_docstring_and_runs_somewhere() -> None:
    for law, makers in GRAPH_CHECKS.items():
        assert law.__doc__
        assert makers
        assert len(set(makers)) == len(makers)
