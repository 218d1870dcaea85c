"""Certificates and proofs of one problem against each other, and copies that were changed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import sparsemodel as sm
from sparsemodel.certificates import Certificate, verify
from sparsemodel.certificates.statements.claims import Claim
from tests.referee import rule
from tests.stress.courts.court import Court
from tests.stress.posing.structures import (
    COUNTS,
    LABELLED,
    NUMERICAL,
    data,
    pick,
    posed,
)


def proofs(court: Court) -> None:
    """Compare the bounds of prove() and certify(), verify both and changed copies."""
    rng = court.rng
    n, p = int(rng.integers(6, 30)), int(rng.integers(3, 10))
    a, y = data(court, n, p)
    if rng.random() < 0.3:
        a = a * np.logspace(-4.0, 4.0, p)
    if rng.random() < 0.2:
        a[:, -1] = a[:, 0] * (1.0 + 1e-9 * rng.standard_normal(n))
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    loss = pick(court, (sm.squared_loss, sm.squared_loss, *NUMERICAL, *LABELLED, *COUNTS))
    if loss in LABELLED:
        y = np.where(y > 0.0, 1.0, -1.0)
    elif loss in COUNTS:
        y = 1.0 + np.floor(np.abs(y))
    u = a @ w + c if rng.random() < 0.5 else a @ w
    lam = pick(court, (0.1, 1e-3, 1e-8, 1e-34))
    problem = posed(
        court,
        lambda: sm.minimize(loss(u, y) + sm.ridge(w, lam)),
        [sm.card(w) <= int(rng.integers(1, p))],
    )
    if problem is None or court.ask("solve", problem.solve, problem) is None:
        return
    ask = court.ask
    certificate = ask("certify", lambda: problem.certify(time_limit=2.0), problem, time_limit=2.0)
    proof = ask("prove", lambda: problem.prove(time_limit=2.0), problem, time_limit=2.0)
    if certificate is not None and proof is not None and proof.bound < certificate.bound:
        by = certificate.bound - proof.bound
        if by > 4.0 * max(proof.allowance, certificate.allowance):
            court.faults.append(
                f"proof below certificate: {proof.bound!r}, certify() has {certificate.bound!r}"
            )
    for name, one in (("certify", certificate), ("prove", proof)):
        if one is not None:
            _verify_and_forge(court, problem, name, one)


def _verify_and_forge(court: Court, problem: sm.Problem, name: str, one: Certificate) -> None:
    copy = Certificate.from_json(one.to_json())
    said, names = str(one).lower(), problem.layout.names()
    try:
        verify(copy, problem.form, names=names)
        court.judged["verification"] += 1
    except sm.CertificateError as error:
        if "not in the file" not in str(error) or "for verify() [checked]" in said:
            court.faults.append(f"its own certificate does not verify: {name}: {error}")
    except Exception as error:  # noqa: BLE001 - what is being looked for
        court.faults.append(f"crash: verify: {type(error).__name__}: {error}")
    for what, forged in _forged(court, copy):
        try:
            verify(forged, problem.form, names=names)
        except sm.CertificateError:
            court.judged["forgery refused"] += 1
            continue
        except Exception as error:  # noqa: BLE001 - what is being looked for
            court.faults.append(f"crash: verify a forged {what}: {type(error).__name__}: {error}")
            continue
        # A point that was moved may be worth the same up to rounding; its upper end has to hold.
        moved = "the value says" if what == "point" else "-"
        if wrong := [f for f in rule(problem, forged).faults if not f.startswith(moved)]:
            court.faults.append(f"forgery accepted: {what}: {wrong[0]}")
        elif what in _NEVER:
            court.faults.append(f"forgery accepted: {what}")


_NEVER = ("names", "claim", "assumptions")
"""What may be changed in no way, even where the numbers are true.

The target is the writer's own word, and is compared with nothing.
"""


def _forged(court: Court, c: Certificate) -> list[tuple[str, Any]]:
    """Return copies with something changed, three of them at random."""
    x = c.x.copy()
    x[int(court.rng.integers(len(x)))] += 1.0
    gap = c.upper - c.bound
    higher = c.bound + 0.5 * gap if math.isfinite(gap) else c.value
    copies: list[tuple[str, Any]] = [
        ("bound", replace(c, bound=higher)),
        ("no bound", replace(c, bound=-math.inf, claim=Claim.OPTIMAL)),
        ("point", replace(c, x=x)),
        ("value", replace(c, value=c.value - abs(c.value) * 1e-3 - 1e-6)),
        ("upper", replace(c, upper=math.inf)),
        ("gap", replace(c, target=1e9, claim=Claim.WITHIN_GAP)),
        ("names", replace(c, names={j: f"forged {j}" for j in c.names})),
        ("null value", replace(c, null_value=c.null_value * 2.0 + 1.0)),
        ("violations", replace(c, violations=("none",))),
    ]
    if c.claim is not Claim.OPTIMAL:
        copies.append(("claim", replace(c, claim=Claim.OPTIMAL)))
    if not c.names:
        copies = [pair for pair in copies if pair[0] != "names"]
    chosen = court.rng.permutation(len(copies))[:3]
    return [copies[int(i)] for i in chosen]
