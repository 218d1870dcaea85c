"""The list of the code that has judged a certificate."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import checker
from sparsemodel.checker.__main__ import main

RNG = np.random.default_rng(3)
A = RNG.standard_normal((20, 6))
B = A[:, 0] - 2.0 * A[:, 3] + 0.7 * RNG.standard_normal(20)
CASES = {
    "squared": (sm.squared_loss, B, 0.1),
    "squared, no ridge": (sm.squared_loss, B, 0.0),
    "logistic": (sm.logistic_loss, np.sign(B), 0.1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_code_that_judged_is_listed(name: str, tmp_path, capsys) -> None:
    loss, target, ridge = CASES[name]
    w = sm.Variable(6, name="w")
    problem = sm.Problem(sm.minimize(loss(A @ w, target) + sm.ridge(w, ridge)), sm.card(w) <= 2)
    path = problem.prove().save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, b=target)
    assert main([str(path), str(tmp_path / "d.npz"), "--functions"]) == 0
    assert sys.getprofile() is None
    printed = capsys.readouterr().out.partition("\nran ")[2].splitlines()
    functions, lines = (int(word) for word in printed[0].split() if word.isdigit())
    assert len(printed) == functions + 1
    assert 1250 <= lines <= 1450  # As the guide says.
    for row in printed[1:]:
        place, count, _, called = row.split()
        file, _, first = place.partition(":")
        text = (Path(checker.__file__).parent / file).read_text("utf-8").splitlines()
        body = text[int(first) - 1 : int(first) - 1 + int(count)]
        assert any(f"def {called.rpartition('.')[2]}(" in line for line in body)
