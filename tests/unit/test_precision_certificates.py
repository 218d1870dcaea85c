"""Certificates of precision matrices as files: written, read, verified, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import PrecisionCertificate, verify
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.checker.__main__ import main as check
from sparsemodel.cli import main
from sparsemodel.interfaces import CertificateError


def observations(p: int = 6, n: int = 200, seed: int = 0) -> np.ndarray:
    truth = 2.0 * np.eye(p) + 0.8 * (np.eye(p, k=1) + np.eye(p, k=-1))
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.zeros(p), np.linalg.inv(truth), size=n, method="cholesky")


def declared(X: np.ndarray, k: int, *bounds: Any, weight: float = 1.0, names=None) -> sm.Problem:
    p = X.shape[1]
    omega = sm.Variable((p, p), symmetric=True, name="Omega", names=names)
    goal = weight * sm.gaussian_nll(omega, data=X)
    constraints = [sm.card(sm.offdiag(omega)) <= 2 * k]
    constraints += [bound(omega) for bound in bounds]
    return sm.Problem(sm.minimize(goal), constraints)


@pytest.fixture(scope="module")
def certified() -> tuple[sm.Problem, PrecisionCertificate]:
    problem = declared(observations(), 5, names=list("abcdef"))
    return problem, problem.certify()


def test_it_comes_back_bit_by_bit_and_holds(certified, tmp_path: Path) -> None:
    problem, certificate = certified
    path = certificate.save(tmp_path / "graph.json")
    loaded = PrecisionCertificate.load(path)
    assert loaded.to_dict() == certificate.to_dict()
    np.testing.assert_array_equal(loaded.x, certificate.x)
    assert certificate.claim.value == "within gap"
    assert certificate.witness.final is not None
    # From the file and the data alone, the problem declared anew.
    again = declared(observations(), 5, names=list("abcdef"))
    checked = verify(path, again.form)
    assert checked.claim is certificate.claim
    assert "restricted_bound" in str(checked)
    assert verify(certificate, problem.form).claim is certificate.claim
    assert loaded.edges[0].names == ("a", "b")


@pytest.mark.parametrize("ending", ["html", "md", "txt"])
def test_reports(certified, tmp_path: Path, ending: str) -> None:
    _, certificate = certified
    text = certificate.save(tmp_path / f"graph.{ending}").read_text()
    assert "within gap" in text.lower()
    assert "nats per sample" in text
    assert "perspective relaxation" in text
    assert "<script" not in text
    assert f"{abs(certificate.correlations[0]):.3f}"[:5] in text
    assert "Partial correlations" in certificate._repr_html_()
    with pytest.raises(CertificateError, match="ending"):
        certificate.save(tmp_path / "graph.pickle")


def test_the_claims() -> None:
    X = observations()
    full = declared(X, 15).certify()
    assert full.claim.value == "globally optimal"
    empty = declared(X, 0).certify()
    assert empty.claim.value == "globally optimal"  # there is but one support
    few = declared(observations(n=6), 3).certify()
    assert few.claim.value == "within gap"
    assert few.open_share > 0.1
    assert any("unbounded" in a.text and not a.checked for a in few.assumptions)
    problem = declared(X, 5)
    problem.solve("precision_grahtp", max_iter=0)
    start = problem.certify()
    assert start.claim.value in ("none", "stationary", "within gap")
    assert start.gap >= 0.0


def test_claims_do_not_depend_on_units() -> None:
    X = observations()
    plain = declared(X, 5).certify()
    scaled = declared(X * np.array([1e-3, 1.0, 1e3, 10.0, 1.0, 1e-2]), 5).certify()
    heavy = declared(X, 5, weight=1e-4).certify()
    assert plain.claim is scaled.claim is heavy.claim
    assert heavy.nats_per_sample == pytest.approx(plain.nats_per_sample, rel=1e-3)
    assert verify(heavy, declared(X, 5, weight=1e-4).form).claim is heavy.claim


def test_a_bound_narrows_the_set_of_matrices_and_holds(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    omega = np.eye(30)
    omega[np.triu_indices(30, 1)] = rng.choice([0.0, 0.3, -0.3], 435, p=[0.9, 0.05, 0.05])
    omega = np.triu(omega) + np.triu(omega, 1).T
    omega += max(0.0, 0.1 - np.linalg.eigvalsh(omega)[0]) * np.eye(30)
    X = np.linalg.solve(np.linalg.cholesky(omega).T, rng.standard_normal((30, 300))).T
    problem = declared(X, 40)
    certificate = problem.certify()
    assert certificate.witness.enclosing
    checked = verify(certificate.save(tmp_path / "graph.json"), problem.form)
    assert checked.claim is certificate.claim


def test_an_active_bound_has_a_dual_point_of_its_own(tmp_path: Path) -> None:
    X = observations(n=60)
    problem = declared(X, 5, lambda omega: omega << 2.0)
    certificate = problem.certify()
    assert certificate.active == ("the upper eigenvalue bound 2",)
    assert certificate.witness.restricted is not None
    assert certificate.restricted_gap < 1e-5
    path = certificate.save(tmp_path / "graph.json")
    assert verify(path, declared(X, 5, lambda omega: omega << 2.0).form)


def test_an_active_bound_is_one_in_the_variables_own_units() -> None:
    omega = sm.Variable((2, 2), symmetric=True)
    nll = sm.gaussian_nll(omega, np.array([[0.5, -1.0], [-1.0, 4.0]]))
    problem = sm.Problem(sm.minimize(nll), [sm.card(sm.offdiag(omega)) <= 0, omega >> 4.0 / 9.0])
    certificate = problem.certify()
    assert certificate.active == ("the lower eigenvalue bound 0.4444",)
    assert certificate.gap < 1e-9


def test_forbidden_edges_have_multipliers_where_a_bound_is_active(tmp_path: Path) -> None:
    omega = sm.Variable((4, 4), symmetric=True)
    X = np.random.default_rng(42).standard_normal((6, 4))
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=X)),
        [sm.card(sm.offdiag(omega)) <= 4, omega << 1.5, sm.forbidden_edges(omega, [(0, 2)])],
    )
    certificate = problem.certify()
    assert certificate.active == ("the upper eigenvalue bound 1.5",)
    assert certificate.restricted_gap < 1e-8
    path = certificate.save(tmp_path / "graph.json")
    assert verify(path, problem.form)
    np.savez(tmp_path / "X.npz", X=X)
    assert check([str(path), str(tmp_path / "X.npz")]) == 0


def test_other_data_and_other_models_are_refused(certified) -> None:
    _, certificate = certified
    names = list("abcdef")
    for other, line in (
        (declared(observations(seed=1), 5, names=names), "problem.alpha|problem.probes"),
        (declared(observations(), 4, names=names), "problem.k"),
        (declared(observations(), 5, lambda o: o << 50.0, names=names), "problem.beta"),
        (declared(observations(), 5), "problem.names"),
        (declared(observations(p=7), 5), "problem.order"),
    ):
        with pytest.raises(CertificateError, match=line):
            verify(certificate, other.form)
    omega = sm.Variable((6, 6), symmetric=True, names=names)
    forbidden = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=observations())),
        sm.card(sm.offdiag(omega)) <= 10,
        sm.forbidden_edges(omega, [(0, 5)]),
    )
    with pytest.raises(CertificateError, match=r"problem\.(units|structure)"):
        verify(certificate, forbidden.form)
    w = sm.Variable(3)
    regression = sm.Problem(
        sm.minimize(sm.squared_loss(np.eye(3) @ w, np.ones(3))), sm.card(w) <= 1
    )
    with pytest.raises(CertificateError, match="not a regression"):
        verify(certificate, regression.form)


def _forged(certificate: PrecisionCertificate, change) -> str:
    """Return the text of a file that was changed by somebody who renewed the digest."""
    body = json.loads(json.dumps(certificate.to_dict()))
    change(body)
    body["digest"] = digest(body)
    return json.dumps(body)


def _raise_bound(body: dict[str, Any]) -> None:
    body["bound"] = 0.5 * (body["bound"] + body["upper"])
    body["gap"] = float(np.nextafter(body["upper"] - body["bound"], np.inf))
    body["nats_per_sample"] = 0.5 * body["gap"]


def _lower_value(body: dict[str, Any]) -> None:
    body["value"] = body["bound"]


def _lower_upper(body: dict[str, Any]) -> None:
    body["upper"] = 0.5 * (body["bound"] + body["value"])
    body["gap"] = float(np.nextafter(body["upper"] - body["bound"], np.inf))
    body["nats_per_sample"] = 0.5 * body["gap"]


def _set(key: str, value: Any):
    def change(body: dict[str, Any]) -> None:
        body[key] = value

    change.__name__ = key
    return change


def _other_correlation(body: dict[str, Any]) -> None:
    body["edges"][0]["partial_correlation"] *= 0.5


def _drop_witness(body: dict[str, Any]) -> None:
    body["witness"]["final"] = None


def _drop_edge(body: dict[str, Any]) -> None:
    del body["edges"][0]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (_raise_bound, "'bound'"),
        (_lower_value, "'value'"),
        (_lower_upper, "'upper'"),
        (_drop_witness, "'bound'"),
        (_drop_edge, "'edges'"),
        (_other_correlation, "edges"),
        (_set("claim", "globally optimal"), "'claim'"),
        (_set("target", 1e-9), "'target' does not belong"),
        (_set("claim", "stationary"), "'claim'"),
        (_set("upper", "inf"), "'upper'|'gap'"),
        (_set("bound", "-inf"), "'bound'|'gap'"),
        (_set("trivial_bound", -1e6), "'trivial_bound'"),
        (_set("note", "checked by the referees"), "'note' does not belong"),
        (_set("null_value", 1e6), "'null_value'"),
        (_set("trivial_bound", 1e6), "'trivial_bound'"),
        (_set("restricted_bound", 1e6), "'restricted_bound'"),
        (_set("assumptions", []), "'assumptions'"),
        (_set("active", ["the upper eigenvalue bound 3"]), "'active'"),
        (_set("method", "magic"), "'method'"),
    ],
)
def test_forgeries_are_found(certified, change, line: str) -> None:
    problem, certificate = certified
    text = _forged(certificate, change)
    with pytest.raises(CertificateError, match=line):
        verify(PrecisionCertificate.from_json(text), problem.form)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("gap", 0.0), "gap"),
        (_set("claim", "certain"), "claim"),
        (_set("witness", {}), "witness"),
        (_set("edges", [{"one": 3, "other": 99}]), "edges"),
        (_set("value", "much"), "value"),
        (_set("version", 99), "version"),
        (_set("problem", []), "problem"),
    ],
)
def test_malformed_files_are_refused(certified, change, words: str) -> None:
    with pytest.raises(CertificateError, match=words):
        PrecisionCertificate.from_json(_forged(certified[1], change))


def test_a_changed_file_is_refused(certified, tmp_path: Path) -> None:
    path = certified[1].save(tmp_path / "graph.json")
    path.write_text(path.read_text().replace('"seconds"', '"minutes"'))
    with pytest.raises(CertificateError, match="digest"):
        PrecisionCertificate.load(path)
    with pytest.raises(CertificateError, match="not a sparsemodel certificate"):
        sm.certificates.Certificate.load(certified[1].save(tmp_path / "again.json"))


def test_the_command_line(tmp_path: Path, capsys) -> None:
    data = tmp_path / "data.csv"
    X = observations()
    np.savetxt(data, X, delimiter=",", header="a,b,c,d,e,f", comments="")
    files = ["--certificate", str(tmp_path / "graph.json"), "--report", str(tmp_path / "g.html")]
    assert main(["precision", str(data), "--edges", "5", "--correlation", *files]) == 0
    assert "of what edges can explain is missing" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "graph.json"), "--data", str(data)]) == 0
    out = capsys.readouterr().out
    assert "verified: within gap" in out
    assert "--edges=5 --correlation" in out
    chosen = ["--among", "0:10:5", "--certificate", str(tmp_path / "chosen.json")]
    assert main(["precision", str(data), *chosen]) == 0
    assert "5 edges of 0 to 10 by ebic" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "chosen.json"), "--data", str(data)]) == 0
    assert "--edges=5" in capsys.readouterr().out
    assert main(["precision", str(data), "--edges", "5", "--among", "0:5"]) == 2
    capsys.readouterr()
    X[0, 0] += 0.1
    np.savetxt(data, X, delimiter=",", header="a,b,c,d,e,f", comments="")
    assert main(["verify", str(tmp_path / "graph.json"), "--data", str(data), "--json"]) == 7
    assert not json.loads(capsys.readouterr().out)["holds"]
    assert main(["precision", str(data), "--edges", "5", *files[:2], "--no-certificate"]) != 0


@pytest.mark.parametrize("constant", [0.0, -3.0e4])
def test_units_that_differ_much_leave_a_matrix_definite(constant: float, tmp_path: Path) -> None:
    """Errors of factors are those in the units in which the diagonal is near one."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3)) + rng.standard_normal((20, 1))
    X *= [1e-7, 1.0, 1e8]
    omega, S = sm.Variable((3, 3), symmetric=True), np.cov(X.T)
    goal = sm.minimize(sm.gaussian_nll(omega, S, samples=20) + constant)
    problem = sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 4)
    np.savez(tmp_path / "data.npz", S=S)
    for number, certificate in enumerate((problem.certify(), problem.prove())):
        assert certificate.upper - certificate.value <= 1e-12 * abs(certificate.value)
        path = certificate.save(tmp_path / f"{number}.json")
        verify(path, problem.form)
        assert check([str(path), str(tmp_path / "data.npz")]) == 0
