"""The conformance suite for backends: the laws that every backend must obey.

A third party tests a backend with::

    def test_my_backend():
        run_backend_suite(MyBackend()).raise_if_failed()

Each check is a plain function (:mod:`sparsemodel.testing.backend_checks`) that runs on several
small instances (:mod:`sparsemodel.testing.instances.catalogue`). A backend that objects to an
instance is not run on it; the report counts that as refused. Nothing here needs pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from sparsemodel.interfaces import Backend, RestrictedSolver
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.testing import graphs
from sparsemodel.testing.backend_checks import contract, equivariance, limits, quality, robustness
from sparsemodel.testing.backend_checks import precision_matrices as about_graphs
from sparsemodel.testing.backend_checks import values as about_values
from sparsemodel.testing.instances import catalogue
from sparsemodel.testing.instances.catalogue import BASIC, STRUCTURED, WIDE, Maker
from sparsemodel.testing.instances.degenerate import DEGENERATE
from sparsemodel.testing.instances.problems import Instance
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import NamedCheck, Report, quietly, run_checks

BackendCheck: TypeAlias = Callable[[Subject, Instance], None]
GraphCheck: TypeAlias = Callable[[Subject, graphs.GraphInstance], None]
GraphMaker: TypeAlias = Callable[[], graphs.GraphInstance]

_SMALL: tuple[Maker, ...] = (
    catalogue.squared,
    catalogue.logistic_ridge,
    catalogue.squared_intercept,
    catalogue.squared_groups,
    catalogue.multinomial_rows,
)
_SQUARED: tuple[Maker, ...] = (
    catalogue.squared,
    catalogue.squared_ridge,
    catalogue.squared_intercept,
    catalogue.squared_offset,
)

VALUE_CHECKS: tuple[Callable[[Backend], None], ...] = (
    about_values.is_described,
    about_values.is_a_frozen_value,
    about_values.can_be_pickled,
    about_values.objects_to_unknown_forms,
)
"""Checks that need no problem."""

BACKEND_CHECKS: Mapping[BackendCheck, tuple[Maker, ...]] = MappingProxyType(
    {
        robustness.objects_for_free: (*BASIC, *STRUCTURED, *DEGENERATE),
        # The degenerate instances have classes too: logistic losses need no other.
        contract.feasible_for_every_k: (_SMALL[0], *_SMALL[2:], *DEGENERATE),
        contract.deterministic: (*_SMALL, catalogue.wide_squared_ridge),
        contract.inputs_untouched: _SMALL,
        contract.quiet: BASIC,
        contract.never_worse_than_start: _SMALL,
        contract.stays_at_the_minimum: (*BASIC, *STRUCTURED),
        quality.recovers_the_planted_support: (*BASIC, *WIDE),
        quality.agrees_with_brute_force: (*BASIC, *STRUCTURED),
        equivariance.permuting_coordinates: _SMALL,
        equivariance.flipping_signs: _SMALL,
        equivariance.scaling_the_design: _SMALL,
        equivariance.scaling_the_target: _SQUARED,
        equivariance.scaling_the_objective: _SMALL,
        equivariance.splitting_observations: BASIC,
        equivariance.splitting_terms: BASIC,
        equivariance.storing_differently: (
            *_SQUARED[1:3],
            catalogue.logistic_ridge,
            catalogue.squared_groups,
        ),
        equivariance.storing_in_single_precision: BASIC,
        limits.honours_the_iteration_limit: (*_SMALL, *WIDE),
        limits.honours_the_deadline: (*BASIC, *WIDE),
        limits.callback_ends_the_run: (*_SMALL, *WIDE),
        limits.callback_errors_surface: BASIC,
        limits.history_is_true: (*_SMALL, *WIDE),
        robustness.interrupted_returns_the_best: (*BASIC, *WIDE),
        robustness.survives_nan: (*BASIC, *WIDE),
        robustness.thread_safe: (catalogue.squared_ridge, catalogue.logistic_ridge),
    }
)
"""Every check with the instances it runs on."""


_GRAPHS: tuple[GraphMaker, ...] = (graphs.chain, graphs.masked, graphs.weighted)
_HARD_GRAPHS: tuple[GraphMaker, ...] = (graphs.bounded, graphs.few_samples, graphs.duplicated)

GRAPH_CHECKS: Mapping[GraphCheck, tuple[GraphMaker, ...]] = MappingProxyType(
    {
        about_graphs.graph_is_feasible_for_every_k: (
            *_GRAPHS,
            graphs.bounded,
            graphs.two_variables,
        ),
        contract.deterministic: (*_GRAPHS, *_HARD_GRAPHS),
        contract.inputs_untouched: _GRAPHS,
        about_graphs.graph_is_never_worse_than_start: (*_GRAPHS, graphs.bounded),
        about_graphs.graph_agrees_with_brute_force: (*_GRAPHS, graphs.two_variables),
        about_graphs.graph_is_recovered: (
            graphs.chain,
            graphs.longer_chain,
            graphs.two_variables,
        ),
        about_graphs.relabelling_variables: (*_GRAPHS, graphs.longer_chain),
        about_graphs.rescaling_variables: (*_GRAPHS, graphs.longer_chain),
        about_graphs.flipping_variables: (*_GRAPHS, graphs.longer_chain),
        about_graphs.scaling_the_likelihood: _GRAPHS,
        limits.honours_the_iteration_limit: (*_GRAPHS, graphs.longer_chain),
        limits.honours_the_deadline: (*_GRAPHS, graphs.longer_chain),
        limits.callback_ends_the_run: (*_GRAPHS, graphs.longer_chain),
        limits.callback_errors_surface: (graphs.chain,),
        limits.history_is_true: (*_GRAPHS, graphs.longer_chain, *_HARD_GRAPHS),
        about_graphs.graph_interrupted_returns_the_best: (*_GRAPHS, graphs.longer_chain),
        about_graphs.graph_is_thread_safe: (graphs.chain,),
    }
)
"""The checks of backends that list precision matrices among their forms."""


def backend_checks(
    backend: Backend,
    *,
    accuracy: float = 1e-8,
    resolution: float = 1e-5,
    restricted: RestrictedSolver | None = None,
) -> Iterable[NamedCheck]:
    """Yield the checks of ``backend`` with their names, ready to run.

    Parameters are those of :func:`run_backend_suite`.
    """
    subject = Subject(backend, accuracy, resolution, restricted)
    for law in VALUE_CHECKS:
        yield law.__name__, quietly(law, backend)
    for check, makers in BACKEND_CHECKS.items():
        for maker in makers:
            instance = catalogue.instance(maker)
            yield f"{check.__name__}[{instance.name}]", quietly(check, subject, instance)
    if SparsePrecision not in backend.capabilities.forms:
        return
    for law_of_graphs, graph_makers in GRAPH_CHECKS.items():
        for make in graph_makers:
            graph = graphs.graph_instance(make)
            yield f"{law_of_graphs.__name__}[{graph.name}]", quietly(law_of_graphs, subject, graph)


def run_backend_suite(
    backend: Backend,
    *,
    accuracy: float = 1e-8,
    resolution: float = 1e-5,
    restricted: RestrictedSolver | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Run every check on ``backend`` and report all of it.

    Parameters
    ----------
    backend
        A backend with the options to test.
    accuracy
        Largest error of a converged objective, relative to its decrease from zero.
    resolution
        Largest difference between solutions that ought to be the same, relative to their
        largest entry.
    restricted
        What the backend gets to minimise on a support; None takes the library's own.
    expected_failures
        Reasons by name of a check (``"check[instance]"``, patterns allowed): what the backend
        does not promise. Strict: it is a failure when a listed check passes.

    Returns
    -------
    Report
        Nothing is raised: call :meth:`Report.raise_if_failed` for that. Any warning is a
        failure.
    """
    checks = backend_checks(
        backend, accuracy=accuracy, resolution=resolution, restricted=restricted
    )
    return run_checks(backend.name, checks, expected_failures=expected_failures)


__all__ = [
    "BACKEND_CHECKS",
    "GRAPH_CHECKS",
    "VALUE_CHECKS",
    "BackendCheck",
    "backend_checks",
    "run_backend_suite",
]
