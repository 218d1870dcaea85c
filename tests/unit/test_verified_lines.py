"""Every line of a certificate that the data decide is compared, whatever a file's reader checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.claims import Assumption
from sparsemodel.certificates.statements.derived import conjugates_agree
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import HuberLoss

RNG = np.random.default_rng(0)
A = RNG.standard_normal((20, 6)) + 0.8 * RNG.standard_normal((20, 1))
Y = A[:, 0] - A[:, 1] + A[:, 2] + RNG.standard_normal(20)


@pytest.fixture(scope="module")
def made():
    w = sm.Variable(6, name="w")
    goal = sm.squared_loss(A @ w, Y) + sm.ridge(w, 0.01) + 2.0
    form = sm.Problem(sm.minimize(goal), sm.card(w) <= 2).form
    x = np.zeros(6)
    x[[1, 3]] = [-0.5, 0.25]
    certificate = certify(form, x, relax=False)
    verify(certificate, form)
    return certificate, form


CHANGES = {
    "value": lambda c: {"value": c.value * (1.0 - 1e-6)},
    "upper": lambda c: {"upper": c.upper * (1.0 - 1e-6)},
    "bound": lambda c: {"bound": c.bound + 1e-6 * abs(c.bound)},
    "allowance": lambda c: {"allowance": 2.0 * c.allowance},
    "null_value": lambda c: {"null_value": c.null_value * (1.0 + 1e-6)},
    "constant": lambda c: {"constant": c.constant + 1.0},
    "violations": lambda c: {"violations": ("2 units are nonzero and k is 1",)},
    "support": lambda c: {"support": (1, 4), "names": {1: c.names[1], 4: "w[4]"}},
    "names": lambda c: {"names": {1: c.names[1]}},
    "bound_method": lambda c: {"bound_method": "an oracle"},
    "bound_reason": lambda c: {"bound_reason": "none"},
    "stationarity.largest": lambda c: {
        "stationarity": replace(c.stationarity, largest=0.9 * c.stationarity.largest)
    },
    "stationarity.threshold": lambda c: {"stationarity": replace(c.stationarity, threshold=0.0)},
    "assumptions": lambda c: {"assumptions": (*c.assumptions, Assumption("all is well", True))},
    "claim": lambda c: {"claim": Claim.OPTIMAL},
    "problem.k": lambda c: {"problem": replace(c.problem, k=3)},
}


@pytest.mark.unrefereed("certificates are forged")
@pytest.mark.parametrize("line", CHANGES)
def test_a_changed_line_is_refused_by_its_name(line, made):
    certificate, form = made
    with pytest.raises(sm.CertificateError, match=f"line '{line}"):
        verify(replace(certificate, **CHANGES[line](certificate)), form)


@pytest.mark.unrefereed("certificates are forged")
@pytest.mark.parametrize("by", [1e-6, 1e-3, 1.0])
def test_a_bound_that_says_less_than_the_witness_proves_is_refused_as_well(by, made):
    certificate, form = made
    with pytest.raises(sm.CertificateError, match="line 'bound'"):
        verify(replace(certificate, bound=certificate.bound - by), form)


@pytest.mark.unrefereed("certificates are forged")
def test_an_upper_value_below_the_value_is_refused(made):
    certificate, form = made
    below = certificate.value - 0.5 * certificate.allowance
    with pytest.raises(sm.CertificateError, match="line 'upper'"):
        verify(replace(certificate, upper=below), form)


class Wrong(HuberLoss):
    """A conjugate that is too small: a bound from it would be too large."""

    def conjugate(self, a, y):
        return super().conjugate(a, y) - 0.1


@pytest.mark.parametrize("loss", [HuberLoss(), Wrong()])
def test_a_wrong_conjugate_is_noticed_at_the_dual_point(loss):
    term = Term(DenseDesign(A), loss, np.zeros(20), np.ones(20))
    form = SparseRegression((term,), np.ones(6), Cardinality(6, 2))
    found = conjugates_agree(form, Witness((np.zeros(20),)))
    assert found.checked
    assert found.holds == (type(loss) is HuberLoss)


def test_the_form_is_asked_for_where_a_problem_is_given(made) -> None:
    w = sm.Variable(6)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, Y)), sm.card(w) <= 2)
    with pytest.raises(sm.CertificateError, match=r"problem\.form"):
        verify(made[0], problem)
