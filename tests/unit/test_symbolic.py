"""Parts of a model are no numbers and no sequences, and say what to write instead."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm

A = np.arange(12.0).reshape(4, 3)

PARTS: dict[str, Callable[[], Any]] = {
    "variable": lambda: sm.Variable(3, name="w"),
    "slice": lambda: sm.Variable(3, name="w")[:2],
    "affine": lambda: A @ sm.Variable(3, name="w"),
    "loss": lambda: sm.squared_loss(A @ sm.Variable(3, name="w"), np.ones(4)),
    "ridge": lambda: sm.ridge(sm.Variable(3, name="w"), 0.1),
    "card": lambda: sm.card(sm.Variable(3, name="w")),
    "norm": lambda: sm.norm(sm.Variable(3, name="w")),
    "log_det": lambda: sm.log_det(sm.Variable((3, 3), symmetric=True, name="Omega")),
    "parameter": lambda: sm.Parameter(name="k"),
    "formula": lambda: 2 * sm.Parameter(name="k"),
}

READS: list[Callable[[Any], Any]] = [
    float,
    int,
    complex,
    round,
    len,
    list,
    min,
    max,
    sum,
    sorted,
    math.log,
    np.exp,
    np.add.reduce,
    np.asarray,
    lambda part: np.maximum(part, 0.0),
    lambda part: np.add(part, 1.0, out=np.zeros(3)),
    lambda part: f"{part:.3f}",
]


@pytest.mark.parametrize("make", PARTS.values(), ids=PARTS)
def test_nothing_reads_a_number_off_a_part_of_a_model(make: Callable[[], Any]) -> None:
    part = make()
    for read in READS:
        with pytest.raises(sm.DataTypeError, match=r"no numerical value|not (a sequence|iterable)"):
            read(part)
    with pytest.raises(sm.ModelError, match="neither true nor false"):
        bool(part)
    assert f"{part}" == str(part)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (np.exp, "poisson_loss"),
        (np.square, "squared_loss"),
        (np.sqrt, r"norm\(w\) <= r"),
        (np.log, "logistic_loss"),
        (lambda w: np.maximum(w, 0.0), "hinge_loss"),
        (np.abs, "absolute_loss"),
        (min, "w >= 0"),
        (len, r"w\.shape"),
        (float, r"in its \.value"),
        (lambda w: 1.0 / w, "not affine"),
        (lambda w: np.ones(3) / w, "not affine"),
        (lambda w: operator.setitem(w, 0, 1.0), r"w\[0\] == 1"),
    ],
)
def test_what_to_write_instead(read: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(sm.SparseModelError, match=words):
        read(sm.Variable(3, name="w"))


NUMBERS = [np.float64(2.0), np.float32(2.0), np.int64(2), np.array(2.0)]
OPERATORS = [
    lambda part, number: number * part,
    lambda part, number: part * number,
    lambda part, number: part / number,
    lambda part, number: np.multiply(number, part),
    lambda part, number: np.multiply(part, number),
]


@pytest.mark.parametrize("kind", ["variable", "affine", "loss", "ridge", "card", "parameter"])
def test_numpy_leaves_operators_to_the_parts(kind: str) -> None:
    for operate in OPERATORS:
        if kind == "card" and operate is OPERATORS[2]:
            continue
        wanted = repr(operate(PARTS[kind](), 2.0))
        for number in NUMBERS:
            assert repr(operate(PARTS[kind](), number)) == wanted


def test_arrays_on_either_side() -> None:
    w = sm.Variable(3, name="w")
    assert repr(np.matmul(A, w)) == repr(A @ w)
    assert repr(np.add(np.ones(3), w)) == repr(w + np.ones(3))
    assert repr(np.less_equal(np.zeros(3), w)) == repr(w >= np.zeros(3))
    assert repr(np.greater_equal(w, np.zeros(3))) == repr(w >= np.zeros(3))
    assert repr(np.negative(w)) == repr(-w)
    before = A.copy()
    with pytest.raises(sm.DataTypeError):
        operator.iadd(before, w)
    assert np.array_equal(before, A)


def test_a_masked_array_beside_a_part_is_refused() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])
    for make in PARTS.values():
        with pytest.raises((sm.DataTypeError, sm.ModelError)):
            masked + make()
