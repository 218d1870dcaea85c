"""Damaged and hostile files end in a verdict, and what they say is shown as text."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.files.json_document import signed
from sparsemodel.checker.__main__ import main

RNG = np.random.default_rng(0)
A = RNG.standard_normal((20, 4))
B = A[:, 0] - A[:, 2] + 0.3 * RNG.standard_normal(20)


@pytest.fixture(scope="module")
def true(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("true")
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1))
    np.savez_compressed(folder / "data.npz", A=A, b=B)
    return sm.Problem(goal, sm.card(w) <= 2).prove().save(folder / "certificate.json")


def forged(true: Path, change: Any) -> Path:
    body = json.loads(true.read_text(encoding="utf-8"))
    change(body)
    path = true.parent / "forged.json"
    path.write_text(json.dumps(signed(body)), encoding="utf-8")
    return path


DAMAGED = [
    ("half.npz", lambda raw: raw[: len(raw) // 2]),
    ("flipped.npz", lambda raw: raw[:200] + bytes([raw[200] ^ 255]) + raw[201:]),
    ("empty.npz", lambda _: b""),
    ("empty.npy", lambda _: b""),
    ("empty.csv", lambda _: b""),
    ("header.csv", lambda _: b"a,b\n"),
    ("long.csv", lambda _: b"a,b\n1," + b"1" * 200_000 + b"\n"),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGED, ids=[name for name, _ in DAMAGED])
def test_damaged_data_are_not_checked(true: Path, name: str, damage: Any, tmp_path, capsys) -> None:
    """The certificate may hold, so the verdict is not that it does not."""
    data = tmp_path / name
    data.write_bytes(damage((true.parent / "data.npz").read_bytes()))
    assert main([str(true), str(data)]) == 2
    assert f"{name}: it " in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_pipes_and_devices_are_not_read(true: Path, tmp_path: Path, capsys) -> None:
    for name in ("data.npz", "data.csv", "data.json"):
        os.mkfifo(tmp_path / name)
        given = [true, tmp_path / name]
        assert main([str(p) for p in (given if name != "data.json" else given[::-1])]) == 2
        assert "is not a regular file" in capsys.readouterr().out


def test_what_a_file_says_is_shown_as_text(true: Path, capsys) -> None:
    """A name must not add lines to the report, or take some back."""
    data = str(true.parent / "data.npz")
    hidden = "none\n  k: 7\x1b[1A\ud800"
    assert main([str(forged(true, lambda b: b["problem"].update(region=hidden))), data]) == 1
    shown = capsys.readouterr().out
    assert r"region: none\n  k: 7\x1b[1A\ud800" in shown
    assert "says 'none" in shown
    assert main([str(forged(true, lambda b: b.update({"\ud800": 1}))), data]) == 1
    assert r"line '\ud800' does not belong" in capsys.readouterr().out


@pytest.mark.parametrize("said", ["", "1 linear constraint", "a norm ball", [["none"]]])
def test_constraints_are_named_where_there_are_any(true: Path, said: Any, capsys) -> None:
    path = forged(true, lambda b: b["problem"].update(region=said))
    assert main([str(path), str(true.parent / "data.npz")]) != 0


def test_large_arrays_of_a_file_take_no_memory(true: Path, capsys) -> None:
    import tracemalloc

    data, large = str(true.parent / "data.npz"), {"shape": [2**28], "every": 1.0}
    changes = [
        lambda b: b["problem"].update(more=[large] * 200),
        lambda b: b["witness"].update(duals=[large] * 200),
        lambda b: b["problem"]["numbers"]["terms"][0].update(offset=large),
        lambda b: b["problem"]["numbers"].update(free={"from": 0, "to": 2**31}),
    ]
    for change in changes:
        path = forged(true, change)
        tracemalloc.start()
        try:
            assert main([str(path), data]) == 1
            assert tracemalloc.get_traced_memory()[1] < 2**24
        finally:
            tracemalloc.stop()


def test_lines_that_lie_deep_are_malformed(true: Path, capsys) -> None:
    """As deep as the text can be read, and deeper than what looks at the lines can go."""
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]

    def change(body: dict[str, Any]) -> None:
        body.update(bound="-inf", gap="inf", relative_gap="inf", claim="stationary")
        body.update(bound_reason=deep)

    assert main([str(forged(true, change)), str(true.parent / "data.npz")]) == 1
    assert "RecursionError" in capsys.readouterr().out
