"""Lower bounds on sparse precision matrices against the best support, found by trying all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemodel.certificates.precision_matrices.ascent import rescaled
from sparsemodel.certificates.precision_matrices.certify_precision import (
    certify_precision,
    restricted_nats,
    witnessed_bound,
)
from sparsemodel.certificates.precision_matrices.evaluated import evaluate_point
from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    dual_value,
    enclose,
)
from sparsemodel.certificates.precision_matrices.trivial import whole_box
from sparsemodel.certificates.precision_matrices.verify_precision import verify_precision
from sparsemodel.certificates.precision_matrices.witness_of_precision import PrecisionWitness
from sparsemodel.interfaces import CertificateError, InfeasibleError
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective
from tests.properties.graphs import best_of_all, graph


@given(st.integers(0, 10_000), st.integers(3, 4), st.integers(1, 3), st.booleans())
@settings(max_examples=10)
def test_bound_is_below_the_best_support(seed: int, p: int, k: int, masked: bool) -> None:
    options: dict[str, object] = {}
    if masked:
        mask = np.zeros((p, p), dtype=bool)
        mask[0, 1] = mask[1, 0] = True
        options = {"required" if seed % 2 else "forbidden": mask}
    form = graph(seed, p, 8 * p, min(k, 2), **options)
    optimum, x = best_of_all(form)
    certificate = certify_precision(form, x, time_limit=0.2)
    assert certificate.bound <= optimum + 1e-9
    assert certificate.bound >= certificate.trivial_bound
    assert certificate.restricted_bound <= optimum + 1e-9
    assert certificate.restricted_gap <= 1e-6
    # A worse point widens the enclosure; the bound must stay below.
    worse = certify_precision(form, precision_objective(form).origin().x, time_limit=0.1)
    assert worse.bound <= optimum + 1e-9


def bound_of(
    form: SparsePrecision, U: np.ndarray, mu: float, box: Enclosure
) -> tuple[float, np.ndarray, float]:
    """Return the bound of one matrix with its slopes."""
    value, ascent, slope = dual_value([form], U[None], np.array([mu]), [box])
    return value, ascent[0], float(slope[0])


@given(st.integers(0, 10_000), st.floats(0.0, 1.0), st.floats(0.0, 20.0))
def test_any_dual_matrix_and_modulus_give_a_valid_bound(
    seed: int, size: float, convexity: float
) -> None:
    form = graph(seed, 4, 30, 2)
    optimum, x = best_of_all(form)
    rng = np.random.default_rng(seed)
    U = size * rng.standard_normal(form.shape[0])
    everything = Enclosure(0.0, np.inf, np.full(form.shape[0], np.inf))
    box = enclose(form, np.zeros_like(U), optimum + 1e-9, everything)
    assert np.all(np.abs(x) <= box.entries + 1e-12)
    sigma = np.linalg.eigvalsh(form.matrix(x))
    assert box.alpha <= sigma[0] + 1e-12
    assert sigma[-1] <= box.beta + 1e-12
    for mu in (box.modulus, convexity * box.modulus):
        assert bound_of(form, U, mu, box)[0] <= optimum + 1e-9
    off = np.where(form.rows == form.cols, 0.0, U)
    assert bound_of(form, off, 0.0, box)[0] <= optimum + 1e-9
    smaller = enclose(form, off, optimum + 1e-9, box)
    assert np.all(np.abs(x) <= smaller.entries + 1e-12)
    assert bound_of(form, U, smaller.modulus, smaller)[0] <= optimum + 1e-9


def test_plenty_of_samples_close_the_gap() -> None:
    form = graph(3, 4, 20_000, 6)  # all edges: the trivial bound is exact
    _, x = best_of_all(form)
    assert certify_precision(form, x).gap <= 1e-6
    few = graph(3, 4, 20_000, 3)
    _, x = best_of_all(few)
    certificate = certify_precision(few, x)
    assert certificate.gap < certificate.trivial_gap


def test_infeasible_points_are_refused() -> None:
    form = graph(0, 4, 40, 1, beta=100.0)
    x = form.entries(np.linalg.inv(form.covariance))
    with pytest.raises(InfeasibleError, match="edges"):
        certify_precision(form, x)
    with pytest.raises(InfeasibleError, match="definite"):
        certify_precision(form, -precision_objective(form).origin().x)
    with pytest.raises(InfeasibleError, match="eigenvalues"):
        certify_precision(form, 1e6 * precision_objective(form).origin().x)


@given(st.integers(0, 10_000), st.floats(0.0, 0.5), st.integers(0, 2))
@settings(max_examples=10)
def test_whatever_a_file_holds_as_witness_proves_no_more_than_the_truth(
    seed: int, size: float, enclosures: int
) -> None:
    form = graph(seed, 4, 30, 2)
    optimum, x = best_of_all(form)
    at = evaluate_point(form, x)
    rng = np.random.default_rng(seed)
    found = certify_precision(form, x, time_limit=0.1).witness.final
    draws = size * rng.standard_normal((enclosures + 2, x.size))
    modulus, units = float(np.exp(rng.normal(-3.0, 3.0))), rng.integers(-3, 4, form.order)
    for final in (draws[0], found):
        for mu, e in ((None, None), (modulus, None), (modulus, tuple(map(int, units)))):
            witness = PrecisionWitness(tuple(draws[2:]), final, draws[1], mu, e)
            assert witnessed_bound(form, at.upper, witness) <= optimum + 1e-9
            assert restricted_nats(form, at, witness.restricted) <= at.value + 1e-9


def test_the_slopes_of_the_bound_are_those_of_its_differences() -> None:
    form = graph(5, 6, 40, 4)
    x = precision_objective(form).origin().x
    box = enclose(form, np.zeros_like(x), evaluate_point(form, x).upper, whole_box(form))
    rng = np.random.default_rng(5)
    for _ in range(20):
        U, direction = 0.3 * rng.standard_normal((2, x.size))
        mu, step = box.modulus * rng.uniform(0.5, 20.0), 1e-6
        value, ascent, slope = bound_of(form, U, mu, box)
        ahead = bound_of(form, U + step * direction, mu, box)[0]
        assert (ahead - value) / step == pytest.approx(float(ascent @ direction), rel=1e-3)
        ahead = bound_of(form, U, mu + step * box.modulus, box)[0]
        assert (ahead - value) / (step * box.modulus) == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_more_than_the_strong_convexity_is_taken_from_the_likelihood(spread: float) -> None:
    """A quarter less is open than with the modulus of the enclosure, in whatever units."""
    rng = np.random.default_rng(11)
    chain = np.eye(12) + 0.45 * (np.eye(12, k=1) + np.eye(12, k=-1))
    X = rng.multivariate_normal(np.zeros(12), np.linalg.inv(chain), 150, method="cholesky")
    X *= 10.0 ** rng.uniform(-spread, spread, 12)
    form = SparsePrecision.build(X.T @ X / 150, 11)
    x = precision_objective(form).origin().x
    chosen = np.flatnonzero(form.cols - form.rows <= 1)
    objective = precision_objective(form)
    x = minimise_precision_on_support(objective, chosen, objective.origin()).x
    certificate = certify_precision(form, x)
    witness = certificate.witness
    assert witness.modulus is not None
    assert (witness.units is None) == (spread == 0.0)
    at = evaluate_point(form, x)
    task = rescaled(form, at.upper, witness.units)
    plain = PrecisionWitness(witness.enclosing, witness.final, None, None, witness.units)
    assert witness.modulus > 3.0 * task.enclosed().modulus
    assert witnessed_bound(form, at.upper, plain) < certificate.bound
    assert certificate.open_share < 0.08


def test_powers_of_two_as_units_change_nothing_but_the_constant() -> None:
    form = graph(7, 5, 60, 3)
    units = (3, -2, 0, 1, -4)
    x = precision_objective(form).origin().x
    upper = evaluate_point(form, x).upper
    task = rescaled(form, upper, units)
    theta = task.in_units(x, -1)
    there = evaluate_point(task.form, theta)
    assert there.value - task.shift == pytest.approx(upper, abs=1e-12)
    np.testing.assert_array_equal(
        task.in_units(form.entries(form.covariance)), task.form.entries(task.form.covariance)
    )
    assert task.in_nats(there.value) <= upper


@pytest.mark.parametrize(
    ("line", "value"),
    [("modulus", -1.0), ("modulus", np.nan), ("units", (1, 2)), ("units", (0, 0, 0, 2000))],
)
def test_a_modulus_and_units_that_cannot_be_are_refused(line: str, value: object) -> None:
    form = graph(3, 4, 40, 2)
    found = certify_precision(form, best_of_all(form)[1])
    forged = replace(found, witness=replace(found.witness, **{line: value}))
    with pytest.raises(CertificateError, match=rf"witness\.{line}"):
        verify_precision(forged, form)
