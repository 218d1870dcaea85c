"""Proofs of graphs against every graph there is."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.certificates import Claim, PrecisionCertificate, verify
from sparsemodel.certificates.precision_matrices import ascent
from sparsemodel.certificates.precision_matrices.certify_precision import (
    certify_precision,
)
from sparsemodel.certificates.precision_matrices.evaluated import evaluate_point
from sparsemodel.certificates.precision_matrices.proving import ascent_compiled, proof_of_graph
from sparsemodel.certificates.precision_matrices.proving.proof_of_graph import prove_precision
from sparsemodel.certificates.precision_matrices.proving.record import everything, graph_bound
from sparsemodel.certificates.precision_matrices.verify_precision import verify_precision
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import CertificateError, DataError, DataTypeError
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import precision_objective
from tests.properties.graphs import best_of_all, graph


@settings(max_examples=8)
@given(
    st.integers(0, 10_000),
    st.integers(4, 5),
    st.integers(1, 4),
    st.sampled_from(["", "required", "forbidden"]),
    st.sampled_from([0.0, 1.5]),
)
def test_a_proof_finds_the_best_of_all_graphs(
    seed: int, p: int, k: int, marked: str, spread: float
) -> None:
    options: dict[str, Any] = {}
    if marked:
        mask = np.zeros((p, p), dtype=bool)
        mask[0, 1] = mask[1, 0] = mask[1, 2] = mask[2, 1] = True
        options = {marked: mask}
    form = graph(seed, p, 6 * p, k, spread, **options)
    optimum, _ = best_of_all(form)
    # From the worst start there is: the best matrix without edges of its own.
    proof = prove_precision(form, precision_objective(form).origin().x, gap=1e-6, time_limit=20.0)
    assert proof.value == pytest.approx(optimum, abs=1e-6 * (1.0 + abs(optimum)))
    assert proof.bound <= optimum + 1e-9 * (1.0 + abs(optimum))
    assert proof.open_share <= 1e-5
    verify_precision(proof, form)


@pytest.mark.parametrize("limits", [(0.0, 3.0), (0.4, 50.0), (0.5, 2.0)])
def test_bounds_on_eigenvalues_that_are_active(limits: tuple[float, float]) -> None:
    form = graph(4, 4, 30, 2, alpha=limits[0], beta=limits[1])
    optimum, x = best_of_all(form)
    proof = prove_precision(form, x, gap=1e-5, time_limit=20.0)
    assert proof.bound <= optimum + 1e-7
    assert proof.value == pytest.approx(optimum, abs=1e-6)
    verify_precision(proof, form)


@cache
def solved() -> tuple[SparsePrecision, float, np.ndarray]:
    """Return a problem that several tests ask about, with its optimum."""
    form = graph(3, 6, 40, 4)
    return form, *best_of_all(form)


@cache
def proved() -> tuple[SparsePrecision, PrecisionCertificate]:
    form = solved()[0]
    objective = precision_objective(form)
    found = prove_precision(form, objective.origin().x, time_limit=30.0)
    assert found.proof is not None
    return form, found


def test_a_proof_is_saved_and_verified(tmp_path: Any) -> None:
    form, found = proved()
    assert found.method == "branch and bound over the edges"
    assert found.search["ended"] == "closed"
    again = PrecisionCertificate.load(found.save(tmp_path / "graph.json"))
    assert again.to_json() == found.to_json()
    checked = verify_precision(again, form)
    assert any(line == "proof" for line, _ in checked.lines)
    assert "branch and bound" in str(found)


def test_a_record_that_was_changed_proves_less_or_is_refused() -> None:
    form, found = proved()
    tree = found.proof["tree"]  # type: ignore[index]
    upper = evaluate_point(form, found.x).upper
    whole = graph_bound(form, upper, tree)
    optimum = solved()[1]
    assert whole <= optimum + 1e-9
    rng = np.random.default_rng(0)
    for _ in range(16):
        nodes = [dict(record) for record in tree["nodes"]]
        record = nodes[int(rng.integers(len(nodes)))]
        line = str(rng.choice(sorted(record))) if record else "duals"
        if line == "duals" and "duals" in record:
            U, mu = record["duals"]
            record["duals"] = [(np.array(U) * 1.5).tolist(), [2.0 * mu[0]]]
        elif line == "branch":
            record["branch"] = [record["branch"][0], -1, record["branch"][2]]
        else:
            record[line] = [0] if line in ("in", "out") else 0
        with suppress(CertificateError):
            assert graph_bound(form, upper, {**tree, "nodes": nodes}) <= optimum + 1e-9
    for record in ({"branch": [99, 0, 0]}, {"duals": [[1.0], [0.1]]}, {"enumerated": True}):
        with pytest.raises(CertificateError, match=r"proof\.tree"):
            graph_bound(form, upper, {**tree, "nodes": [record]})
    for units in ([0] * 5, [600] * 6, ["a"] * 6, 3):
        with pytest.raises(CertificateError, match=r"proof\.tree"):
            graph_bound(form, upper, {**tree, "units": units})


def test_a_proof_that_says_more_than_its_record_is_refused() -> None:
    form, found = proved()
    forged = replace(found, bound=found.bound + 1e-4)
    with pytest.raises(CertificateError, match="bound"):
        verify_precision(forged, form)
    without = replace(found, proof=None)
    with pytest.raises(CertificateError, match=r"bound|method"):
        verify_precision(without, form)


def test_without_time_the_bound_is_that_of_the_certificate() -> None:
    form = graph(5, 12, 60, 12)
    x = precision_objective(form).origin().x
    short = prove_precision(form, x, time_limit=0.3)
    verify_precision(short, form)
    assert short.bound >= short.trivial_bound
    with pytest.raises(DataError, match="gap"):
        prove_precision(form, x, gap=0.0)


def test_a_proof_as_a_user_asks_for_it() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((60, 7)) @ (np.eye(7) + 0.5 * np.eye(7, k=1))
    omega = sm.Variable((7, 7), symmetric=True)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=X)), sm.card(sm.offdiag(omega)) <= 8
    )
    problem.solve()
    before = problem.certify()
    proof = problem.prove(time_limit=30.0)
    assert proof.bound >= before.bound
    assert proof.open_share <= 1e-4
    assert verify(proof, problem.form).claim is proof.claim
    assert omega.value is not None
    with pytest.raises(DataTypeError, match="resume needs a PrecisionCertificate"):
        problem.prove(resume=3)


def test_a_search_that_was_stopped_goes_on_from_its_file(tmp_path: Any) -> None:
    form = graph(3, 5, 30, 4)
    x = precision_objective(form).origin().x
    first = prove_precision(form, x, gap=1e-5, progress=lambda at: at.nodes >= 6)
    assert first.proof is not None
    assert first.open_share > 1e-5
    assert first.proof["summary"]["open"] > 0
    loaded = PrecisionCertificate.load(first.save(tmp_path / "first.json"))
    last = prove_precision(form, x, gap=1e-5, resume=loaded)
    assert last.proof is not None
    assert last.open_share <= 1e-5
    nodes = [certificate.proof["tree"]["nodes"] for certificate in (first, last)]
    assert len(nodes[0]) < len(nodes[1])
    verify_precision(last, form)
    best, _ = best_of_all(form)
    assert last.bound <= best + 1e-9
    assert best <= last.upper
    again = prove_precision(form, x, gap=1e-5, resume=last)
    assert again.bound >= last.bound - 1e-9 * abs(last.bound)
    assert len(again.proof["tree"]["nodes"]) == len(nodes[1])
    for other in (graph(4, 5, 30, 4), graph(3, 5, 30, 3)):
        with pytest.raises(CertificateError, match="another problem"):
            prove_precision(other, precision_objective(other).origin().x, resume=first)
    with pytest.raises(DataError, match="gap"):
        prove_precision(form, x, gap=1e-7, resume=last)
    record = {**first.proof, "tree": {**first.proof["tree"], "nodes": [{"branch": [99, 0, 0]}]}}
    with pytest.raises(CertificateError, match=r"proof\.tree"):
        prove_precision(form, x, gap=1e-5, resume=replace(first, proof=record))


def test_a_proof_says_what_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    form, closed = proved()
    x = precision_objective(form).origin().x
    assert closed.proof["summary"]["ended"] == "closed"
    monkeypatch.setattr(proof_of_graph, "LIMIT", 4 * (21 + 16))
    full = prove_precision(form, x)
    assert full.proof["summary"]["ended"] == "the file has no room for more nodes"
    assert full.proof["summary"]["open"] > 0
    verify_precision(full, form)


def test_forbidden_edges_are_units_that_are_out() -> None:
    mask = np.zeros((5, 5), dtype=bool)
    mask[0, 3] = True
    form = graph(1, 5, 40, 2, forbidden=mask)
    inner = everything(form)
    assert inner.rows.size == 15
    assert form.rows.size == 14
    assert everything(inner) is inner


def test_a_search_uses_what_was_compiled_before_it() -> None:
    """Compiling for other types in the middle of a search would count as search."""
    form = graph(3, 6, 12, 3)
    x = precision_objective(form).origin().x
    assert prove_precision(form, x, gap=1e-6, progress=lambda at: at.nodes >= 20).proof is not None
    assert len(getattr(ascent_compiled.ascend, "signatures", "1")) == 1


def interrupted(*arguments: Any, **options: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interrupted_certificate_of_a_graph_keeps_the_best_bound_so_far(monkeypatch):
    form, _, x = solved()
    values, whole = [], certify_precision(form, x)

    def stopped(*arguments: Any) -> Any:
        if len(values) == 40:
            raise KeyboardInterrupt
        values.append(original(*arguments))
        return values[-1]

    original = ascent.dual_value
    monkeypatch.setattr(ascent, "dual_value", stopped)
    certificate = certify_precision(form, x)
    assert len(values) == 40
    assert certificate.trivial_bound < certificate.bound <= whole.bound
    monkeypatch.undo()
    verify_precision(certificate, form)


def test_a_proof_of_a_graph_that_is_stopped_at_any_time_is_one(monkeypatch):
    form, _, x = solved()
    short = prove_precision(form, x, progress=lambda at: at.nodes >= 3)
    for name in ("graph_bound", "certified_until"):
        with monkeypatch.context() as patched:
            if name == "graph_bound":
                patched.setattr(proof_of_graph, name, interrupted)
            else:
                patched.setattr(ascent, "dual_value", interrupted)
            proof = prove_precision(form, x, progress=lambda at: at.nodes >= 6)
            with pytest.raises(KeyboardInterrupt):  # which leaves the caller with the earlier proof
                prove_precision(form, x, resume=short, progress=lambda at: at.nodes >= 6)
        assert proof.proof is None
        assert proof.claim is not Claim.OPTIMAL
        verify_precision(proof, form)


@pytest.mark.parametrize("limit", [0.0, 0.05, None])
def test_the_numbers_of_an_earlier_proof_are_not_believed(limit):
    form, _, x = solved()
    optimum = evaluate_point(form, x).upper
    empty = form.entries(np.diag(1.0 / np.diag(form.covariance)))
    short = prove_precision(form, empty, progress=lambda at: at.nodes >= 3)
    assert short.proof is not None
    assert short.bound < optimum < short.upper
    forged = replace(short, bound=short.upper, claim=Claim.OPTIMAL)
    stop = None if limit is not None else lambda at: at.nodes >= 50
    again = prove_precision(form, empty, resume=forged, time_limit=limit, progress=stop)
    assert again.bound <= optimum
    verify_precision(again, form)


def test_a_better_matrix_proves_no_less_than_before(tmp_path: Any) -> None:
    form = graph(6, 6, 40, 4)
    best, x = best_of_all(form)
    empty = form.entries(np.diag(1.0 / np.diag(form.covariance)))
    short = prove_precision(form, empty, progress=lambda at: at.nodes >= 3)
    again = prove_precision(form, x, resume=short, progress=lambda at: True)
    assert again.upper < short.upper
    assert short.bound <= again.bound <= best
    np.savez(tmp_path / "data.npz", S=form.covariance)
    for more in (0.0, 1.0):
        witness = replace(again.witness, level=evaluate_point(form, short.x).upper + more)
        path = replace(again, witness=witness).save(tmp_path / "again.json")
        with nullcontext() if more == 0.0 else pytest.raises(CertificateError, match="bound"):
            verify_precision(PrecisionCertificate.load(path), form)
        assert main([str(path), str(tmp_path / "data.npz")]) == (more > 0.0)
    with pytest.raises(CertificateError, match=r"witness\.level"):
        prove_precision(form, x, resume=replace(short, witness=replace(witness, level=np.inf)))
    forged = replace(short, bound=best + 1.0, witness=replace(short.witness, level=-1e9))
    assert prove_precision(form, x, resume=forged, progress=lambda at: True).bound <= best


@pytest.mark.parametrize("limit", [0.02, 0.5])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_proof_without_time_has_the_bound_that_was_certified_before(
    limit: float, spread: float
) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 14)) @ (np.eye(14) + 0.4 * np.eye(14, k=1))
    X *= 10.0 ** rng.uniform(-spread, spread, 14)
    omega = sm.Variable((14, 14), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(omega, data=X))
    declared = sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 24)
    declared.solve("precision_grahtp")  # a search may find a better one
    certificate = declared.certify()
    proof = declared.prove(time_limit=limit)
    assert proof.value <= certificate.value
    assert proof.bound >= certificate.bound > proof.trivial_bound
    verify(proof, declared.form)
