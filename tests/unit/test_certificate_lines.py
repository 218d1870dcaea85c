"""Every line of a certificate is recomputed, follows from the rest, or is its writer's own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, Claim, PrecisionCertificate, certify, verify
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.documents.text import as_text

loads, graph_loads = Certificate.from_json, PrecisionCertificate.from_json

FIRST = Path(__file__).parent / "certificates_of_version_1"


def whole_numbers(n: int, p: int) -> np.ndarray:
    """Return data that are the same on every machine."""
    i, j = np.ogrid[:n, :p]
    return ((7 * i * i + 11 * i * j + 5 * j * j * j + 3 * i) % 13 - 6).astype(float)


A = whole_numbers(14, 6)
TARGET = A[:, 0] - 2.0 * A[:, 3] + ((np.arange(14) * 5) % 7 - 3)
SIGNS = np.where(TARGET > 0.0, 1.0, -1.0)


def declared(loss: Any, target: np.ndarray, ridge: float, k: int, *, c: bool = False) -> sm.Problem:
    w = sm.Variable(6, name="w")
    u = A @ w + sm.Variable(name="c") if c else A @ w
    return sm.Problem(sm.minimize(loss(u, target) + sm.ridge(w, ridge)), sm.card(w) <= k)


def graph() -> sm.Problem:
    omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    goal = sm.minimize(sm.gaussian_nll(omega, data=whole_numbers(20, 4)))
    return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 2)


PROBLEMS: dict[str, Callable[[], sm.Problem]] = {
    "optimal": lambda: declared(sm.squared_loss, TARGET, 0.5, 2),
    "stationary": lambda: declared(sm.logistic_loss, SIGNS, 0.01, 2, c=True),
    "proof_logistic": lambda: declared(sm.logistic_loss, SIGNS, 0.01, 2, c=True),
    "proof_squared": lambda: declared(sm.squared_loss, TARGET, 0.01, 2),
    "graph": graph,
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.slow] * (name == "proof_logistic"))
        for name in PROBLEMS
    ],
)
def saved(request) -> tuple[sm.Problem, dict[str, Any]]:
    problem = PROBLEMS[request.param]()
    problem.solve()
    if request.param == "stationary":
        certificate = certify(problem.form, problem._solved()[0].x, names=problem.layout.names())
        assert certificate.claim is Claim.WITHIN_GAP
    elif request.param.startswith("proof"):
        certificate = problem.prove()
    elif request.param == "graph":
        certificate = problem.certify(time_limit=1.0)
    else:
        certificate = problem.certify()
    return problem, certificate.to_dict()


def leaves(value: Any, at: tuple = ()) -> Iterator[tuple]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        if isinstance(inner, (dict, list)):
            yield from leaves(inner, (*at, key))
            if isinstance(inner, list):
                yield (*at, key, "appended")
        else:
            yield (*at, key)


def other(value: Any) -> list[Any]:
    """Return values that a line could be forged to."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "!", "nan", "-inf"]
    if isinstance(value, int):
        return [value + 1, "inf"]
    if isinstance(value, float):
        return [value + 1e-3 * max(abs(value), 1e-3), -1e9, 1e9, "inf", "-inf", "nan"]
    return ["text", 1.0, {}]


def changed(body: dict[str, Any], where: tuple, value: Any) -> str:
    body = json.loads(json.dumps(body))
    inner: Any = body
    for key in where[:-1]:
        inner = inner[key]
    if where[-1] == "appended":
        inner.append(value)
    else:
        inner[where[-1]] = value
    body["digest"] = digest(body)
    return json.dumps(body)


def checked(text: str, problem: sm.Problem) -> None:
    graphs = '"sparsemodel-precision-certificate"' in text
    certificate: Any = graph_loads(text) if graphs else loads(text)
    if graphs:
        verify(certificate, problem.form)
    else:
        verify(certificate, problem.form, names=problem.layout.names())


def accepted(body: dict[str, Any], problem: sm.Problem, ignored: tuple[str, ...]) -> list[Any]:
    """Return the changes of one line that are not refused."""
    found = []
    for where in leaves(body):
        if where[0] in ("digest", "witness", "proof", *ignored):
            continue  # what proves the bound may be any that proves it
        inner: Any = body
        for key in where:
            inner = None if key == "appended" else inner[key]
        for value in other(inner):
            try:
                checked(changed(body, where, value), problem)
            except sm.CertificateError:
                continue
            found.append((where, value))
    return found


def test_every_line_that_is_changed_is_refused(saved):
    problem, body = saved
    checked(json.dumps(body), problem)
    assert accepted(body, problem, ("writer",)) == []


def test_what_the_writer_says_stands_apart_and_is_said_to_be_unchecked(saved):
    problem, body = saved
    body = json.loads(json.dumps(body))
    body["writer"]["backend"] = "an oracle"
    text = changed(body, ("writer", "created"), "1999-12-31")
    certificate: Any = graph_loads(text) if "nats_per_sample" in body else loads(text)
    assert "time" in dict(verify(certificate, problem.form).lines)["not checked"]
    report = as_text(certificate.document())
    start = report.index("as stated by the author of the certificate")
    assert report.index("an oracle") > start < report.index("1999-12-31")
    for junk in ("nan", -1.0, "inf"):
        with pytest.raises(sm.CertificateError, match="target"):
            checked(changed(body, ("writer", "target"), junk), problem)


