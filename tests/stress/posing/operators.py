"""Matrix-free operators that are not what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

import sparsemodel as sm
from tests.stress.courts.court import Court
from tests.stress.posing.structures import answers, data, pick, posed

FAULTS = (
    "none",
    "wrong adjoint",
    "slightly wrong adjoint",
    "NaN later",
    "wrong shape",
    "complex",
    "one buffer",
    "raises",
)


def faulty_operators(court: Court) -> None:
    """Pose a problem with an operator; its forward products define what is right."""
    rng = court.rng
    n, p = int(rng.integers(6, 30)), int(rng.integers(3, 9))
    a, y = data(court, n, p)
    fault = pick(court, FAULTS)
    calls, buffer = [0], np.zeros(n)

    def forward(x: Any) -> Any:
        calls[0] += 1
        out = a @ np.ravel(x)
        if fault == "NaN later" and calls[0] > 6:
            return np.full(n, np.nan)
        if fault == "wrong shape" and calls[0] > 3:
            return out[:-1]
        if fault == "raises" and calls[0] > 5:
            raise RuntimeError("the operator's own error")
        if fault == "one buffer":
            buffer[:] = out
            return buffer
        return out + 0j if fault == "complex" else out

    def backward(r: Any) -> Any:
        out = a.T @ np.ravel(r)
        if fault == "wrong adjoint":
            return 0.1 * out
        return out * (1.0 + 1e-3 * (np.arange(p) % 2)) if fault.startswith("slightly") else out

    operator = LinearOperator((n, p), matvec=forward, rmatvec=backward, dtype=np.float64)
    w = sm.Variable(p, name="w")
    lam = pick(court, (0.01, 1.0))
    design = court.ask("declare", lambda: sm.as_design(operator))
    if design is None:
        return
    problem = posed(
        court,
        lambda: sm.minimize(sm.squared_loss(design @ w, y) + sm.ridge(w, lam)),
        [sm.card(w) <= int(rng.integers(1, p + 1))],
    )
    if problem is None:
        return
    if fault in ("none", "wrong adjoint", "slightly wrong adjoint", "one buffer"):
        answers(court, problem)
        return
    found = court.ask("solve", problem.solve)
    if found is not None and not np.all(np.isfinite(np.asarray(w.value))):
        court.faults.append("wrong value: solve: entries that are not finite")
    certificate = None if found is None else court.ask("certify", problem.certify)
    if certificate is not None and not certificate.bound < np.inf:
        court.faults.append(f"invalid bound: certify: {certificate.bound!r}")
    if fault == "raises":  # the caller's own error is passed on as it is
        court.faults = [f for f in court.faults if "the operator's own error" not in f]
