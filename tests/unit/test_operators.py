"""Matrix-free operators: a right answer or an error of the library, never a wrong certificate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.interfaces import Design

N, P = 20, 6
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, P))
Y = X[:, 0] - X[:, 2] + 0.3 * RNG.standard_normal(N)


class Products(LinearOperator):
    def __init__(self, forward, back, dtype=np.float64):
        super().__init__(dtype, (N, P))
        self.forward, self.back = forward, back

    def _matvec(self, x):
        return self.forward(x.ravel())

    def _rmatvec(self, r):
        return self.back(r.ravel())


def declared(operator, loss=sm.squared_loss):
    w, c = sm.Variable(P), sm.Variable()
    goal = sm.minimize(loss(sm.as_design(operator) @ w + c, Y) + sm.ridge(w, 0.1))
    return sm.Problem(goal, sm.card(w) <= 2)


def reference(loss=sm.squared_loss):
    return declared(X, loss).solve("exhaustive").value


def forward(x):
    return X @ x


def back(r):
    return X.T @ r


def after(count, then, product):
    """Return a product that does ``then`` from its ``count``-th call on."""
    calls = [0]

    def multiply(v):
        calls[0] += 1
        return then(product(v)) if calls[0] > count else product(v)

    return multiply


def fail(v):
    raise OSError("the disk is gone")


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.huber_loss])
def test_a_right_operator_is_certified_and_the_comparison_is_in_the_certificate(loss, tmp_path):
    problem = declared(aslinearoperator(X), loss)
    assert problem.solve().value == pytest.approx(reference(loss), rel=1e-8)
    certificate = problem.certify()
    assert certificate.bound <= reference(loss)
    assert problem.solve().readings is None
    assert certificate.readings is None
    (tested,) = [a for a in certificate.assumptions if "<r, A x> = <A.T r, x>" in a.text]
    assert tested.checked
    verify(certificate.save(tmp_path / "c.json"), declared(aslinearoperator(X), loss).form)


def test_a_certificate_holds_for_products_that_are_rounded_otherwise():
    backwards = Products(lambda x: X[:, ::-1] @ x[::-1], back)
    x = np.random.default_rng(0).standard_normal(P)
    assert np.any(backwards.forward(x) != forward(x)), "else the test shows nothing"
    problem = declared(Products(forward, back))
    problem.solve()
    verify(problem.certify(), declared(backwards).form)


@pytest.mark.parametrize("factor", [0.0, 2.0, -1.0, 1.0 + 1e-6, 1.0 - 1e-6, 1.0 + 1e-9, 1.0 - 1e-9])
def test_a_wrong_adjoint_is_refused(factor):
    problem = declared(Products(forward, lambda r: factor * (X.T @ r)))
    with pytest.raises(sm.DataError, match="do not belong together"):
        problem.solve()


def test_an_adjoint_that_is_wrong_in_one_column_is_refused():
    other = X.copy()
    other[:, 4] *= 1.0 + 1e-6
    with pytest.raises(sm.DataError, match="do not belong together"):
        declared(Products(forward, lambda r: other.T @ r)).solve()


def test_products_with_noise_are_refused():
    rng = np.random.default_rng(0)
    noisy = Products(lambda x: X @ x + 1e-6 * rng.standard_normal(N), back)
    with pytest.raises(sm.DataError, match="do not belong together"):
        declared(noisy).solve()


def test_a_design_of_the_users_own_is_compared_before_it_is_certified():
    class Own(Design):
        shape = (N, P)

        def matvec(self, x):
            return X @ x

        def rmatvec(self, r):
            return 0.5 * (X.T @ r)

    problem = declared(Own())
    with pytest.raises(sm.DataError, match="do not belong together"):
        problem.certify()


def test_single_precision_is_taken_for_what_it_is():
    single = X.astype(np.float32)
    operator = Products(
        lambda x: single @ x.astype(np.float32), lambda r: single.T @ r.astype(np.float32), "f4"
    )
    problem = declared(operator)
    certificate = problem.certify()
    exact = declared(single.astype(np.float64)).solve("exhaustive").value
    assert certificate.bound <= exact
    with pytest.raises(sm.DataError, match="do not belong together"):
        declared(Products(operator.forward, lambda r: 1.001 * operator.back(r), "f4")).solve()


@pytest.mark.parametrize(
    ("forward_product", "back_product"),
    [
        (lambda x: np.zeros(3), back),
        (forward, lambda r: np.zeros(3)),
        (lambda x: X @ x + 1j, back),
        (lambda x: np.full(N, np.nan), back),
        (forward, lambda r: np.full(P, np.inf)),
        (fail, back),
        (forward, fail),
        (lambda x: None, back),
        (lambda x: "text", back),
        *[(after(m, lambda v: v * np.nan, forward), back) for m in (3, 4, 6, 9)],
        *[(forward, after(m, lambda v: v * np.nan, back)) for m in (1, 3, 4, 6)],
        *[(after(m, fail, forward), back) for m in (3, 5, 8)],
        *[(forward, after(m, fail, back)) for m in (1, 3, 5)],
        *[(forward, after(m, lambda v: v[:2], back)) for m in (3, 5)],
    ],
)
def test_faulty_products_end_with_an_error_of_the_library(forward_product, back_product):
    problem = declared(Products(forward_product, back_product))
    with pytest.raises(sm.SparseModelError) as caught:
        problem.certify()
    assert "operator" in str(caught.value)


def overwriting(product):
    def multiply(v):
        out = product(v)
        v[...] = -7.0
        return out

    return multiply


def reusing(product, size):
    buffer = np.zeros(size)

    def multiply(v):
        buffer[:] = product(v)
        return buffer

    return multiply


@pytest.mark.parametrize(
    "operator",
    [
        Products(overwriting(forward), back),
        Products(forward, overwriting(back)),
        Products(reusing(forward, N), reusing(back, P)),
        Products(lambda x: (X @ x).tolist(), lambda r: (X.T @ r)[:, None]),
    ],
    ids=["overwrites x", "overwrites r", "reuses buffers", "lists and columns"],
)
def test_operators_with_habits_give_the_right_answer(operator):
    problem = declared(operator)
    assert problem.solve().value == pytest.approx(reference(), rel=1e-8)
    assert problem.certify().bound <= reference()


def test_the_comparison_costs_a_few_products_once():
    calls = [0]

    def counted(r):
        calls[0] += 1
        return X.T @ r

    design = sm.as_design(Products(forward, counted))
    design.rmatvec(Y)
    assert calls[0] == 4
    design.rmatvec(Y)
    assert calls[0] == 5