def test_lines_that_are_there_twice_or_do_not_belong_are_refused(saved):
    problem, body = saved
    text = json.dumps(body)
    twice = text.replace('"claim": ', '"claim": "globally optimal", "claim": ', 1)
    with pytest.raises(sm.CertificateError, match="'claim' is there twice"):
        checked(twice, problem)
    for where in (("remark",), ("problem", "remark"), ("writer", "remark"), ("witness", "remark")):
        with pytest.raises(sm.CertificateError, match=r"remark' does not belong"):
            checked(changed(body, where, "checked by three referees"), problem)


def forged_together(body: dict[str, Any], lines: dict[str, Any]) -> str:
    body = json.loads(json.dumps(body))
    for line, value in lines.items():
        *way, last = line.split(".")
        inner = body
        for key in way:
            inner = inner[key]
        inner[last] = value
    body["digest"] = digest(body)
    return json.dumps(body)


@pytest.mark.parametrize(
    "lines",
    [
        {"stationarity.largest": 0.0, "stationarity.step": "inf"},
        {"stationarity.threshold": 0.0},
        {"bound": "-inf", "gap": "inf", "relative_gap": "inf", "claim": "globally optimal"},
        {"bound": "-inf", "gap": "inf", "relative_gap": "inf", "claim": "stationary"},
        {"upper": "inf", "gap": "inf", "relative_gap": "inf", "claim": "none"},
        {"claim": "zero up to rounding"},
        {"claim": "stationary"},
    ],
    ids=str,
)
def test_lines_that_are_changed_together_are_refused(lines):
    problem = PROBLEMS["stationary"]()
    problem.solve()
    body = certify(problem.form, problem._solved()[0].x).to_dict()
    with pytest.raises(sm.CertificateError):
        verify(loads(forged_together(body, lines)), problem.form)


def test_a_forged_bound_of_a_graph_is_refused():
    problem = graph()
    problem.solve()
    body = problem.certify(time_limit=1.0).to_dict()
    for claim in Claim:
        lines = {"bound": "-inf", "gap": "inf", "nats_per_sample": "inf", "claim": claim.value}
        with pytest.raises(sm.CertificateError, match=r"'bound'|claim"):
            verify(graph_loads(forged_together(body, lines)), problem.form)


def test_names_are_compared_where_they_are_known():
    problem = PROBLEMS["optimal"]()
    problem.solve()
    body = problem.certify().to_dict()
    key = next(iter(body["names"]))
    old = body["names"][key]
    values = dict(body["coefficients"])
    lines = {"coefficients": {"TP53" if n == old else n: v for n, v in values.items()}}
    with pytest.raises(sm.CertificateError, match="coefficients"):
        loads(forged_together(body, lines))
    certificate = loads(forged_together(body, lines | {f"names.{key}": "TP53"}))
    assert "not compared" in dict(verify(certificate, problem.form).lines)["names"]
    with pytest.raises(sm.CertificateError, match=f"'TP53' is '{re.escape(old)}' here"):
        verify(certificate, problem.form, names=problem.layout.names())
    with pytest.raises(sm.DataError, match="6 names"):
        verify(certificate, problem.form, names=["one"])


# ---- files of the first version ----------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_files_of_the_first_version_are_read_and_hold(name):
    problem, path = PROBLEMS[name](), FIRST / f"{name}.json"
    if name == "graph":
        assert PrecisionCertificate.load(path).version == 1
        assert verify(path, problem.form).claim is Claim.WITHIN_GAP
        return
    assert Certificate.load(path).version == 1
    found = verify(path, problem.form, names=problem.layout.names())
    stored = json.loads(path.read_text())["claim"]
    if name == "stationary":
        assert found.claim is Claim.WITHIN_GAP
        assert "the file says 'stationary', which holds too" in str(found)
    else:
        assert found.claim.value == stored


def test_a_claim_by_the_old_rule_that_does_not_hold_is_said_to_be_one():
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, TARGET + 2.0**31) + sm.ridge(w, 0.01))
    problem = sm.Problem(goal, sm.card(w) <= 1)
    with pytest.raises(sm.CertificateError, match=r"earlier release.*support 'within gap'"):
        verify(FIRST / "unsupported.json", problem.form)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("stationary", "proof_logistic")))
        for name in PROBLEMS
    ],
)
def test_lines_of_the_first_version_that_are_changed_are_refused(name):
    problem = PROBLEMS[name]()
    body = json.loads((FIRST / f"{name}.json").read_text())
    own = ("backend", "bound_source", "target", "progress", "seconds", "created", "versions")
    assert accepted(body, problem, own) == []


def test_a_weaker_claim_is_no_claim_of_the_second_version():
    problem = PROBLEMS["optimal"]()
    problem.solve()
    body = problem.certify().to_dict()
    for claim in ("within gap", "stationary", "none"):
        with pytest.raises(sm.CertificateError, match="line 'claim'"):
            checked(forged_together(body, {"claim": claim}), problem)
    assert math.isfinite(body["bound"])
