"""Every option of a call takes good numbers, and refuses bad ones by its own name."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import check_options

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 5)), RNG.standard_normal(20)

BAD: dict[str, Any] = {
    "huge": 10**400,
    "minus huge": -(10**400),
    "huge fraction": Fraction(10**400),
    "longdouble": np.longdouble("1e4000"),
    "minus": -1,
    "nan": np.nan,
    "infinite": np.inf,
    "text": "3",
    "bytes": b"3",
    "truth": True,
    "complex": 3j,
    "list": [1],
    "array": np.array([1, 2]),
    "decimal": Decimal(1),
    "object": object(),
}


def problem(lam: Any = 0.1, k: Any = 2) -> sm.Problem:
    w = sm.Variable(5, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(X @ w, Y) + sm.ridge(w, lam)), sm.card(w) <= k)


def _custom(value: Any = None, gradient: Any = None, product: Any = None) -> Any:
    w = sm.Variable(5)
    loss = sm.custom_loss(
        (lambda u: u @ u) if value is None else lambda u: value,
        (lambda u: 2.0 * u) if gradient is None else lambda u: gradient,
        None if product is None else lambda u, v: product,
        of=w,
    )
    return sm.Problem(sm.minimize(loss), sm.card(w) <= 2, w.sum() == 1.0).solve()


WHOLE: dict[str, Callable[[Any], Any]] = {
    "seed": lambda v: problem().solve("ht_svrg", seed=v),
    "max_iter": lambda v: problem().solve(max_iter=v),
    "sweeps": lambda v: problem().path(range(3), sweeps=v),
    "resamples": lambda v: problem().path(range(3)).stability(resamples=v),
    "folds": lambda v: problem().path(range(3)).cross_validate(folds=v),
    "seed ": lambda v: problem().path(range(3)).cross_validate(seed=v),
    "every k": lambda v: problem().path([v]),
}
REAL: dict[str, Callable[[Any], Any]] = {
    "time_limit": lambda v: problem().solve(time_limit=v),
    "time_limit ": lambda v: problem().plan(time_limit=v),
    "time_limit  ": lambda v: problem().certify(time_limit=v),
    "time_limit   ": lambda v: problem().prove(time_limit=v),
    "gap": lambda v: problem().prove(gap=v, time_limit=1.0),
    "delta": lambda v: sm.huber_loss(X @ sm.Variable(5), Y, delta=v),
}


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("option", [*WHOLE, *REAL])
def test_bad_numbers_are_refused_by_the_name_of_the_option(option: str, value: str) -> None:
    call = {**WHOLE, **REAL}[option]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(sm.SparseModelError) as caught:
            call(BAD[value])
    message = str(caught.value)
    assert option.strip() in message.lower()
    assert len(message) < 300


@pytest.mark.parametrize("value", [1.5, Fraction(3, 2)])
@pytest.mark.parametrize("option", WHOLE)
def test_numbers_that_are_not_whole_are_refused(option: str, value: Any) -> None:
    with pytest.raises(sm.SparseModelError, match="whole number"):
        WHOLE[option](value)


def test_whole_numbers_of_every_kind_are_taken() -> None:
    for seed in (3, 3.0, np.int8(3), np.array(3), Fraction(3)):
        assert problem().solve("ht_svrg", seed=seed).value == pytest.approx(
            problem().solve("ht_svrg", seed=3).value, rel=1e-12
        )


@pytest.mark.parametrize("value", sorted(set(BAD) - {"truth", "array"}))
def test_cardinalities_ridges_and_bounds_never_fail_otherwise(value: str) -> None:
    w, bad = sm.Variable(5), BAD[value]
    calls: list[Callable[[], Any]] = [
        lambda: problem(k=bad).solve(),
        lambda: problem(lam=bad).solve(),
        lambda: sm.Problem(
            sm.minimize(sm.squared_loss(X @ w, Y)), sm.card(w) <= 2, w <= bad
        ).solve(),
        lambda: sm.as_design([[bad] * 2] * 2),
        lambda: _custom(value=bad),
        lambda: _custom(gradient=bad),
        lambda: _custom(product=bad),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                call()
            except sm.SparseModelError as error:
                assert len(str(error)) < 500  # noqa: PT017  (what else comes is an error)


@pytest.mark.parametrize("limit", [np.inf, np.float64(np.inf)])
def test_an_infinite_time_limit_is_answered_by_how_to_have_none(limit: float) -> None:
    with pytest.raises(sm.ModelError, match="Leave it out where there is none"):
        problem().solve(time_limit=limit)


def test_a_callback_is_a_function() -> None:
    with pytest.raises(sm.DataTypeError, match="callback must be a function"):
        problem().solve(callback=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "returned",
    ["3", 1j, np.array([1j] * 5), object()],
    ids=["text", "complex", "complex array", "object"],
)
def test_what_custom_functions_return_is_checked(returned: Any) -> None:
    for part in ("value", "gradient", "product"):
        with pytest.raises(sm.DataTypeError, match="must be real numbers"):
            _custom(**{part: returned})
    with pytest.raises(sm.DataError, match="Hessian product must have the shape"):
        _custom(product=np.ones(3))


def test_names_that_cannot_be_written_are_refused() -> None:
    lone = "a\ud800"
    w = sm.Variable(2)
    for declare in (
        lambda: sm.Variable(1, name=lone),
        lambda: sm.Variable(1, names=[lone]),
        lambda: sm.custom_loss(lambda u: u @ u, lambda u: 2 * u, of=w, name=lone),
        lambda: sm.logistic_loss(w, np.array([lone, "b"])),
    ):
        with pytest.raises(sm.SparseModelError) as caught:
            declare()
        str(caught.value).encode()
    with pytest.raises(sm.CertificateError, match="cannot be the name of a file"):
        sm.certificates.Certificate.load(lone)


def test_what_to_write_is_said_of_ridges_arguments_and_intercepts_without_an_end() -> None:
    w, c = sm.Variable(2, name="w"), sm.Variable(name="c")
    a = np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(sm.ModelError, match=r"0\.5 \* lam \* sm\.norm\(w - w0\)\*\*2"):
        sm.ridge(w - 1.0, 0.1)
    with pytest.raises(sm.DataTypeError, match="theta=1 / dispersion"):
        sm.negative_binomial_loss(a @ w, np.ones(6), dispersion=2.0)  # type: ignore[call-arg]
    goal = sm.minimize(sm.logistic_loss(a @ w + c, np.ones(6)) + sm.ridge(w, 0.1))
    with pytest.raises(sm.SeparableDataError, match="an intercept"):
        sm.Problem(goal, sm.card(w) <= 1).solve()


@pytest.mark.parametrize(
    ("words", "fits", "wrong"),
    [
        ("positive", [1e-9, 3], [0.0, -1, float("nan"), None, "1"]),
        ("at least 1 or None", [1, 1.5, None], [0, 0.999, "None"]),
        ("in (0, 1]", [0.5, 1], [0, 1.001, float("nan")]),
        ("in [0, 1)", [0, 0.999], [-1e-9, 1]),
        ("positive or 'unit'", [2, "unit"], ["other", 0, None]),
    ],
)
def test_options_are_what_the_words_say(words: str, fits: list, wrong: list) -> None:
    for value in fits:
        check_options(SimpleNamespace(step=value), step=words)
    for value in wrong:
        with pytest.raises(sm.ModelError, match="step must be"):
            check_options(SimpleNamespace(step=value), step=words)


@pytest.mark.parametrize("name", [backend.name for backend in sm.available_backends()])
def test_every_backend_refuses_iterations_and_tolerances_below_zero(name: str) -> None:
    kind = getattr(sm.backends, name)
    options = {f.name for f in dataclasses.fields(kind)} & {"max_iter", "tol"}
    for option in options:
        for value in (-1, float("nan")):
            with pytest.raises(sm.ModelError, match=f"^{option} must be"):
                kind(**{option: value})
