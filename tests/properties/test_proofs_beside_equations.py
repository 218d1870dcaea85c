"""Equations and other constraints on few observations without a ridge, against all supports."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import fault, from_data
from sparsemodel.certificates.statements.certificate import Certificate
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import CertificateError, FloatArray

pytest.importorskip("numba")

Posed = tuple[sm.Problem, FloatArray, FloatArray, FloatArray, FloatArray, list[list[int]]]


def posed(seed: int, n: int, p: int, k: int, *, equations: int = 1, groups: int = 1) -> Posed:
    """Return a problem with ``C w == t`` on fewer rows than columns, its data and its units."""
    r = np.random.default_rng(seed)
    a, truth = r.standard_normal((n, p)), np.zeros(p)
    truth[r.choice(p, k * groups, replace=False)] = r.choice([-1.0, 1.0], k * groups)
    b = a @ truth + 0.4 * r.standard_normal(n)
    c = np.ones((1, p)) if equations == 1 else r.standard_normal((equations, p))
    t = c @ truth + 0.3 * r.standard_normal(equations)
    units = [list(range(u, min(u + groups, p))) for u in range(0, p, groups)]
    w = sm.Variable(p, name="w")
    labels = [u for u, unit in enumerate(units) for _ in unit]
    limit = sm.card(w, groups=labels) <= k if groups > 1 else sm.card(w) <= k
    problem = sm.Problem(sm.minimize(sm.squared_loss(a @ w, b)), [limit, c @ w == t])
    return problem, a, b, c, t, units


def optimum(problem: Posed, k: int) -> float:
    """Return the least value over all supports, each by its optimality conditions."""
    _, a, b, c, t, units = problem
    best, n = np.inf, b.size
    for chosen in itertools.combinations(units, k):
        s = [j for unit in chosen for j in unit]
        inner = np.block([[a[:, s].T @ a[:, s] / n, c[:, s].T], [c[:, s], np.zeros((t.size,) * 2)]])
        found = np.linalg.lstsq(inner, np.append(a[:, s].T @ b / n, t), rcond=None)[0][: len(s)]
        if np.allclose(c[:, s] @ found, t, atol=1e-9):
            best = min(best, 0.5 * float(np.mean((a[:, s] @ found - b) ** 2)))
    return best


def checked(certificate: Certificate, problem: Posed, folder: Path) -> None:
    """Check a certificate on the form, and its file by the separate checker."""
    verify(certificate, problem[0].form)
    certificate.save(folder / "c.json")
    np.savez(folder / "d.npz", A=problem[1], b=problem[2])
    assert main([str(folder / "c.json"), str(folder / "d.npz")]) == 0


@pytest.mark.parametrize("seed", range(8))
def test_proofs_beside_equations_are_those_of_all_supports(seed: int, tmp_path: Path) -> None:
    r = np.random.default_rng([7, seed])
    n, equations, groups = int(r.integers(6, 14)), 1 + seed % 2, 1 + (seed % 3 == 2)
    k = max(equations, int(r.integers(1, 4)) // groups)
    p = int(r.integers(n + 2, 22 if k * groups < 3 else 17))
    problem = posed(seed, n, p, k, equations=equations, groups=groups)
    best = optimum(problem, k)
    problem[0].solve()
    for certificate in (problem[0].certify(), problem[0].prove(time_limit=20)):
        assert certificate.bound <= best * (1.0 + 1e-9)
        checked(certificate, problem, tmp_path)
    assert certificate.relative_gap <= 1e-4
    assert certificate.value <= best * (1.0 + 1e-6)


def test_too_many_supports_to_be_tried_are_proved_beside_an_equation(tmp_path: Path) -> None:
    """Before there were bounds on coefficients for slopes, there was nothing to branch with."""
    problem = posed(1, 60, 100, 3)
    problem[0].solve()
    proof = problem[0].prove(time_limit=30)
    assert proof.relative_gap <= 1e-4
    assert proof.proof is not None
    assert proof.proof["summary"]["ended"] == "closed"
    checked(proof, problem, tmp_path)


def test_a_bound_beside_an_equation_uses_the_slopes_of_the_relaxation() -> None:
    r = np.random.default_rng(6)
    a, truth = r.standard_normal((400, 480)), np.zeros(480)
    truth[[5, 70]] = 1.0, -0.6
    b = a @ truth + 0.4 * r.standard_normal(400)
    w = sm.Variable(480, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(a @ w, b)), [sm.card(w) <= 2, w.sum() == 1])
    problem.solve()
    certificate = problem.certify()
    slopes = certificate.witness.multipliers
    assert slopes is not None
    assert np.any(slopes.slopes)
    assert not np.any(slopes.stiffness)
    assert certificate.relative_gap < 0.4  # 53.6 % with the slopes at zero


@functools.cache
def bounded_at_a_level() -> tuple[Posed, Certificate]:
    problem = posed(2, 20, 26, 2, groups=2)
    problem[0].solve()
    proof = problem[0].prove(time_limit=30)
    assert proof.witness.bounds is not None
    assert proof.witness.bounds.room is not None
    return problem, proof


def test_groups_beside_an_equation_are_bounded_at_a_level(tmp_path: Path) -> None:
    problem, proof = bounded_at_a_level()
    bounds = proof.witness.bounds
    assert proof.relative_gap <= 1e-4
    assert "level" in " ".join(a.text for a in proof.assumptions)
    checked(proof, problem, tmp_path)
    np.savez(tmp_path / "d.npz", A=problem[1], b=problem[2])
    narrow = replace(bounds, radius=0.9 * bounds.radius)
    small = replace(bounds, room=0.5 * bounds.room)
    for forged in (narrow, small):
        other = replace(proof, witness=replace(proof.witness, bounds=forged))
        with pytest.raises(CertificateError, match=r"witness\.bounds"):
            verify(other, problem[0].form)
        other.save(tmp_path / "c.json")
        assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 1


def test_no_bound_is_above_the_level_of_bounds_on_coefficients(tmp_path: Path) -> None:
    """What the box leaves out is not below the level, and nothing more is known of it."""
    problem, proof = bounded_at_a_level()
    bounds = proof.witness.bounds
    below = replace(bounds, level=0.5 * bounds.level)
    other = replace(proof, witness=replace(proof.witness, bounds=below))
    with pytest.raises(CertificateError, match="bound"):
        verify(other, problem[0].form)
    other.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=problem[1], b=problem[2])
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 1


@pytest.mark.parametrize("seed", range(8))
def test_no_point_at_the_level_has_larger_coefficients(seed: int) -> None:
    """The widest points at a level: along every coordinate of every support, both ways."""
    problem, a, b, *_ = posed(seed, 12, 14, 2)
    problem.solve()
    form = replace(problem.form, region=None)
    x = np.zeros(14)
    x[np.argmax(np.abs(a.T @ b))] = float(np.max(np.abs(a.T @ b)) / np.sum(a**2, axis=0).max())
    bounds = from_data(form, primal(form, x), work=1e9, deadline=None, everywhere=True)
    if isinstance(bounds, str):
        pytest.skip(bounds)
    assert not fault(form, bounds, primal(form, x))
    gram, aims, tight = a.T @ a / 12, a.T @ b / 12, 0.0
    for s in map(list, itertools.combinations(range(14), 2)):
        inverse = np.linalg.inv(gram[np.ix_(s, s)])
        middle = inverse @ aims[s]
        room = bounds.level - 0.5 * float(np.mean((a[:, s] @ middle - b) ** 2))
        if room > 0.0:
            widest = np.abs(middle) + np.sqrt(2.0 * room * np.diag(inverse))
            tight = max(tight, float(np.max(widest / bounds.radius[s])))
    assert 0.4 < tight <= 1.0


@pytest.mark.parametrize("draw", [3, 4, 24])
def test_constraints_that_hold_coordinates_at_zero_have_slopes(draw: int) -> None:
    """Of 80 such proofs 44 ended with a gap of 1 to 99 %."""
    r = np.random.default_rng(2)
    for _ in range(draw + 1):
        a, b = r.normal(size=(12, 4)), 1.5 * r.normal(size=12)
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.huber_loss(a @ w, b, delta=0.5))
    problem = sm.Problem(goal, [sm.card(sm.diff(w)) <= 2, w >= 0])
    problem.solve()
    assert problem.prove(time_limit=20).relative_gap <= 1e-4


@pytest.mark.parametrize("seed", [3, 7, 33])
def test_coordinates_that_minimisation_leaves_near_a_bound_are_pushed_against_it(seed: int) -> None:
    """Entries of 1e-63 stand for zero: of 40 such proofs 13 ended with a gap of up to 18 %."""
    r = np.random.default_rng(seed)
    a, b = r.normal(size=(20, 4)), 1e3 * r.normal(size=20)
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.squared_loss(a @ w, b) + sm.ridge(w, 0.01))
    problem = sm.Problem(goal, [sm.card(w[2:]) <= 2, w >= 0, w.sum() <= 1])
    problem.solve()
    assert problem.prove(time_limit=20).relative_gap <= 1e-4


@pytest.mark.parametrize("seed", [11, 17])
def test_supports_without_a_point_are_refuted_beside_losses_with_kinks(seed: int) -> None:
    """The multipliers that refute a support were replaced by those of the solution."""
    r = np.random.default_rng(seed)
    a, y = r.normal(size=(6, 4)), np.sign(r.normal(size=6))
    C = r.normal(size=(2, 4))
    w, c = sm.Variable(4, name="w"), sm.Variable(name="c")
    goal = sm.hinge_loss(a @ w + c, y) + sm.ridge(w, 1e-6) + 1e-3 * sm.card(w)
    problem = sm.Problem(sm.minimize(goal), [w >= 0, C @ w == C @ np.array([1.0, 0.5, 0.0, 0.0])])
    problem.solve()
    assert problem.prove(time_limit=20).relative_gap <= 1e-4
