"""How much code judges a certificate."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import CodeType, FrameType

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
def test_as_much_code_judges_as_the_guide_says(name: str, tmp_path) -> None:
    loss, target, ridge = CASES[name]
    w = sm.Variable(6, name="w")
    problem = sm.Problem(sm.minimize(loss(A @ w, target) + sm.ridge(w, ridge)), sm.card(w) <= 2)
    path = problem.prove().save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, b=target)
    folder, used = str(Path(checker.__file__).parent), set[CodeType]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        function = bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name[0] != "<"
        if event == "call" and function and code.co_filename.startswith(folder):
            used.add(code)

    sys.setprofile(note)
    try:
        status = main([str(path), str(tmp_path / "d.npz")])
    finally:
        sys.setprofile(None)
    assert status == 0
    lines = sum(len(inspect.getsourcelines(code)[0]) for code in used)
    assert 1200 <= lines <= 1500, lines  # As the guide says.
