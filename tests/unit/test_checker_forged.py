"""Files whose lines are of another kind, or state too much, are refused wherever that is."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.files.json_document import json_text, signed
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


def searched() -> sm.Problem:
    return graph()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[Any, tuple[Path, Path, sm.Problem]]:
    """Certificates with their data, made when they are asked for."""
    folder = tmp_path_factory.mktemp("certificates")
    np.savez(folder / "data.npz", A=A, b=B, t=TIMES, classes=np.digitize(B, [-0.7, 0.7]) * 1.0)

    class Made(dict):
        def __missing__(self, declared: Any) -> tuple[Path, Path, sm.Problem]:
            problem = declared()
            problem.solve()
            proved = declared in (tree, constrained, searched)
            certificate = problem.prove() if proved else problem.certify()
            path = certificate.save(folder / f"{declared.__name__}.json")
            self[declared] = path, folder / "data.npz", problem
            assert main([str(path), str(folder / "data.npz")]) == 0
            return self[declared]

    return Made()


def test_a_value_below_the_objective_is_refused(files, tmp_path, capsys) -> None:
    forged = tmp_path / "forged.json"
    for declared in (tree, cox, multinomial, constrained):
        path, data, _ = files[declared]
        body = json.loads(path.read_text(encoding="utf-8"))
        for below in ("-inf", body["value"] * 0.999, body["value"] * (1.0 - 1e-6)):
            forged.write_text(json_text(signed({**body, "value": below})), encoding="utf-8")
            assert main([str(forged), str(data)]) == 1
            assert "line 'value' says" in capsys.readouterr().out


def above(body: dict[str, Any]) -> dict[str, Any]:
    """Return a file that says that no point is as good as its own."""
    body["bound"] = body["upper"] + 1e-6 * abs(body["upper"])
    claim = {"claim": "globally optimal", "gap": 0.0}
    other = "nats_per_sample" if "nats_per_sample" in body else "relative_gap"
    return {**body, **claim, other: 0.0}


def places(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """Return where numbers, arrays and lists stand."""
    packed = isinstance(value, dict) and "shape" in value
    if packed or isinstance(value, list) or type(value) in (int, float):
        yield at
    if isinstance(value, (dict, list)) and not packed:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from places(inner, (*at, key))


def changed(value: Any, rng: np.random.Generator) -> Any:
    """Return something else of the same kind."""
    if isinstance(value, list):
        order = rng.permutation(len(value)).tolist()
        return [value[i] for i in order[rng.integers(2) :]] + value[: rng.integers(2)]
    if isinstance(value, dict):
        if "values" not in value:
            return {**value, "every": float(value["every"]) * 0.5}
        held = np.frombuffer(base64.b64decode(value["values"]), dtype="<f8")
        size = rng.choice([1e-6, 0.1, 1.0])
        new = held * (1.0 + size * rng.standard_normal(held.size))
        return {**value, "values": base64.b64encode(new.astype("<f8").tobytes()).decode()}
    if type(value) is int:
        return value + int(rng.choice([-1, 1]))
    return float(value * rng.choice([-1.0, 0.0, 0.5, 1.0 + 1e-6, 2.0, 1e6]))


@pytest.mark.parametrize("many", [6, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("declared", [tree, constrained, graph, searched])
def test_nothing_proves_a_bound_above_a_feasible_point(files, declared, many, tmp_path) -> None:
    """Whatever stands in the witness and in the tree of a search."""
    path, data, _ = files[declared]
    rng, text = np.random.default_rng(0), path.read_text(encoding="utf-8")
    forged, accepted = tmp_path / "forged.json", []
    for _ in range(many):
        body = above(json.loads(text))
        for _ in range(rng.integers(1, 3)):
            parts = [("witness",), ("proof", "tree")] if body.get("proof") else [("witness",)]
            part = body
            for key in (first := parts[rng.integers(len(parts))]):
                part = part[key]
            some = [at for at in places(part) if at and at[0] != "x"]
            at = some[rng.integers(len(some))]
            for key in at[:-1]:
                part = part[key]
            part[at[-1]] = changed(part[at[-1]], rng)
        forged.write_text(json_text(signed(body)), encoding="utf-8")
        if main([str(forged), str(data)]) == 0:
            accepted.append((first, at))
    assert not accepted


GRAPHS = [
    (graph, ("problem", "k"), 1, "more than k edges"),
    (graph, ("problem", "alpha"), 100.0, "eigenvalues of the matrix are outside"),
    (graph, ("problem", "beta"), 0.5, "eigenvalues of the matrix are outside"),
    (graph, ("witness", "modulus"), -0.1, "a modulus of the witness is negative"),
    (searched, ("proof", "tree", "nodes", 0, "duals", 1), [-0.1], "does not fit"),
    (searched, ("proof", "tree", "kind"), "steps", "no search over edges"),
    (searched, ("proof", "tree", "stages"), [{}], "no search over edges"),
]


@pytest.mark.parametrize(("declared", "at", "value", "words"), GRAPHS)
def test_what_a_graph_cannot_be_is_refused(
    files, declared, at, value, words, tmp_path, capsys
) -> None:
    path, data, _ = files[declared]
    body = json.loads(path.read_text(encoding="utf-8"))
    part: Any = body
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = value
    forged = tmp_path / "forged.json"
    forged.write_text(json_text(signed(body)), encoding="utf-8")
    assert main([str(forged), str(data)]) == 1
    assert words in capsys.readouterr().out


def test_a_graph_is_about_its_data_and_its_level_is_not_below_its_point(
    files, tmp_path, capsys
) -> None:
    path, data, _ = files[graph]
    moved = A.copy()
    moved[0, 0] += 1e-6
    np.savez(tmp_path / "moved.npz", A=moved)
    assert main([str(path), str(tmp_path / "moved.npz")]) == 2
    assert "about other data" in capsys.readouterr().out
    body = json.loads(path.read_text(encoding="utf-8"))
    forged, upper = tmp_path / "forged.json", body["upper"]
    for probes in (body["problem"]["probes"][:3], []):
        few = {**body["problem"], "probes": probes}
        forged.write_text(json_text(signed({**body, "problem": few})), encoding="utf-8")
        assert main([str(forged), str(data)]) == 2
    forged.write_text(json_text(signed({**body, "upper": body["value"] - 1e-6})), encoding="utf-8")
    assert main([str(forged), str(data)]) == 1
    # Matrices that are better than a level below that of the point may be any, or none.
    body["witness"]["level"] = upper - 0.3
    forged.write_text(json_text(signed(body)), encoding="utf-8")
    assert main([str(forged), str(data)]) == 0


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
        forged.write_text(json_text(signed(changed)), encoding="utf-8")
        if at[:2] != ("proof", "tree") and main([str(forged), str(data)]) == 0:
            passed.append(("checker", at, other))
        with contextlib.suppress(sm.CertificateError):
            verify(forged, problem.form)
            passed.append(("verify", at, other))
    assert not passed
