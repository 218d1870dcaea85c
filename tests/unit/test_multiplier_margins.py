"""Constraints in the objective: nowhere above it where they hold, and equal to it at their end."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.arithmetic.dualised_rows import with_stiffness
from sparsemodel.certificates.arithmetic.multipliers import violation, without_rows
from sparsemodel.certificates.dual_bounds.bound import dual_bound
from sparsemodel.certificates.statements.certificate import Multipliers
from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.interfaces import CertificateError

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((12, 3)), RNG.standard_normal(12)


def declared(limit):
    w = sm.Variable(3, name="w")
    goal = sm.squared_loss(A @ w, B) + sm.ridge(w, 0.3)
    return sm.Problem(sm.minimize(goal), [sm.card(w) <= 2, limit(w)]).form


@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("order", [1, 2])
def test_a_norm_in_the_objective_takes_nothing_away_at_its_limit(order, radius):
    form = declared(lambda w: sm.norm(w, order) <= radius)
    rows = np.zeros(form.region.linear[0].lower.size if form.region.linear else 0)
    inner = without_rows(form, Multipliers(rows, rows, norms=np.array([0.7])))
    for direction in np.random.default_rng(1).standard_normal((5, 3)):
        x = radius * direction / np.linalg.norm(direction, order)
        assert primal(inner, x).value == pytest.approx(primal(form, x).value, rel=1e-12)
        assert primal(inner, 0.5 * x).value < primal(form, 0.5 * x).value


def test_a_multiplier_of_a_norm_has_one_sign():
    form, none = declared(lambda w: sm.norm(w) <= 1.0), np.zeros(0)
    for wrong in (-0.1, np.nan, np.inf):
        with pytest.raises(CertificateError, match="does not fit"):
            without_rows(form, Multipliers(none, none, norms=np.array([wrong])))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_squares_of_equations_cost_nothing_as_slopes(scale):
    """What they take from a bound at any dual point is given back."""
    form = declared(lambda w: w.sum() == 0.5)
    inner = without_rows(form, Multipliers(np.array([0.1]), np.array([0.4]), own=True))
    rng = np.random.default_rng(2)
    for _ in range(10):
        duals = tuple(
            scale * rng.standard_normal((term.design.shape[0], *form.shape[1:]))
            for term in inner.terms
        )
        before, after = (dual_bound(inner, d).value for d in (duals, with_stiffness(inner, duals)))
        assert np.isfinite(before)
        assert after >= before - 1e-12 * abs(before)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_violations_push_nowhere_along_columns_that_depend_on_each_other(scale: float) -> None:
    """Divided by rounding, they were pushed by a seventh of the violation, and nothing refuted."""
    column = scale * np.array([-1.0, -1.0, -2.0])
    aims = np.array([0.17250639, 0.0, 0.34501278])
    r = violation(Rows(np.column_stack([column, -column]), aims, aims), None, np.arange(2))
    assert np.linalg.norm(r) > 0.1
    assert abs(r @ column) <= 1e-12 * np.linalg.norm(r) * np.linalg.norm(column)
