"""Certificates: what they claim, how they are kept, and what they refuse."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm
from sparsemodel.certificates import Certificate, Claim, certify, free_bound, verify
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.certificates.statements.fingerprint import design_fingerprint
from sparsemodel.designs import (
    DenseDesign,
    OnesDesign,
    OperatorDesign,
    SparseDesign,
    StackedDesign,
)
from sparsemodel.interfaces import (
    Ball,
    Cardinality,
    CertificateError,
    DataError,
    Loss,
    Region,
    SparseRegression,
    Term,
    TwiceDifferentiable,
)
from sparsemodel.losses import LogisticLoss, SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_on_support


def make(loss=None, *, n=60, p=7, k=2, ridge=0.1, seed=0, intercept=True):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, p))
    u = a[:, 0] - 1.5 * a[:, 1] + 0.3
    loss = SquaredLoss() if loss is None else loss
    noise = rng.standard_normal(n)
    y = u + 0.5 * noise if isinstance(loss, SquaredLoss) else np.where(u + noise > 0, 1.0, -1.0)
    design, lam, free = DenseDesign(a), np.full(p, ridge), np.empty(0, dtype=np.intp)
    if intercept:
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        lam, free = np.append(lam, 0.0), np.array([p])
    term = Term(design, loss, y, np.full(n, 1.0 / n))
    return SparseRegression((term,), lam, Cardinality(lam.size, k, free))


def optimum(form):
    objective = RegressionObjective(form)
    found = [
        minimise_on_support(
            objective, form.sparsity.coordinates(np.array(units)), objective.origin()
        )
        for units in itertools.combinations(range(form.sparsity.units), form.sparsity.k)
    ]
    return min(found, key=lambda point: point.value).x


@pytest.fixture
def form():
    return make()


@pytest.fixture
def certificate(form):
    return certify(form, optimum(form), names=[f"gene {j}" for j in range(8)])


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=lambda loss: loss.name)
def test_a_certificate_holds_what_it_says(loss):
    form = make(loss)
    x = optimum(form)
    c = certify(form, x)
    assert c.bound <= c.value <= c.upper
    assert c.gap == pytest.approx(c.value - c.bound, rel=1e-6, abs=1e-12)
    assert c.support == (0, 1)
    assert list(c.coefficients) == ["x[0]", "x[1]", "x[7]"]
    assert c.claim in (Claim.OPTIMAL, Claim.WITHIN_GAP)
    assert all(a.holds for a in c.assumptions)
    assert verify(c, form).claim is c.claim


def test_the_optimum_is_called_optimal_and_a_worse_point_is_not(form):
    x = optimum(form)
    assert certify(form, x).claim is Claim.OPTIMAL
    other = np.zeros(8)
    other[[3, 4]] = 0.1
    worse = certify(form, other)
    assert worse.claim is Claim.WITHIN_GAP
    assert worse.relative_gap > 0.5
    assert worse.bound <= certify(form, x).upper


def test_an_infeasible_point_gets_no_claim(form):
    c = certify(form, np.ones(8))
    assert c.claim is Claim.NONE
    assert "7 units are nonzero and k is 2" in c.violations[0]
    assert not c.assumptions[0].holds


def test_points_that_do_not_fit_are_refused(form):
    with pytest.raises(DataError, match="shape"):
        certify(form, np.ones(3))
    with pytest.raises(DataError, match="finite"):
        certify(form, np.full(8, np.nan))


def test_without_ridge_the_loss_alone_bounds_and_an_exact_fit_is_called_one():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((10, 30))
    x = np.zeros(30)
    x[[3, 8]] = [1.0, -2.0]
    term = Term(DenseDesign(a), SquaredLoss(), a @ x, np.full(10, 0.1))
    form = SparseRegression((term,), np.zeros(30), Cardinality(30, 2))
    c = certify(form, x)
    assert c.bound == 0.0
    assert c.gap < 1e-28
    assert c.claim is Claim.ZERO
    assert verify(c, form).claim is Claim.ZERO


def test_free_bounds_come_from_gradients_with_the_weights_inside(form):
    (term,) = form.terms
    x = optimum(form)
    gradient = term.loss.gradient(term.design.matvec(x), term.target, term.weights)
    bound = free_bound(form, [(gradient,)])
    assert bound.finite
    assert 0.0 < bound.value <= RegressionObjective(form).point_from(x).value


def test_round_trip_keeps_every_bit(certificate, tmp_path):
    path = certificate.save(tmp_path / "c.json")
    again = Certificate.load(path)
    assert again.readings is None
    assert again.bytes_read is None
    assert again.to_dict() == certificate.to_dict()
    assert np.array_equal(again.x, certificate.x)
    assert np.array_equal(again.witness.duals[0], certificate.witness.duals[0])
    assert again.bound == certificate.bound
    assert list(tmp_path.iterdir()) == [path]


def test_reports_are_written_by_ending(certificate, tmp_path):
    for ending, mark in (
        (".html", "<!DOCTYPE html>"),
        (".md", "# Certificate"),
        (".txt", "Certificate: globally optimal"),
    ):
        text = certificate.save(tmp_path / f"report{ending}").read_text()
        assert mark in text
        assert "gene 0" in text
    assert str(certificate).startswith("Certificate: globally optimal")
    with pytest.raises(CertificateError, match="ending"):
        certificate.save(tmp_path / "report.docx")


def test_html_stands_alone_and_escapes_names(form):
    c = certify(form, optimum(form), names=["<script>alert(1)</script>"] * 8)
    from sparsemodel.documents.html import as_html

    page = as_html(c.document())
    assert "<script" not in page
    assert "http" not in page


TAMPERINGS = {
    "value": lambda b: b.update(value=b["value"] * 0.9),
    "bound": lambda b: b.update(bound=b["bound"] + 1e-6),
    "claim": lambda b: b.update(claim="none"),
    "support": lambda b: b.update(support=[0, 2]),
    "upper": lambda b: b.update(upper=b["value"] - 1.0),
    "null_value": lambda b: b.update(null_value=1.0),
    "assumptions": lambda b: b.update(assumptions=b["assumptions"][:-1]),
    "problem.k": lambda b: b["problem"].update(k=3),
    r"problem.terms\[0\].design": lambda b: b["problem"]["terms"][0].update(design="sha256:0"),
    r"problem.terms\[0\].loss": lambda b: b["problem"]["terms"][0].update(loss="hinge_loss"),
}


@pytest.mark.parametrize("line", TAMPERINGS)
def test_tampering_is_found_and_named(line, certificate, form):
    body = certificate.to_dict()
    TAMPERINGS[line](body)
    if line in ("bound", "value", "upper"):  # what else a careful forger would adjust
        gap = max(0.0, math.nextafter(body["upper"] - body["bound"], math.inf))
        gap = gap if body["upper"] > body["bound"] else 0.0
        body["gap"] = gap
        body["relative_gap"] = gap / max(abs(body["upper"]), abs(body["bound"])) if gap else 0.0
    with pytest.raises(CertificateError, match="digest"):
        Certificate.from_json(json.dumps(body))
    body["digest"] = digest(body)
    forged = Certificate.from_json(json.dumps(body))
    with pytest.raises(CertificateError, match=f"line '{line}'"):
        verify(forged, form)


def test_a_forged_dual_point_proves_nothing(certificate, form):
    witness = replace(certificate.witness, duals=(certificate.witness.duals[0] * 0.5,))
    with pytest.raises(CertificateError, match="line 'bound'"):
        verify(replace(certificate, witness=witness), form)


def test_forged_curvature_proves_nothing():
    form = make(ridge=1e-4, intercept=False)
    c = certify(form, optimum(form))
    assert c.witness.extraction is not None
    verify(c, form)
    forged = replace(c, witness=replace(c.witness, extraction=c.witness.extraction * 10.0))
    with pytest.raises(CertificateError, match="line 'bound'"):
        verify(forged, form)


def test_other_data_are_refused(certificate):
    with pytest.raises(CertificateError, match=r"problem.terms\[0\].(design|target)"):
        verify(certificate, make(seed=1))
    with pytest.raises(CertificateError, match=r"problem\.ridge"):
        verify(certificate, make(ridge=0.2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "null",
        "{",
        '{"format": 3}',
        "NaN",
        '{"format": "sparsemodel-certificate", "version": 99}',
    ],
)
def test_malformed_files_are_errors_of_the_library(text, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(CertificateError):
        Certificate.load(path)


def test_pickles_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(CertificateError):
        Certificate.load(path)
    with pytest.raises(CertificateError, match="Cannot read"):
        Certificate.load(tmp_path / "absent.json")


def test_every_missing_line_is_named(certificate):
    for line in certificate.to_dict():
        if line in ("digest", "format", "version", "proof", "coefficients"):
            continue
        body = certificate.to_dict()
        del body[line]
        body["digest"] = digest(body)
        with pytest.raises(CertificateError, match=f"'{line}"):
            Certificate.from_json(json.dumps(body))


@pytest.mark.parametrize(("n", "p"), [(300, 7), (2, 400), (1, 1)])
def test_a_fingerprint_is_the_hash_that_its_description_says(n, p):
    a = np.random.default_rng(n).standard_normal((n, p)).astype(np.float32)
    a[:256][a[:256] < -0.5] = 0.0
    expected = hashlib.sha256(repr((n, p)).encode())
    for rows in (a[:256].astype("<f8"), a[256:].astype("<f8")):
        if not rows.all():
            lines, columns = np.nonzero(rows)
            expected.update(b"sparse" + np.bincount(lines, minlength=len(rows)).tobytes())
            expected.update(columns.astype("<i8").tobytes())
        elif rows.size:
            expected.update(b"dense")
        expected.update(rows[rows != 0.0].tobytes())
    for design in (DenseDesign(a), DenseDesign(np.asfortranarray(a))):
        assert design_fingerprint(design) == "sha256:" + expected.hexdigest()


def test_fingerprints_depend_on_the_numbers_alone():
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (300, 5)).astype(float)
    same = [
        DenseDesign(a),
        DenseDesign(np.asfortranarray(a)),
        DenseDesign(a.astype(np.float32)),
        DenseDesign(-0.0 + a),
        SparseDesign(sp.csr_array(a)),
        SparseDesign(sp.csc_array(a)),
    ]
    assert len({design_fingerprint(d) for d in same}) == 1
    changed = a.copy()
    changed[299, 4] += 1e-12
    assert design_fingerprint(DenseDesign(changed)) != design_fingerprint(same[0])


def test_a_matrix_free_design_is_certified_on_trust():
    form = make(intercept=False)
    (term,) = form.terms
    operator = OperatorDesign(aslinearoperator(term.design.array))
    loose = replace(form, terms=(replace(term, design=operator),))
    c = certify(loose, optimum(form))
    assert any("matrix-free" in a.text and not a.checked for a in c.assumptions)
    verify(c, loose)


class Cosh(TwiceDifferentiable, Loss):
    """A custom loss without a conjugate."""

    name = "cosh_loss"

    def value(self, u, y):
        return np.log(np.cosh(u - y))

    def derivative(self, u, y):
        return np.tanh(u - y)

    def hessian_product(self, u, y, c, v):
        return (c / np.cosh(u - y) ** 2) * v


def test_custom_losses_are_bounded_by_their_tangent():
    form = make(intercept=False)
    form = replace(form, terms=(replace(form.terms[0], loss=Cosh()),))
    x = optimum(form)
    c = certify(form, x)
    assert math.isfinite(c.bound)
    assert c.bound <= c.value
    assert any("cosh_loss" in a.text and not a.checked for a in c.assumptions)
    verify(Certificate.from_json(c.to_json()), form)


def test_constraints_beside_the_cardinality_are_checked(form):
    x = optimum(form)
    inside = replace(form, region=Region(balls=(Ball(np.arange(8), 10.0),)))
    outside = replace(form, region=Region(balls=(Ball(np.arange(8), 0.1),)))
    assert certify(inside, x).claim is Claim.OPTIMAL
    c = certify(outside, x)
    assert c.claim is Claim.NONE
    assert "norm ball" in c.violations[0]
    with pytest.raises(CertificateError, match=r"problem\.region"):
        verify(certify(inside, x), outside)


def test_a_changed_parameter_means_another_solution():
    """certify() and prove() speak of the problem as it is now."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((30, 8))
    k, w = sm.Parameter(integer=True), sm.Variable(8)
    goal = sm.minimize(sm.squared_loss(a @ w, a[:, 0] + 2.0 * a[:, 1]) + sm.ridge(w, 0.1))
    problem = sm.Problem(goal, sm.card(w) <= k)
    k.value = 1
    one = problem.certify()
    k.value = 2
    two = problem.certify()
    assert (one.problem.k, two.problem.k) == (1, 2)
    assert (len(one.support), len(two.support)) == (1, 2)
    assert two.value < one.value
    k.value = 3
    assert len(problem.prove().support) == 3
    assert len(problem.solution.support) == 3
