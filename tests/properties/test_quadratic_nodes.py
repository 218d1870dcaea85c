"""Proofs of quadratics with linear constraints: right against all supports, and checked twice."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, verify
from sparsemodel.certificates.files.json_document import signed
from sparsemodel.certificates.proving.compiling import BOUNDS, GRAPHS, NODES, QUADRATIC
from sparsemodel.certificates.proving.quadratic.relaxation import Relaxation
from sparsemodel.certificates.proving.records import writing
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import CertificateError
from tests.properties.rows import some_quadratic


def _returns(rng, days, assets):
    factors = rng.standard_normal((days, 3)) @ rng.standard_normal((3, assets))
    return factors + rng.standard_normal((days, assets))


def _held(kind, rng, w):
    """Constraints of a kind on 7 weights that add up to one."""
    if kind == "long only":
        return [w >= 0.0]
    if kind == "least sizes":
        low, high = rng.uniform(0.12, 0.3, 7), rng.uniform(0.4, 0.7, 7)
        means = rng.uniform(0.0, 1.0, 7)
        return [sm.semicontinuous(w, low, high), means @ w >= float(np.quantile(means, 0.6))]
    if kind == "long and short":
        return [w >= -0.5, w <= 0.8]
    if kind == "never positive":
        return [w[:3] <= 0.0, w[:3] >= -0.7, w[3:] >= 0.0, w[3:] <= 2.0]
    if kind == "sectors":
        return [w >= 0.0, w[:3].sum() <= 0.6, w[:3].sum() >= 0.2]
    raise ValueError(kind)


_KINDS = ("long only", "least sizes", "long and short", "never positive", "sectors")


def _least(problem, k, fewer):
    """The best of all supports, each solved by a conic solver."""
    best = np.inf
    for size in range(1 if fewer else k, k + 1):
        for support in itertools.combinations(range(7), size):
            try:
                found = problem.restricted(np.array(support)).solve(solver="CLARABEL")
            except Exception:  # noqa: BLE001 (nothing is feasible there)
                continue
            best = min(best, np.inf if found is None else found)
    return best


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_are_right_and_close_the_gap(kind, seed, tmp_path):
    rng = np.random.default_rng(seed)
    days = (4, 20)[seed]  # fewer than there are assets, and more
    R, w = _returns(rng, days, 7), sm.Variable(7, name="w")
    loss = sm.squared_loss(R @ w, np.zeros(days)) + sm.ridge(w, 0.05)
    problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= 3, w.sum() == 1.0, *_held(kind, rng, w)])
    proof = problem.prove(gap=1e-4)
    stages = proof.proof["tree"]["stages"]
    assert stages
    assert all("stiffness" in stage for stage in stages)
    best = _least(problem, 3, fewer=kind == "least sizes")
    assert proof.bound <= best * (1.0 + 1e-6)
    assert proof.value == pytest.approx(best, rel=2e-4)
    assert proof.relative_gap <= 1e-4
    verify(Certificate.from_json(proof.to_json()), problem.form)
    np.savez(tmp_path / "data.npz", R=R, y=np.zeros(days))
    path = proof.save(tmp_path / "c.json")
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


def _forgeries():
    def more_curvature(tree):
        tree["stages"][0]["delta"] = [2.0 * d + 1.0 for d in tree["stages"][0]["delta"]]

    def more_of_a_pair(tree):
        tree["stages"][0]["pairs"] = [[0], [1], [1e3]]

    def a_negative_pair(tree):
        tree["stages"][0]["pairs"] = [[0], [1], [-1e-3]]

    def less_stiffness(tree):
        tree["stages"][0]["stiffness"] = [-1.0 for _ in tree["stages"][0]["stiffness"]]

    def other_slopes(tree):
        for node in tree["nodes"]:
            if "slopes" in node:
                node["slopes"] = [0.25 * y for y in node["slopes"]]

    def another_row(tree):
        for node in tree["nodes"]:
            if "slopes" in node:
                node["slopes"] = [*node["slopes"], 1.0]

    def a_leaf_less(tree):
        branched = next(node for node in tree["nodes"] if "branch" in node)
        branched["branch"] = [branched["branch"][0], -1, -1]

    def more_fixed(tree):
        last = tree["nodes"][0]
        last["out"] = list(range(6))

    def other_points(tree):
        for node in tree["nodes"]:
            if "x" in node:
                node["x"] = [3.0 * x for x in node["x"]]

    return [
        more_curvature, more_of_a_pair, a_negative_pair, less_stiffness, other_slopes,
        another_row, a_leaf_less, more_fixed, other_points,
    ]  # fmt: skip


@pytest.mark.parametrize("forge", _forgeries(), ids=lambda forge: forge.__name__)
def test_forged_records_are_refused(forge, tmp_path):
    rng = np.random.default_rng(3)
    R, w = _returns(rng, 20, 9), sm.Variable(9, name="w")
    loss = sm.squared_loss(R @ w, np.zeros(20))
    problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= 3, w.sum() == 1.0, w >= 0.0])
    proof = problem.prove(gap=1e-4)
    path = proof.save(tmp_path / "c.json")
    body = json.loads(path.read_text())
    forge(body["proof"]["tree"])
    path.write_text(json.dumps(signed(body)))
    forged = replace(proof, proof={**proof.proof, "tree": body["proof"]["tree"]})
    with pytest.raises(CertificateError):
        verify(forged, problem.form)
    np.savez(tmp_path / "data.npz", R=R, y=np.zeros(20))
    assert main([str(path), str(tmp_path / "data.npz")]) == 1


def test_least_sizes_imply_how_many_units_there_is_room_for():
    rng = np.random.default_rng(4)
    R, w = _returns(rng, 30, 8), sm.Variable(8, name="w")
    loss = sm.squared_loss(R @ w, np.zeros(30))
    rules = [w.sum() == 1.0, sm.semicontinuous(w, 0.3, 0.8)]
    problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= 8, *rules])
    proof = problem.prove(gap=1e-5)
    assert proof.relative_gap <= 1e-5
    assert len(proof.support) <= 3
    verify(proof, problem.form)


def test_the_nearest_share_and_weight_are_those_of_a_grid():
    nearest = pytest.importorskip("sparsemodel.certificates.proving.quadratic.nearest").nearest
    rng = np.random.default_rng(5)
    for _ in range(60):
        x, w = rng.normal() * rng.choice([0.01, 1.0]), abs(rng.normal()) * rng.choice([0.1, 1.0])
        price, near = rng.choice([1e-4, 0.01, 1.0]), rng.choice([0.0, 0.2])
        far = rng.choice([0.5, np.inf])
        p, z = nearest(x, w, price, near, far)

        def value(p, z, x=x, w=w, price=price):
            square = np.where(z > 0.0, p * p / np.where(z > 0.0, z, 1.0), 0.0)
            return (p - w) ** 2 + 0.5 * np.maximum(square - x, 0.0) ** 2 + price * z

        grid = np.linspace(0.0, min(far, 1.5 * w + 1.0), 900), np.linspace(1e-3, 1.0, 500)
        ps, zs = np.meshgrid(*grid)
        fits = (ps <= far * zs + 1e-12) & (ps >= near * zs - 1e-12)
        assert value(p, z) <= min(value(ps, zs)[fits].min(), value(0.0, 0.0)) + 1e-9


@pytest.mark.parametrize("seed", [0, 9, 20, 24, 67])
def test_random_rows_are_proved(seed):
    """Also turnover split into buys and sells: equations of zeros, and weights not counted."""
    quadratic = some_quadratic(seed)
    w = sm.Variable(quadratic.F.shape[1], name="w")
    problem = quadratic.problem(w)
    proof = problem.prove(gap=1e-4, time_limit=None)
    best = quadratic.best()
    assert proof.bound <= best + 1e-7 * abs(best)
    assert quadratic.value(w.value) <= best + 1.1e-4 * abs(best)
    assert quadratic.violation(w.value) <= 1e-9
    verify(Certificate.from_json(proof.to_json()), problem.form)


@pytest.mark.parametrize("seed", [51, 91, 96, 110, 124, 150])
def test_the_checker_reads_the_gradient_as_it_is_written(seed, tmp_path):
    """Costs that are linear count in the gradient at zero, which the residual is relative to."""
    quadratic = some_quadratic(seed)
    w = sm.Variable(quadratic.F.shape[1], name="w")
    problem = quadratic.problem(w)
    problem.solve()
    certificate = problem.certify(time_limit=5.0)
    path, data = certificate.save(tmp_path / "c.json"), tmp_path / "data.npz"
    ones = np.ones(1)
    np.savez(data, F=quadratic.F, t=quadratic.t, c=quadratic.c[None], y=ones, zero=0.0 * ones)
    assert main([str(path), str(data)]) == 0
    body = json.loads(path.read_text())
    slopes = quadratic.F.T @ (quadratic.F @ w.value - quadratic.t)
    slopes += quadratic.c + quadratic.ridge * w.value
    off = np.flatnonzero(w.value == 0.0)
    assert body["stationarity"]["largest"] == pytest.approx(np.abs(slopes[off]).max(), rel=1e-9)
    body["stationarity"]["residual"] = 1e-3 + 1.05 * body["stationarity"]["residual"]
    path.write_text(json.dumps(signed(body)))
    assert main([str(path), str(data)]) == 1


def test_what_is_lost_in_rounding_is_not_taken_from_wide_slacks():
    """A slack whose range is far more than it needs would cost the square of it."""
    matrix, rows = np.diag([1.0, 1.0, 0.0]), np.array([[1.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    ends = np.zeros(3), np.array([1.0, 1.0, 3.0])
    status = np.array([0, 0, 1])
    right = np.array([1.0, 3.0])
    relaxation = Relaxation(matrix, np.zeros(3), rows, right, *ends, status, 1, 2)
    curvature = relaxation.curvature(np.array([1.01, 1.01, 0.0]), np.zeros((3, 3)))
    assert curvature.d[2] == 0.0
    stiff = matrix - np.diag(curvature.d) + (rows.T * curvature.tau) @ rows
    assert np.linalg.eigvalsh(stiff)[0] >= 0.0


def test_a_search_ends_before_its_record_is_too_large_for_a_file(monkeypatch):
    """What is stated is evaluated from the record, and floats of the search alone prove nothing."""
    monkeypatch.setattr(writing, "LIMIT", 22_000)
    rng = np.random.default_rng(6)
    R, w = _returns(rng, 40, 24), sm.Variable(24, name="w")
    rules = [sm.card(w) <= 6, w.sum() == 1.0, w >= 0.0]
    problem = sm.Problem(sm.minimize(sm.squared_loss(R @ w, np.zeros(40))), rules)
    proof = problem.prove(gap=1e-9, time_limit=None)
    assert proof.search["ended"] == "the file has no room for more nodes"
    assert proof.proof["tree"] is not None
    assert proof.bound > 0.0
    verify(Certificate.from_json(proof.to_json()), problem.form)
    monkeypatch.setattr(writing, "LIMIT", 100)  # not even for the first record
    proof = problem.prove(gap=1e-9, time_limit=None)
    assert proof.proof["tree"] is None
    assert proof.bound <= 1e-12


@pytest.mark.parametrize("code", [NODES, QUADRATIC, BOUNDS, GRAPHS], ids=lambda code: code.module)
def test_every_compiled_code_says_whether_it_was_kept(code):
    """Within a solve nothing is compiled, so that each has to find its files."""
    pytest.importorskip("numba")
    assert replace(code, loaded=False).kept() in (True, False)


def test_what_others_need_may_be_in_at_zero_below_its_least_size(tmp_path):
    """The second asset is held with the first alone, which may then be chosen and zero."""
    rng = np.random.default_rng(7)
    R, w = _returns(rng, 30, 6), sm.Variable(6, name="w")
    R[:, 0] *= 30.0  # nobody wants it
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(R @ w, np.zeros(30))),
        [sm.card(w) <= 3, w.sum() == 1.0, sm.semicontinuous(w, 0.2, 0.9)],
        sm.chosen(w)[[1, 2, 3, 4, 5]] <= sm.chosen(w)[0],
    )
    solution = problem.solve()
    proof = problem.prove(gap=1e-4)
    assert w.value[0] == 0.0
    assert proof.bound <= min(solution.value, proof.value)
    verify(Certificate.from_json(proof.to_json()), problem.form)
    np.savez(tmp_path / "data.npz", R=R, y=np.zeros(30))
    path = proof.save(tmp_path / "c.json")
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


def test_curvature_of_parts_with_nothing_to_choose_is_checked_as_its_record_will_be():
    """With three days of different weights, what is left to spare of it is rounding alone."""
    quadratic = some_quadratic(34)
    w = sm.Variable(quadratic.F.shape[1], name="w")
    weights = np.random.default_rng(1000034).choice([0.0, 0.5, 1.0, 3.0], quadratic.t.size)
    fit = sm.squared_loss(quadratic.F @ w, quadratic.t, weights=weights, reduction="sum")
    goal = fit + quadratic.c @ w + sm.ridge(w, quadratic.ridge)
    problem = sm.Problem(sm.minimize(goal), quadratic.problem(w).constraints)
    proof = problem.prove(gap=1e-4, time_limit=None)
    assert proof.relative_gap <= 1e-4
    verify(Certificate.from_json(proof.to_json()), problem.form)
