"""Branch and bound from the language: what it claims, what it refuses, when it stops."""

from __future__ import annotations

import copy
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, Claim, verify
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.interfaces import CertificateError, DataError, UnsupportedProblemError


def data(n=60, p=20, k=3, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[:k] = [2.0, -1.5, 1.0, 0.7, -0.5][:k]
    return a, a @ w + noise * rng.standard_normal(n)


def make(a, b, k, ridge=1e-2):
    w = sm.Variable(a.shape[1], name="w")
    goal = sm.minimize(sm.squared_loss(a @ w, b) + sm.ridge(w, ridge))
    return w, sm.Problem(goal, sm.card(w) <= k)


def test_an_easy_problem_is_proved_optimal():
    a, b = data()
    w, problem = make(a, b, 3)
    proof = problem.prove(gap=1e-7)
    assert proof.claim is Claim.OPTIMAL
    assert proof.support == (0, 1, 2)
    assert np.flatnonzero(w.value).tolist() == [0, 1, 2]
    assert problem.value - proof.bound <= 1e-7 * abs(problem.value)
    assert problem.solution.bound >= proof.bound
    assert proof.proof["summary"]["open"] == 0
    assert "branch and bound" in str(proof)


def test_what_the_point_itself_proves_needs_no_compiler():
    a, b = data(n=400, p=30, noise=0.1)
    _, problem = make(a, b, 3)
    problem.solve()
    code = "sparsemodel.certificates.proving.gram.kernels.node_compiled"
    kept = sys.modules.pop(code, None)
    try:
        proof = problem.prove(gap=1e-6)
        assert code not in sys.modules
    finally:
        if kept is not None:
            sys.modules[code] = kept
    assert proof.claim is Claim.OPTIMAL
    assert proof.proof["summary"]["nodes"] == 1
    assert verify(proof, problem.form).claim is Claim.OPTIMAL
    again = problem.prove(gap=1e-6, resume=proof)
    assert again.claim is Claim.OPTIMAL


def test_a_bad_start_is_improved_and_the_solution_with_it():
    a, b = data()
    w, problem = make(a, b, 3)
    first = problem.solve("iht", max_iter=0, start=np.zeros(20))
    proof = problem.prove()
    assert problem.value < first.value
    assert problem.solution.backend.endswith("branch and bound")
    assert problem.solution.support.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(w.value, proof.x)
    assert problem.value == pytest.approx(proof.value, rel=1e-12)


def test_an_intercept_is_never_counted():
    a, b = data()
    w, c = sm.Variable(20, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(a @ w + c, b + 7.0) + sm.ridge(w, 1e-2))
    proof = sm.Problem(goal, sm.card(w) <= 3).prove(gap=1e-6)
    assert proof.claim is Claim.OPTIMAL
    assert proof.coefficients["c"] == pytest.approx(7.0, abs=0.3)


def test_the_time_limit_is_kept_and_the_gap_reached_is_reported():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((30, 60)), rng.standard_normal(30)
    _, problem = make(a, b, 8, ridge=1e-3)
    problem.prove(time_limit=0.1)  # compiles, or loads what was compiled
    began = time.perf_counter()
    proof = problem.prove(gap=1e-9, time_limit=0.2)
    assert time.perf_counter() - began < 3.0
    assert proof.proof["summary"]["open"] > 0
    assert proof.claim is not Claim.OPTIMAL
    assert np.isfinite(proof.bound)
    assert proof.bound < proof.value


def test_the_bound_grows_with_time():
    a, b = data(30, 15, 5, noise=2.0)
    _, problem = make(a, b, 5)
    root = problem.prove(gap=1e-6, time_limit=0.0)
    proof = problem.prove(gap=1e-6)
    assert root.bound <= proof.bound <= proof.value


def test_progress_is_reported_and_kept():
    a, b = data(30, 15, 5, noise=2.0)
    _, problem = make(a, b, 5)
    seen = []
    proof = prove(problem.form, np.zeros(15), progress=lambda now: seen.append(now.bound))
    assert seen
    assert seen == sorted(seen)
    assert any(moment.phase == "proof" for moment in proof.progress)


@pytest.mark.parametrize("gap", [1e-6, 1e-2])
def test_a_proof_is_verified_from_its_file(tmp_path, gap):
    a, b = data(30, 15, 5, noise=2.0)
    _, problem = make(a, b, 5)
    proof = problem.prove(gap=gap)
    path = proof.save(tmp_path / "proof.json")
    again = Certificate.load(path)
    assert again.bound == proof.bound
    assert again.proof["summary"] == proof.proof["summary"]
    assert verify(path, problem.form).claim is proof.claim


def test_a_proof_that_ran_out_of_time_is_verified_too(tmp_path):
    a, b = data(20, 40, 5, noise=2.0)
    _, problem = make(a, b, 8, ridge=1e-3)
    proof = problem.prove(gap=1e-9, time_limit=0.3)
    assert verify(proof.save(tmp_path / "proof.json"), problem.form).claim is proof.claim


def tampered(proof, change):
    """Return the certificate with its stored tree changed."""
    tree = copy.deepcopy(proof.proof["tree"])
    change(tree)
    return replace(proof, proof=proof.proof | {"tree": tree})


def test_a_tree_that_was_tampered_with_is_refused():
    a, b = data(30, 15, 5, noise=2.0)
    _, problem = make(a, b, 5)
    proof = problem.prove(gap=1e-6)
    branch = next(n for n in proof.proof["tree"]["nodes"] if "branch" in n)["branch"]

    def prune(tree):
        node = next(n for n in tree["nodes"] if "branch" in n)
        del node["branch"]

    def one_sided(tree):
        node = next(n for n in tree["nodes"] if "branch" in n)
        node["branch"] = [branch[0], branch[1], branch[1]]

    def decide(tree):
        tree["nodes"][0]["out"] = [0, 1, 2]

    def curvature(tree):
        tree["stages"][0]["delta"] = [10.0 for _ in tree["stages"][0]["delta"]]

    for change in (prune, one_sided, decide, curvature, dict.clear):
        with pytest.raises(CertificateError):
            verify(tampered(proof, change), problem.form)
    with pytest.raises(CertificateError, match="regions are not in the file"):
        verify(replace(proof, proof={"summary": {}}), problem.form)
    with pytest.raises(CertificateError, match="bound"):
        verify(replace(proof, bound=proof.bound + 1e-4 * abs(proof.bound)), problem.form)


def test_what_it_cannot_do_is_said():
    a = np.random.default_rng(0).standard_normal((20, 300))
    w = sm.Variable(300, name="w")
    problem = sm.Problem(sm.minimize(sm.huber_loss(a @ w, a[:, 0])), sm.card(w) <= 2)
    with pytest.raises(UnsupportedProblemError, match="neither ridge nor bounds") as caught:
        prove(problem.form, np.zeros(300))
    assert len(caught.value.reasons) == 1


def test_senseless_arguments_are_refused():
    a, b = data()
    _, problem = make(a, b, 3)
    with pytest.raises(sm.ModelError, match="gap"):
        problem.prove(gap=0.0)
    with pytest.raises(DataError, match="infeasible"):
        prove(problem.form, np.ones(20))


def test_a_search_that_rounding_leaves_nothing_to_bound_does_not_say_that_it_closed() -> None:
    t, rng = np.linspace(0.0, 1.0, 75), np.random.default_rng(320)
    bumps = np.exp(-0.5 * ((t[:, None] - np.linspace(0.0, 1.0, 80)) / 0.05) ** 2)
    y = bumps[:, [10, 14, 40, 44, 70]] @ [1.0, -1.0, 1.0, 1.0, 0.5]
    y += 0.02 * rng.standard_normal(75)
    w = sm.Variable(80)
    problem = sm.Problem(sm.minimize(sm.squared_loss(bumps @ w, y)), sm.card(w) <= 5)
    proof = problem.prove()
    assert proof.proof is not None
    assert (proof.relative_gap <= 1e-4) == (proof.proof["summary"]["ended"] == "closed")


def test_a_search_whose_parts_leave_a_gap_does_not_say_that_it_closed() -> None:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((12, 4))
    y = A @ rng.standard_normal(4) + 0.5 * rng.standard_normal(12)
    w = sm.Variable(4)
    goal = sm.minimize(sm.huber_loss(A @ w, y, delta=0.5))
    proof = sm.Problem(goal, sm.card(sm.diff(w)) <= 2, w >= 0).prove()
    assert proof.proof is not None
    assert (proof.relative_gap <= 1e-4) == (proof.proof["summary"]["ended"] == "closed")
