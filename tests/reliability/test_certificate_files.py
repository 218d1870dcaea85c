"""Certificates of graphs, proofs to go on with, and files that are none, all of them hostile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.certificates import Certificate, PrecisionCertificate, verify
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.cli import main


def of_a_graph() -> tuple[sm.Problem, dict, float]:
    X = np.random.default_rng(2).standard_normal((30, 4))
    X[:, 1] += X[:, 0]
    omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    goal = sm.minimize(sm.gaussian_nll(omega, data=X))
    problem = sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 4)
    problem.solve()
    certificate = problem.certify(time_limit=1.0)
    return problem, certificate.to_dict(), certificate.upper


def of_a_proof(loss_of) -> tuple[sm.Problem, dict, float]:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((12, 6)) + rng.standard_normal((12, 1))
    w = sm.Variable(6, name="w")
    loss = loss_of(A @ w, np.where(rng.random(12) < 0.5, 1.0, -1.0))
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.02)), sm.card(w) <= 3)
    certificate = problem.prove()
    return problem, certificate.to_dict(), certificate.upper


GRAPH, GRAPH_BODY, GRAPH_UPPER = of_a_graph()
PROOFS = [of_a_proof(loss) for loss in (sm.squared_loss, sm.logistic_loss)]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.integers(-3, 12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["nan", "inf", "-inf", "../../x", "9" * 400, "AAAA", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


def paths(value: object, at: tuple = ()) -> list[tuple]:
    """Return the way to every entry, the inner ones before what holds them."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    for key, inner in items:
        found.append((*at, key))
        if isinstance(inner, (dict, list)):
            found += paths(inner, (*at, key))
    return found


def forged(body: dict, where: tuple, junk: object) -> str | None:
    """Return the text with one entry replaced, under a digest that fits."""
    body = json.loads(json.dumps(body))
    inner = body
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = junk
    try:
        body["digest"] = digest(body)
    except (ValueError, TypeError):
        return None
    return json.dumps(body)


@given(where=st.sampled_from(paths(GRAPH_BODY)), junk=JUNK)
@settings(max_examples=25)
def test_any_entry_of_a_graphs_certificate(where, junk):
    text = forged(GRAPH_BODY, where, junk)
    if text is None:
        return
    try:
        certificate = PrecisionCertificate.from_json(text)
        str(certificate)
        verify(certificate, GRAPH.form)
    except sm.CertificateError:
        return
    assert certificate.bound <= GRAPH_UPPER


@given(cut=st.integers(0, 10**5), byte=st.integers(0, 255))
def test_a_graphs_certificate_cut_short(cut, byte):
    text = json.dumps(GRAPH_BODY)
    cut %= len(text)
    for damaged in (text[:cut], text[:cut] + chr(byte) + text[cut + 1 :]):
        try:
            found = PrecisionCertificate.from_json(damaged)
        except sm.CertificateError:
            continue
        assert found.bound == GRAPH_BODY["bound"]


@pytest.mark.parametrize(("problem", "body", "upper"), PROOFS, ids=["squared", "logistic"])
@given(data=st.data(), junk=JUNK)
def test_any_entry_of_a_proof_that_is_verified_or_gone_on_with(problem, body, upper, data, junk):
    assert "tree" in body["proof"]
    where = data.draw(st.sampled_from(paths(body["proof"], ("proof",))))
    text = forged(body, where, junk)
    if text is None:
        return
    try:
        certificate = Certificate.from_json(text)
        str(certificate)
    except sm.CertificateError:
        return
    try:
        verify(certificate, problem.form)
    except sm.CertificateError:
        pass
    else:
        assert certificate.bound <= upper
    try:
        again = problem.prove(resume=certificate, time_limit=2.0)
    except (sm.CertificateError, sm.DataError):
        return
    assert again.bound <= upper


def test_a_graphs_certificate_cannot_ask_for_much_memory():
    import tracemalloc

    body = json.loads(json.dumps(GRAPH_BODY))
    zeros = {"shape": [2**25], "positions": "", "values": ""}
    body["witness"] |= {"x": zeros, "enclosing": [zeros] * 1000}
    body["digest"] = digest(body)
    tracemalloc.start()
    try:
        with pytest.raises(sm.CertificateError, match="witness"):
            PrecisionCertificate.from_json(json.dumps(body))
        assert tracemalloc.get_traced_memory()[1] < 2**29
    finally:
        tracemalloc.stop()


READ = """
import resource, sys
import sparsemodel as sm
from sparsemodel.certificates import Certificate
from sparsemodel.cli import main
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
for path in sys.argv[2:]:
    try:
        Certificate.load(path)
    except sm.CertificateError:
        print("refused", main(["verify", path, sys.argv[1]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="devices and pipes as Linux has them")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path):
    table = tmp_path / "data.csv"
    table.write_text("a,y\n1,2\n2,3\n")
    pipe, link, loop = (tmp_path / name for name in ("pipe", "link", "loop"))
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    loop.symlink_to(loop)
    done = subprocess.run(
        [sys.executable, "-c", READ, table, "/dev/zero", pipe, link, loop, tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.strip().split("\n")
    assert len(lines) == 5
    assert all(
        line.startswith("refused ") and line not in ("refused 0", "refused 1") for line in lines
    )
    assert "Traceback" not in done.stderr


def test_names_that_lead_elsewhere_are_plain_names(tmp_path: Path, monkeypatch, capsys):
    """Nothing in a file is a path: only what is typed is opened, and links are not followed."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 3))
    np.savetxt("data.csv", rows, delimiter=",", header="../../a,/etc/b,y", comments="")
    arguments = ["solve", "data.csv", "--target", "y", "--k", "1", "--certificate"]
    assert main([*arguments, "c.json"]) == 0
    body = json.loads(Path("c.json").read_text())
    body["recipe"] = [*body["recipe"], "--certificate", "../stolen.json"]
    body["digest"] = digest(body)
    Path("c.json").write_text(json.dumps(body))
    assert main(["verify", "c.json", "data.csv"]) not in (0, 1)  # no option of a recipe writes
    victim = tmp_path / "victim.json"
    victim.write_text("mine")
    Path("link.json").symlink_to(victim)
    Path("nowhere.json").symlink_to(tmp_path / "made.json")
    assert main([*arguments, "link.json"]) == 6
    assert main([*arguments, "nowhere.json"]) == 6
    assert main([*arguments, "../victim.json"]) == 6
    assert victim.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "victim.json"]
    assert "Traceback" not in capsys.readouterr().err
