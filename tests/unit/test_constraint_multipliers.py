"""Bounds and proofs under linear constraints, against all supports and the separate checker."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import sparsemodel as sm
from sparsemodel.certificates import certify, verify
from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.arithmetic.multipliers import violation
from sparsemodel.certificates.files.json_document import signed
from sparsemodel.certificates.files.packing import pack
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.numbers import NormLimit, Rows
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.constraints import Norm
from sparsemodel.interfaces import Box

N, P, K = 14, 6, 2

RULES: dict[str, Any] = {
    "simplex": lambda w, C: [w >= 0.0, w.sum() == 1.0],
    "budget": lambda w, C: [w.sum() == 1.0],
    "capped": lambda w, C: [w.sum() == 1.0, w >= 0.0, w <= 0.6],
    "one way": lambda w, C: [C @ w <= np.array([-0.2, 0.3]), w >= -2.0, w <= 2.0],
    "interval": lambda w, C: [C[0] @ w >= 0.1, C[0] @ w <= 0.4, w.sum() == 0.5],
}


def posed(kind: str, loss: str, seed: int, scale: float = 1.0) -> tuple[sm.Problem, Any, Any]:
    """Return a problem (solved), its data, and the objective as a function of its own."""
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((N, P)), rng.standard_normal((2, P))
    A[:, 1] += A[:, 0]
    w = sm.Variable(P, name="w")
    if loss == "squared":
        b = scale * (A @ rng.dirichlet(np.ones(P)) + 0.1 * rng.standard_normal(N))
        goal = sm.squared_loss((scale * A) @ w, b)

        def value(x: Any) -> float:
            return 0.5 * float(np.mean(np.square(scale * A @ x - b)))
    else:
        b = np.sign(rng.standard_normal(N))
        goal = sm.logistic_loss((scale * A) @ w, b) + sm.ridge(w, 0.1)

        def value(x: Any) -> float:
            return float(np.mean(np.logaddexp(0.0, -b * (scale * A @ x))) + 0.05 * x @ x)

    problem = sm.Problem(sm.minimize(goal), [sm.card(w) <= K, *RULES[kind](w, C)])
    problem.solve()
    return problem, {"A": scale * A, "b": b, "x": w.value}, value


def least(problem: sm.Problem, value: Any) -> float:
    """Return the least objective over all supports, by SciPy."""
    form, best, size = problem.form, np.inf, value(np.zeros(P))
    parts = () if form.region is None else form.region.linear
    box = form.box
    for support in map(list, itertools.combinations(range(P), K)):

        def spread(u: Any, support: list[int] = support) -> Any:
            x = np.zeros(P)
            x[support] = u
            return x

        rows: list[Any] = []
        for part in parts:
            matrix = part.design.to_array()
            for row, low, high in zip(matrix, part.lower, part.upper, strict=True):
                c = row[support]
                if low == high:
                    rows.append({"type": "eq", "fun": lambda u, c=c, low=low: c @ u - low})
                    continue
                for side, end in ((1.0, high), (-1.0, low)):
                    if np.isfinite(end):
                        rows.append(
                            {"type": "ineq", "fun": lambda u, c=c, s=side, e=end: s * (e - c @ u)}
                        )
        found = scipy_minimize(
            lambda u: value(spread(u)) / size,
            np.full(K, 1.0 / K),
            bounds=None if box is None else np.column_stack([box.lower, box.upper])[support],
            constraints=rows,
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 300},
        )
        if found.success:
            best = min(best, size * float(found.fun))
    return best


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize(("loss", "scale"), [("squared", 1e-3), ("logistic", 3.0)])
def test_proofs_end_at_the_best_of_all_supports(kind, loss, scale, tmp_path):
    """Every part has its own multipliers, and supports without a feasible point are refuted."""
    problem, data, value = posed(kind, loss, 4, scale)
    proof = problem.prove(gap=1e-6, time_limit=5)
    best = least(problem, value)
    assert proof.bound <= best * (1 + 1e-7)
    assert proof.value == pytest.approx(best, rel=1e-6)
    assert proof.relative_gap <= 1e-6
    assert proof.witness.multipliers is not None
    verify(proof, problem.form)
    np.savez(tmp_path / "data.npz", A=data["A"], b=data["b"])
    proof.save(tmp_path / "proof.json")
    verify(tmp_path / "proof.json", problem.form)
    assert main([str(tmp_path / "proof.json"), str(tmp_path / "data.npz")]) == 0


@pytest.mark.parametrize("kind", ["budget", "capped"])
def test_certificates_are_below_the_best_and_checked_exactly(kind, tmp_path):
    problem, data, value = posed(kind, "squared", 7)
    form, x = problem.form, data["x"]
    certificate = certify(form, x, names=problem.layout.names())
    assert certificate.bound <= least(problem, value) * (1 + 1e-9)
    plain = certify(replace(form, region=None), x)
    assert certificate.bound > plain.bound
    np.savez(tmp_path / "data.npz", A=data["A"], b=data["b"])
    certificate.save(tmp_path / "c.json")
    assert main([str(tmp_path / "c.json"), str(tmp_path / "data.npz"), "--exact"]) == 0


@pytest.mark.parametrize("forge", ["sign", "stiff", "short"])
def test_forged_multipliers_are_refused(forge, tmp_path):
    """A slope of the wrong sign, or the square of an inequality, would lift the objective."""
    problem, data, _ = posed("one way", "squared", 4)
    certificate = certify(problem.form, data["x"], relax=False)
    held = certificate.witness.multipliers
    assert held is not None
    slopes, stiffness = held.slopes.copy(), held.stiffness.copy()
    if forge == "sign":
        slopes[0] = -1.0  # there is no lower bound to push away from
    elif forge == "stiff":
        stiffness[0] = 1.0
    else:
        slopes = slopes[:1]
    wrong = replace(held, slopes=slopes, stiffness=stiffness)
    changed = replace(certificate, witness=replace(certificate.witness, multipliers=wrong))
    with pytest.raises(sm.CertificateError, match="multipliers"):
        verify(changed, problem.form)
    changed.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=data["A"], b=data["b"])
    assert main([str(tmp_path / "c.json"), str(tmp_path / "data.npz")]) == 1


def portfolio(p: int, seed: int) -> tuple[Any, Any, list[Any]]:
    """Return shares, their risk, and a budget, sector, least return and bounds."""
    rng = np.random.default_rng(seed)
    R = rng.normal(size=(60, p)) * rng.uniform(0.05, 0.3, p) + 0.1 * rng.normal(size=(60, 1))
    mu, sector = rng.uniform(0.0, 0.3, p), (np.arange(p) % 3 == 0) * 1.0
    w = sm.Variable(p, name="w")
    rules = [w.sum() == 1.0, w >= 0.0, w <= 0.4, sector @ w <= 0.2]
    return w, sm.squared_loss(R @ w, np.zeros(60)), [*rules, mu @ w >= float(np.quantile(mu, 0.7))]


def test_portfolios_with_inequalities_close():
    w, risk, rules = portfolio(30, 1)
    problem = sm.Problem(sm.minimize(risk), [sm.card(w) <= 6, *rules])
    proof = problem.prove(time_limit=20)
    assert proof.relative_gap <= 1e-4
    slopes = [tuple(r["slopes"]) for r in proof.proof["tree"]["nodes"] if "slopes" in r]
    assert len(set(slopes)) > 1  # parts have their own
    verify(proof, problem.form)


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.absolute_loss])
def test_rows_that_hold_an_intercept_close(loss, tmp_path):
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((N, P)), rng.standard_normal(N)
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    rules = [sm.card(w) <= K, w[0] + c <= -0.2, w.sum() == 0.3]
    problem = sm.Problem(sm.minimize(loss(A @ w + c, y) + sm.ridge(w, 0.1)), rules)
    proof = problem.prove(gap=1e-6, time_limit=30)
    supports = map(np.array, itertools.combinations(range(P), K))
    assert proof.bound <= min(problem.restricted(s).solve(solver="CLARABEL") for s in supports) * (
        1 + 1e-7
    )
    assert proof.relative_gap <= 1e-6
    verify(proof, problem.form)
    path = proof.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=A, b=y)
    command = [str(path), str(tmp_path / "data.npz")]
    assert main(command) == 0
    text = path.read_text()
    for forged in ([1.0, 0.0], [-1.0, 0.0], [0.0]):  # true but weak, of a wrong sign, too few
        body = json.loads(text)
        for record in body["proof"]["tree"]["nodes"]:
            if "slopes" in record:  # a point of squares has slopes beside it
                record["slopes"] = forged
            else:
                record["duals"][1] = forged
        path.write_text(json.dumps(signed(body)))
        with pytest.raises(sm.CertificateError):
            verify(path, problem.form)
        assert main(command) == 1


def test_violations_refute_a_support():
    rng = np.random.default_rng(2)
    rows = Rows(rng.standard_normal((2, 4)), np.array([3.0, -1.0]), np.array([3.0, 9.0]))
    box, on = Box(np.full(4, -0.2), np.full(4, 0.3)), np.array([1, 3])
    r = violation(rows, box, on)
    assert r @ r > 0.1
    for _ in range(20):
        x = np.zeros(4)
        x[on] = rng.uniform(-0.2, 0.3, 2)
        assert r @ (rows.matrix @ x) - r @ np.where(r > 0.0, rows.upper, rows.lower) >= r @ r - 1e-9
    assert np.abs(violation(rows, None, np.arange(4))).max() <= 1e-9


def test_supports_without_a_feasible_point_close_in_any_units(tmp_path):
    """Their slopes climbed by steps that vanish in small units, to 3 % below what is proved."""
    rng = np.random.default_rng(2)
    A = 1e-3 * rng.standard_normal((22, 4))
    b = 1e3 * A[:, 0] - 2e3 * A[:, 1] + rng.standard_normal(22)
    w, costs, prices = sm.Variable(4), np.array([3.0, 2, 3, 1]), np.array([0.04, 0.05, 0.05, 0.09])
    goal = sm.squared_loss(A @ w, b) + prices @ sm.chosen(w)
    rules = [costs @ sm.chosen(w) <= 2, sm.card(w) <= 3, w >= -3, w <= 3, w.sum() == 1]
    problem = sm.Problem(sm.minimize(goal), rules)
    best = min(0.5 * np.mean((b - A[:, j]) ** 2) + prices[j] for j in (1, 3))
    for certificate in (problem.prove(), problem.certify(), problem.prove()):
        assert certificate.relative_gap <= 1e-5
        assert certificate.value == pytest.approx(best, rel=1e-12)
        path = certificate.save(tmp_path / "c.json")
        verify(path, problem.form)
        np.savez(tmp_path / "data.npz", A=A, b=b)
        assert main([str(path), str(tmp_path / "data.npz")]) == 0


def test_slopes_push_away_from_the_end_of_their_sign():
    rows = Rows(np.ones((1, 2)), np.array([-1.0]), np.array([2.0]))
    term = DualisedRows(rows).term(np.array([1.5]))
    for y in (-3.0, 4.0, -0.5):
        term = term.loss.moved(term, np.array([y]))
        for value in (-1.0, 0.3, 2.0):
            price = float(term.target[0] * (value + term.offset[0]))
            assert price <= 0.0
            assert (price == 0.0) == (value == (2.0 if y > 0.0 else -1.0))
    with pytest.raises(ValueError, match="do not fit"):
        term.loss.moved(term, np.array([1.0, 2.0]))


def test_slopes_of_a_part_are_checked(tmp_path):
    """Any slopes of the right signs prove what they prove, which is less than what is stated."""
    problem, data, _ = posed("one way", "squared", 4)
    form, x, names = problem.form, data["x"], problem.layout.names()
    first = prove(form, x, names=names, gap=1e-6, max_nodes=1, time_limit=5)
    proof = prove(form, x, names=names, gap=1e-6, resume=first, time_limit=5)
    assert proof.relative_gap <= 1e-6 < first.relative_gap
    path = proof.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=data["A"], b=data["b"])
    command = [str(path), str(tmp_path / "data.npz")]
    verify(path, form)
    assert main([*command, "--exact"]) == 0
    text = path.read_text()
    for forged in ([-1.0, 0.0], [9.0, 9.0], [0.0], ["nan", 0.0]):
        body = json.loads(text)
        for record in body["proof"]["tree"]["nodes"]:
            record["slopes"] = forged
        path.write_text(json.dumps(signed(body)))
        with pytest.raises(sm.CertificateError):
            verify(path, form)
        assert main(command) == 1


def test_other_rows_in_the_file_are_refused(tmp_path):
    problem, data, _ = posed("simplex", "squared", 4)
    path = certify(problem.form, data["x"], relax=False).save(tmp_path / "c.json")
    body = json.loads(path.read_text())
    body["problem"]["numbers"]["rows"]["upper"]["every"] = 2.0
    path.write_text(json.dumps(signed(body)))
    with pytest.raises(sm.CertificateError, match="numbers"):
        verify(path, problem.form)


NORMS: dict[str, Any] = {
    "risk": lambda w, F: [sm.norm(F @ w - np.array([0.2, -0.1])) <= 0.5],
    "ball": lambda w, F: [sm.norm(w) <= 0.7, w.sum() == 0.3],
    "around a point": lambda w, F: [sm.norm(w - np.full(P, 0.1)) <= 0.9],
    "sizes": lambda w, F: [sm.norm(w, 1) <= 0.8, w >= 0.0],
    "sizes of an image": lambda w, F: [sm.norm(F @ w, 1) <= 0.5],
}


@pytest.mark.parametrize(
    ("kind", "loss"),
    [(kind, sm.squared_loss) for kind in NORMS] + [("risk", sm.logistic_loss)],
)
def test_limits_on_norms_have_multipliers(kind, loss, tmp_path, capsys):
    """The bound was that of the problem without the limit: 68 % below, where it binds."""
    rng = np.random.default_rng(5)
    A, F = rng.standard_normal((30, P)), rng.standard_normal((2, P))
    y = 2.0 * A[:, 0] - A[:, 1] + rng.standard_normal(30)
    y = y if loss is sm.squared_loss else np.sign(y)
    w = sm.Variable(P, name="w")
    goal = loss(A @ w, y) + sm.ridge(w, 0.05)
    problem = sm.Problem(sm.minimize(goal), [sm.card(w) <= K, *NORMS[kind](w, F)])
    certificate = problem.certify()
    supports = map(np.array, itertools.combinations(range(P), K))
    best = min(problem.restricted(s).solve(solver="CLARABEL") for s in supports)
    assert certificate.bound <= best * (1 + 1e-6)
    plain = sm.Problem(sm.minimize(goal), sm.card(w) <= K).solve()
    assert plain.value < certificate.bound  # which no certificate without the limit can say
    verify(certificate, problem.form)
    path = certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=A, b=y)
    command = [str(path), str(tmp_path / "data.npz")]
    assert main(command) == 0
    if kind not in ("risk", "sizes of an image") or loss is not sm.squared_loss:
        return
    shared = certify(problem.form, certificate.x, names=problem.layout.names())
    text = shared.save(path).read_text()
    assert main(command) == 0
    capsys.readouterr()
    for forged, words in (([-1.0], "sign"), ([0.0], "NOT"), ([0.0, 0.0], "fit")):
        body = json.loads(text)
        body["witness"]["multipliers"]["norms"] = pack(np.array(forged))
        path.write_text(json.dumps(signed(body)))
        with pytest.raises(sm.CertificateError, match="line"):
            verify(path, problem.form)
        assert main(command) == 1
        assert words in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("loss", "kinds", "seed"),
    [
        (sm.squared_loss, ("risk", "sizes of an image"), 1),
        (sm.logistic_loss, ("risk", "ball"), 2),
        (sm.absolute_loss, ("around a point", "sizes of an image"), 3),
    ],
)
def test_every_part_has_multipliers_of_norms(loss, kinds, seed, tmp_path):
    """Those of the solution's support left 30 % of small problems with a gap."""
    rng = np.random.default_rng(seed)
    A, F = rng.standard_normal((12, P)), rng.standard_normal((2, P))
    y = A[:, 0] - A[:, 1] + rng.standard_normal(12)
    y = np.sign(y) if loss is sm.logistic_loss else y
    w = sm.Variable(P, name="w")
    rules = [rule for kind in kinds for rule in NORMS[kind](w, F)]
    problem = sm.Problem(sm.minimize(loss(A @ w, y) + sm.ridge(w, 0.02)), [sm.card(w) <= K, *rules])
    problem.solve()
    proof = prove(problem.form, w.value, names=problem.layout.names(), gap=1e-6, sloped=True)
    supports = map(np.array, itertools.combinations(range(P), K))
    best = min(problem.restricted(s).solve(solver="CLARABEL") for s in supports)
    assert proof.bound <= best * (1 + 1e-7)
    assert proof.relative_gap <= 1e-6
    verify(proof, problem.form)
    path = proof.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=A, b=y)
    command = [str(path), str(tmp_path / "data.npz")]
    assert main(command) == 0
    text, place = path.read_text(), len(problem.form.terms)
    for forge in (lambda a: 0.0 * a, lambda a: 5.0 * a + 1.0, lambda a: a[:-1]):
        body = json.loads(text)
        for record in body["proof"]["tree"]["nodes"]:
            if "duals" in record:
                record["duals"][place] = forge(np.array(record["duals"][place])).tolist()
        path.write_text(json.dumps(signed(body)))
        with pytest.raises(sm.CertificateError):
            verify(path, problem.form)
        assert main(command) == 1


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_no_point_within_a_norm_is_beyond_its_end(order, scale):
    """In rational numbers, and hardly any room is given away."""
    rng = np.random.default_rng(order)
    for _ in range(20):
        y, s = rng.standard_normal(3) * rng.integers(0, 2, 3), scale * rng.standard_normal(3)
        r = scale * float(rng.uniform(0.0, 2.0))
        ours = NormLimit(None, np.eye(3), 3, s, r, order).end(y)
        ends = [ours, Norm(np.eye(3), s, r, order, None).end(y)]
        Y, S, R = [Fraction(v) for v in y], [Fraction(v) for v in s], Fraction(r)
        for end in ends:
            room = sum(a * Fraction(b) for a, b in zip(Y, end, strict=True))
            room += sum(a * b for a, b in zip(Y, S, strict=True))
            assert room >= 0
            if order == 1:
                assert room >= R * max(abs(a) for a in Y)
            else:
                assert room * room >= R * R * sum(a * a for a in Y)
            dual = float(np.linalg.norm(y, np.inf if order == 1 else 2))
            assert float(room) <= r * dual + 1e-13 * np.abs(y).sum() * (r + np.abs(s).max())
        assert y @ ends[1] <= y @ ends[0]  # what a search states the checker proves
