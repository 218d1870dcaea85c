"""Files whose lines are of another kind, or state too much, are refused wherever that is."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.checker.__main__ import main

RNG = np.random.default_rng(3)
A = RNG.standard_normal((20, 6))
B = A[:, 0] - 2.0 * A[:, 3] + 0.7 * RNG.standard_normal(20)
TIMES = np.column_stack([RNG.integers(1, 9, 20), RNG.integers(0, 2, 20)]).astype(float)
WORDS = {"writer", "assumptions", "bound_method", "bound_reason", "allowance", "digest"}
WORDS |= {"method", "active", "samples"}


def tree() -> sm.Problem:
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, B) + sm.ridge(w, 1e-3))
    return sm.Problem(goal, sm.card(w) <= 3)


def constrained() -> sm.Problem:
    w = sm.Variable(6, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.05))
    return sm.Problem(goal, sm.card(w) <= 3, w.sum() == 1, w >= 0)


def cox() -> sm.Problem:
    w = sm.Variable(6, name="w")
    goal = sm.minimize(sm.cox_loss(A @ w, TIMES) + sm.ridge(w, 0.05))
    return sm.Problem(goal, sm.card(w) <= 2)


def multinomial() -> sm.Problem:
    W = sm.Variable((6, 3), name="W")
    goal = sm.minimize(sm.multinomial_loss(A @ W, np.digitize(B, [-0.7, 0.7])) + sm.ridge(W, 0.05))
    return sm.Problem(goal, sm.card(W, axis=1) <= 2)


def graph() -> sm.Problem:
    omega = sm.Variable((6, 6), symmetric=True, name="Omega")
    return sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=A)), sm.card(sm.offdiag(omega)) <= 4)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[Any, tuple[Path, Path, sm.Problem]]:
    """Certificates with their data, made when they are asked for."""
    folder = tmp_path_factory.mktemp("certificates")
    np.savez(folder / "data.npz", A=A, b=B, t=TIMES, classes=np.digitize(B, [-0.7, 0.7]) * 1.0)

    class Made(dict):
        def __missing__(self, declared: Any) -> tuple[Path, Path, sm.Problem]:
            problem = declared()
            problem.solve()
            certificate = problem.prove() if declared in (tree, constrained) else problem.certify()
            path = certificate.save(folder / f"{declared.__name__}.json")
            self[declared] = path, folder / "data.npz", problem
            assert main([str(path), str(folder / "data.npz")]) == 0
            return self[declared]

    return Made()


def signed(body: dict[str, Any]) -> str:
    """Return a forged certificate with a digest that fits."""
    body = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return json.dumps({**body, "digest": hashlib.sha256(text.encode()).hexdigest()})


def test_a_value_below_the_objective_is_refused(files, tmp_path, capsys) -> None:
    forged = tmp_path / "forged.json"
    for declared in (tree, cox, multinomial, constrained):
        path, data, _ = files[declared]
        body = json.loads(path.read_text(encoding="utf-8"))
        for below in ("-inf", body["value"] * 0.999, body["value"] * (1.0 - 1e-6)):
            forged.write_text(signed({**body, "value": below}), encoding="utf-8")
            assert main([str(forged), str(data)]) == 1
            assert "line 'value' says" in capsys.readouterr().out


def misshapen(value: Any, at: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Return what would be of another kind at the first place of each kind in a file."""
    if isinstance(value, dict):
        yield at, {**value, "other": 1}
        for key, inner in value.items():
            if at or key not in WORDS:
                yield from misshapen(inner, (*at, key))
    elif isinstance(value, list):
        yield at, {"0": value}
        for key, inner in list(enumerate(value))[:1]:
            yield from misshapen(inner, (*at, key))
    elif isinstance(value, bool):
        yield at, int(value)
    elif isinstance(value, (int, float)):
        yield at, str(value)
        if isinstance(value, int):
            yield at, value + 0.5


@pytest.mark.parametrize("declared", [tree, constrained, graph])
def test_what_is_of_another_kind_is_refused_wherever_it_stands(files, declared, tmp_path) -> None:
    path, data, problem = files[declared]
    body = json.loads(path.read_text(encoding="utf-8"))
    forged, passed = tmp_path / "forged.json", []
    for at, other in misshapen(body):
        seen = declared is constrained and at[:1] not in (("witness",), ("proof",))  # with the tree
        if not at or seen or {at[0], at[-1]} & WORDS:
            continue
        changed = json.loads(json.dumps(body))
        inner = changed
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = other
        forged.write_text(signed(changed), encoding="utf-8")
        if at[:2] != ("proof", "tree") and main([str(forged), str(data)]) == 0:
            passed.append(("checker", at, other))
        with contextlib.suppress(sm.CertificateError):
            verify(forged, problem.form)
            passed.append(("verify", at, other))
    assert not passed
