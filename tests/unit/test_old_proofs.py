"""Files of proofs that earlier releases wrote are verified, and gone on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, Claim, verify
from sparsemodel.interfaces import CertificateError

FOLDER = Path(__file__).parent / "old_proofs"


def problem(kind):
    rng = np.random.default_rng(11)
    a = np.round(rng.standard_normal((14, 9)), 2)
    b = np.round(a[:, 0] - a[:, 3] + rng.standard_normal(14), 2)
    w, c = sm.Variable(9, name="w"), sm.Variable(name="c")
    if kind == "squares":
        loss, k = sm.squared_loss(a @ w + c, b), 4
    else:
        loss, k = sm.logistic_loss(a @ w + c, np.sign(b)), 2
    return sm.Problem(sm.minimize(loss + sm.ridge(w, 0.02)), sm.card(w) <= k)


@pytest.mark.parametrize("kind", ["squares", "logistic"])
def test_an_old_proof_is_verified_and_gone_on_with(kind):
    declared = problem(kind)
    old = Certificate.load(FOLDER / f"{kind}.json")
    assert old.proof["tree"].get("kind") == (None if kind == "squares" else "regions")
    assert verify(old, declared.form).claim is old.claim
    with pytest.raises(CertificateError, match="bound"):
        verify(replace(old, bound=old.bound + 1e-3 * abs(old.bound)), declared.form)
    new = declared.prove(gap=1e-6, resume=old)
    assert new.relative_gap <= 1e-6
    assert new.bound >= old.bound
    assert verify(new, declared.form).claim is Claim.OPTIMAL
    assert new.value == pytest.approx(problem(kind).prove(gap=1e-6).value, rel=1e-6)


def test_a_decision_about_a_coordinate_that_is_always_in_is_refused():
    declared = problem("squares")
    old = Certificate.load(FOLDER / "squares.json")
    nodes = [dict(record) for record in old.proof["tree"]["nodes"]]
    nodes[0]["branch"] = [9, 1, 2]
    tree = {**old.proof["tree"], "nodes": nodes}
    with pytest.raises(CertificateError, match="malformed"):
        verify(replace(old, proof={**old.proof, "tree": tree}), declared.form)
