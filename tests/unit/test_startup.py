"""What a first solve loads: neither SciPy nor Numba, nor the engines of proofs."""

from __future__ import annotations

import subprocess
import sys

SOLVE = """
import sys
import numpy as np, sparsemodel as sm
w, b = sm.Variable(4), sm.Variable()
goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, [3.0, 0.1, -2.0, 0.0]) + sm.ridge(w, 0.1))
assert sm.Problem(goal, sm.card(w) <= 2).solve().support.tolist() == [0, 2]
assert "numpy.ma" not in sys.modules
A = np.vstack([np.eye(4), -np.eye(4)])
for loss in (sm.logistic_loss, sm.poisson_loss):
    goal = sm.minimize(loss(A @ w + b, [1.0, 0, 1, 0, 0, 0, 1, 0]) + sm.ridge(w, 0.1))
    assert 0 in sm.Problem(goal, sm.card(w) <= 2).solve().support
slow = ("scipy", "numba", "cvxpy", "sklearn", "matplotlib", "networkx", "pandas")
slow += ("sparsemodel.certificates.proving", "sparsemodel.certificates.verify")
print(*sorted(name for name in slow if name in sys.modules))
"""


def test_a_first_solve_loads_nothing_that_is_slow_to_load() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SOLVE], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == []
