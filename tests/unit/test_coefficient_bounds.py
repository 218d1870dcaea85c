"""Certificates and proofs without a ridge, from the user's side."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

import sparsemodel as sm
from sparsemodel.certificates import Certificate, Claim, certify, verify
from sparsemodel.certificates.dual_bounds import bound_search
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import (
    METHOD,
    STATEMENT,
    CoefficientBounds,
)
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed, fault, from_data
from sparsemodel.certificates.proving import attempts
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.checker.__main__ import main
from sparsemodel.documents.text import as_text
from sparsemodel.interfaces import CertificateError, FloatArray, SparseRegression

pytest.importorskip("numba")

pytestmark = pytest.mark.usefixtures("at_the_root")


def data(n: int = 60, p: int = 120, seed: int = 3) -> tuple[FloatArray, FloatArray]:
    r = np.random.default_rng(seed)
    x = r.standard_normal((n, p))
    y = 2.0 * x[:, 5] - x[:, 17] + 0.7 * r.standard_normal(n)
    return x, y


def problem(
    x: FloatArray, y: FloatArray, *, k: int = 2, ridge: float = 0.0, intercept: bool = False
) -> sm.Problem:
    w = sm.Variable(x.shape[1], name="w")
    prediction = x @ w
    if intercept:
        prediction = prediction + sm.Variable(name="b")
    loss = sm.squared_loss(prediction, y)
    goal = loss + sm.ridge(w, ridge) if ridge else loss
    return sm.Problem(sm.minimize(goal), sm.card(w) <= k)


def form_of(one: sm.Problem) -> SparseRegression:
    form = one.form
    assert isinstance(form, SparseRegression)
    return form


def bounds_of(form: SparseRegression) -> CoefficientBounds | str:
    return from_data(form, primal(form, np.zeros(form.shape)), work=1e9, deadline=None)


@pytest.mark.parametrize("intercept", [False, True])
def test_more_features_than_observations_and_no_ridge_have_a_bound(
    tmp_path: Path, intercept: bool
) -> None:
    x, y = data()
    one = problem(x + 50.0 * intercept, y + 9.0 * intercept, intercept=intercept)
    one.solve()
    certificate = one.certify()
    assert 0.5 * certificate.upper < certificate.bound <= certificate.upper
    assert METHOD in certificate.bound_method
    assert METHOD in as_text(certificate.document(), 400)
    assert any(a.text == STATEMENT and a.checked for a in certificate.assumptions)
    loaded = Certificate.load(certificate.save(tmp_path / "bound.json"))
    assert ("witness.bounds", STATEMENT) in verify(loaded, form_of(one)).lines


@pytest.mark.parametrize("intercept", [False, True])
def test_a_proof_without_a_ridge_closes_and_is_verified_from_its_file(
    tmp_path: Path, intercept: bool
) -> None:
    x, y = data()
    one = problem(x, y + 0.6 * x[:, 40] - 0.5 * x[:, 70], k=4, intercept=intercept)
    proof = one.prove(gap=1e-6, time_limit=30.0)
    assert proof.relative_gap <= 1e-6
    assert METHOD in proof.bound_method
    loaded = Certificate.load(proof.save(tmp_path / "proof.json"))
    verify(loaded, form_of(one))
    verify(loaded, form_of(one), cross_check=True)


def test_a_proof_with_bounds_goes_on_where_it_was_stopped() -> None:
    x, y = data(200, 150)
    one = problem(x, y + 0.5 * x[:, 30] - 0.4 * x[:, 40] + x[:, 50:60].sum(axis=1) / 3.0, k=4)
    one.solve()
    form, start = form_of(one), np.zeros(150)
    bounds = bounds_of(form)
    assert isinstance(bounds, CoefficientBounds)
    first = prove(form, start, gap=1e-6, max_nodes=1, bounds=bounds)
    assert first.relative_gap > 1e-6
    last = prove(form, start, gap=1e-6, resume=first)
    assert last.relative_gap <= 1e-6
    verify(last, form)
    assert one.prove(gap=1e-6, resume=first).relative_gap <= 1e-6
    wrong = replace(bounds, radius=0.1 * bounds.radius)
    with pytest.raises(CertificateError, match=r"witness\.bounds"):
        prove(form, start, resume=replace(first, witness=replace(first.witness, bounds=wrong)))


def test_a_weak_ridge_is_helped_by_the_data() -> None:
    x, y = data()
    one = problem(x, y, ridge=1e-4)
    one.solve()
    certificate = one.certify()
    assert METHOD in certificate.bound_method
    assert certificate.relative_gap < 0.5
    verify(certificate, form_of(one))


def test_a_strong_ridge_needs_no_help() -> None:
    x, y = data()
    one = problem(x, y, ridge=10.0)
    one.solve()
    assert METHOD not in one.certify().bound_method


def test_what_a_few_nodes_close_with_the_ridge_alone_computes_no_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = data()
    one = problem(x, y + 0.6 * x[:, 40], k=3, ridge=0.5)
    one.solve()

    def never(*_: object, **__: object) -> str:
        raise AssertionError("bounds were computed")

    monkeypatch.setattr(attempts, "from_data", never)
    proof = one.prove(gap=1e-6)
    assert proof.relative_gap <= 1e-6
    assert proof.proof is not None
    assert proof.proof["summary"]["nodes"] > 1
    with pytest.raises(AssertionError, match="bounds were computed"):
        problem(x, y, k=4, ridge=1e-3).prove(gap=1e-6)


def test_a_proof_in_a_box_forms_the_gram_matrix_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data()
    one, formed, of = problem(x, y, k=4), [], Quadratic.of.__func__  # type: ignore[attr-defined]
    one.solve()

    def counted(kind: type[Quadratic], form: SparseRegression) -> Quadratic:
        formed.append(form)
        quadratic: Quadratic = of(kind, form)
        return quadratic

    monkeypatch.setattr(Quadratic, "of", classmethod(counted))
    assert METHOD in one.prove(gap=1e-6).bound_method
    assert len(formed) == 1


def test_nearly_equal_columns_have_no_bounds_and_the_certificate_says_what_it_did() -> None:
    x, y = data()
    x[:, 6] = 1.1 * x[:, 5]
    one = problem(x, y)
    one.solve()
    assert isinstance(bounds_of(form_of(one)), str)
    certificate = one.certify()
    assert certificate.bound <= 0.0
    assert certificate.witness.bounds is None
    verify(certificate, form_of(one))


def test_columns_that_say_nothing_do_not_spoil_the_bounds() -> None:
    x, y = data()
    x[:, 8], x[:, 9] = 0.0, 7.3
    one = problem(x, y, intercept=True)
    one.solve()
    bounds = bounds_of(form_of(one))
    assert isinstance(bounds, CoefficientBounds)
    assert fault(form_of(one), bounds, primal(form_of(one), np.zeros(form_of(one).shape))) == ""
    assert one.certify().bound > 0.0


def test_the_clock_is_looked_at_while_rows_are_divided() -> None:
    rng = np.random.default_rng(4)
    factors = rng.standard_normal((150, 8)) @ rng.standard_normal((8, 400))
    x = factors + 0.5 * rng.standard_normal((150, 400))
    one = problem(x, x[:, :17].sum(axis=1) + rng.standard_normal(150), k=17, intercept=True)
    form, zero = form_of(one), np.zeros(form_of(one).shape)
    from_data(form, primal(form, zero), work=1e6, deadline=time.perf_counter() + 30.0)  # compiled
    began = time.perf_counter()
    found = from_data(form, primal(form, zero), work=1e12, deadline=began + 0.1)
    assert isinstance(found, str)
    assert time.perf_counter() - began < 0.5


def test_rows_of_matrices_have_no_bounds_from_the_data() -> None:
    x, y = data(60, 30)
    w = sm.Variable((30, 2), name="w")
    loss = sm.squared_loss(x @ w, np.column_stack([y, y]))
    one = sm.Problem(sm.minimize(loss), sm.card(w, axis=1) <= 2)
    assert "rows of a matrix" in str(bounds_of(form_of(one)))


def test_the_boxed_problem_keeps_declared_signs() -> None:
    x, y = data()
    w = sm.Variable(120, name="w", nonneg=True)
    one = sm.Problem(sm.minimize(sm.squared_loss(x @ w, y)), sm.card(w) <= 2)
    bounds = bounds_of(form_of(one))
    assert isinstance(bounds, CoefficientBounds)
    box = boxed(form_of(one), bounds).box
    assert box is not None
    assert np.all(box.lower == 0.0)
    assert np.array_equal(box.upper, bounds.radius)


def test_what_a_file_may_claim_is_limited() -> None:
    x, y = data()
    form = form_of(problem(x, y, ridge=1e-3, intercept=True))
    bounds = bounds_of(form)
    assert isinstance(bounds, CoefficientBounds)
    at_zero = primal(form, np.zeros(form.shape))
    radius = bounds.radius.copy()
    radius[form.sparsity.free] = 1e6
    assert "always in" in fault(form, replace(bounds, radius=radius), at_zero)
    radius[form.sparsity.free] = np.inf
    radius[3] = math.nan
    assert fault(form, replace(bounds, radius=radius), at_zero)
    assert "objective" in fault(form, replace(bounds, level=0.5 * at_zero.upper), at_zero)
    size = form.sparsity.size
    many = replace(
        bounds,
        starts=np.append(np.zeros(1), np.full(size, size - 2)).astype(np.int64),
        neighbours=np.arange(1, size - 1),
    )
    wide = replace(form, sparsity=replace(form.sparsity, k=6))
    began = time.perf_counter()
    assert "do not bound" in fault(wide, many, at_zero)
    assert time.perf_counter() - began < 5.0
    twice = replace(many, neighbours=np.full(size - 2, 4))
    assert "fit" in fault(form, twice, at_zero)


def test_a_deadline_that_has_passed_leaves_no_bounds() -> None:
    x, y = data()
    form = form_of(problem(x, y))
    found = from_data(
        form, primal(form, np.zeros(120)), work=1e9, deadline=time.perf_counter() - 1.0
    )
    assert "time" in str(found)
    assert certify(form, np.zeros(120), time_limit=0.0).upper > 0.0


@pytest.mark.parametrize("column", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (5, 4)])
def test_coordinates_that_nothing_depends_on_cost_no_bound(shape, column):
    w, c = sm.Variable(shape[1]), sm.Variable()
    y = np.arange(shape[0]) * 1.0
    goal = sm.minimize(sm.squared_loss(np.full(shape, column) @ w + c, y))
    problem = sm.Problem(goal, [sm.card(w) <= 1, w <= 0.75, w >= -0.5])
    problem.solve()
    for found in (problem.certify(), problem.prove()):
        assert found.claim in (Claim.OPTIMAL, Claim.ZERO)
        verify(found, problem.form)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equal_and_negative_columns_with_nonnegative_coefficients_have_bounds(
    tmp_path: Path, sign: float
) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((12, 6))
    y = x @ np.r_[1.0, 0.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * rng.standard_normal(12)
    x[:, 1] = sign * x[:, 0]
    w = sm.Variable(6, name="w", nonneg=True)
    one = sm.Problem(sm.minimize(sm.squared_loss(x @ w, y)), sm.card(w) <= 2)
    proof = one.prove()
    assert METHOD in proof.bound_method
    assert proof.relative_gap <= 1e-4
    pairs = [sorted(pair) for pair in combinations(range(6), 2)]
    best = min(0.5 * nnls(x[:, on], y)[1] ** 2 / 12 for on in pairs)
    assert proof.bound <= best * (1.0 + 1e-12)
    assert proof.value == pytest.approx(best, rel=1e-9)
    path = proof.save(tmp_path / "proof.json")
    np.savez(tmp_path / "data.npz", x=x, y=y)
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


def test_four_of_more_columns_than_observations_are_proved_support_by_support() -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal((7, 9))
    x[:, 1:] += 0.9 * x[:, :-1]  # too close together for bounds on the coefficients
    y = x @ np.r_[np.ones(3), np.zeros(6)] + 0.5 * rng.standard_normal(7)
    proof = problem(x, y, k=4).prove()
    left = [np.linalg.lstsq(x[:, list(on)], y)[1][0] for on in combinations(range(9), 4)]
    assert proof.relative_gap <= 1e-4
    assert proof.bound <= 0.5 * min(left) / 7 * (1.0 + 1e-12)


def _correlated(
    radius: float | None, n: int = 60, p: int = 40, k: int = 3
) -> tuple[sm.Problem, FloatArray, FloatArray]:
    r = np.random.default_rng(8)
    x = r.standard_normal((n, p))
    for j in range(1, p):
        x[:, j] = 0.6 * x[:, j - 1] + 0.8 * x[:, j]
    y = x[:, :k].sum(axis=1) + 2.0 * r.standard_normal(n)
    w = sm.Variable(p, name="w")
    bounds = [] if radius is None else [w >= -radius, w <= radius]
    return sm.Problem(sm.minimize(sm.squared_loss(x @ w, y)), sm.card(w) <= k, *bounds), x, y


def test_declared_bounds_that_hold_nothing_cost_no_bound(tmp_path: Path) -> None:
    plain = _correlated(None)[0]
    plain.solve()
    known = bounds_of(form_of(plain))
    assert isinstance(known, CoefficientBounds)
    assert known.neighbours.size  # statement 1 alone gives none
    reach = float(np.max(known.radius))
    one, x, y = _correlated(1.2 * reach)
    one.solve()
    form, certificate = form_of(one), one.certify()
    assert certificate.bound == pytest.approx(plain.certify().bound, rel=1e-6)
    held = certificate.witness.bounds
    assert held is not None
    assert held.neighbours.size
    loaded = Certificate.load(certificate.save(tmp_path / "wide.json"))
    verify(loaded, form)
    np.savez(tmp_path / "wide.npz", x=x, y=y)
    files = [str(tmp_path / "wide.json"), str(tmp_path / "wide.npz")]
    assert main(files) == 0
    # With bounds that may hold a minimiser the same claim is refused.
    narrow = form_of(_correlated(0.99 * reach)[0])
    assert "may hold them" in fault(narrow, held, primal(narrow, np.zeros(narrow.shape)))
    small = bounds_of(narrow)
    assert not (isinstance(small, CoefficientBounds) and small.neighbours.size)


def test_a_box_from_the_data_takes_the_place_of_the_search_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []
    relax = bound_search.relax_extracted

    def counted(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        return relax(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bound_search, "relax_extracted", counted)
    one = _correlated(30.0)[0]
    one.solve()
    calls.clear()
    assert METHOD in one.certify().bound_method
    assert len(calls) == 1


def test_bounds_that_take_too_much_work_leave_time_for_a_bound() -> None:
    x, y = data(30, 400)
    form = form_of(problem(x, y, k=4, ridge=0.03))
    at_zero = primal(form, np.zeros(400))
    assert "work" in str(from_data(form, at_zero, work=1e5, deadline=None))
    assert isinstance(bounds_of(form_of(problem(x, y, k=2))), CoefficientBounds)


def test_a_search_that_can_gain_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found, relax = [], bound_search.solve_relaxation

    def watched(*arguments: object, **named: object) -> object:
        found.append(relax(*arguments, **named))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(bound_search, "solve_relaxation", watched)
    x, y = data(100, 300)
    w = sm.Variable(300, name="w")
    loss = sm.logistic_loss(x @ w, np.where(np.sin(50.0 * y) > 0.0, 1.0, -1.0))
    one = sm.Problem(sm.minimize(loss), sm.card(w) <= 5, w >= -80.0, w <= 80.0)
    one.solve()
    found.clear()
    assert one.certify().bound <= 1e-4
    assert found[0].iterations < 1000


@pytest.mark.parametrize(("n", "seed"), [(5, 1), (6, 3), (8, 2), (12, 1)])
def test_equal_columns_leave_few_supports_to_dual_points(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 7))
    x[:, 4], y = x[:, 1], rng.standard_normal(n)
    least = min(
        0.5 * float(np.mean((y - z @ np.linalg.lstsq(z, y, rcond=None)[0]) ** 2))
        for z in (x[:, list(chosen)] for chosen in combinations(range(7), 3))
    )
    proof = problem(x, y, k=3).prove()
    assert proof.relative_gap <= 1e-4
    assert least * (1.0 - 1e-4) <= proof.bound <= least * (1.0 + 1e-12)
