"""Files from outside: damaged, lying, huge or hostile ones are errors, and nothing is executed."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.certificates import Certificate
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.cli import main


def certified() -> tuple[sm.Problem, dict]:
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((15, 4)), rng.standard_normal(15)
    w = sm.Variable(4, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.1)), sm.card(w) <= 2)
    return problem, problem.certify().to_dict()


PROBLEM, BODY = certified()
TEXT = json.dumps(BODY)
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["nan", "inf", "-inf", "../../x", "9" * 400, "AAAA", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


def paths(value: object, at: tuple = ()) -> list[tuple]:
    """Return the way to every entry of a document."""
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    for key, inner in items if isinstance(value, (dict, list)) else ():
        found += paths(inner, (*at, key)) if isinstance(inner, (dict, list)) else [(*at, key)]
    return found


def read(text: str) -> None:
    """A certificate that is read is verified: it holds, or it is refused."""
    try:
        certificate = Certificate.from_json(text)
        str(certificate)
    except sm.CertificateError:
        return
    from sparsemodel.certificates import verify

    try:
        verify(certificate, PROBLEM.form)
    except sm.CertificateError:
        return
    assert certificate.bound <= PROBLEM.certify().upper


@given(where=st.sampled_from(paths(BODY)), junk=JUNK, resigned=st.booleans())
def test_any_entry_replaced_by_anything(where, junk, resigned):
    body = json.loads(TEXT)
    inner = body
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = junk
    if resigned:  # the digest protects from accidents; a forger writes a new one
        try:
            body["digest"] = digest(body)
        except (ValueError, TypeError):
            return
    read(json.dumps(body))


@given(cut=st.integers(0, len(TEXT)), byte=st.integers(0, 255))
def test_truncated_and_flipped_text(cut, byte):
    read(TEXT[:cut])
    read(TEXT[:cut] + chr(byte) + TEXT[cut + 1 :])


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format":' * 5000, "9" * 100_000, "NaN", "\ufeff{}", "", "null"]
)
def test_documents_that_are_built_to_hurt(text):
    with pytest.raises(sm.CertificateError):
        Certificate.from_json(text)


def test_a_small_file_cannot_ask_for_much_memory():
    import tracemalloc

    body = json.loads(TEXT)
    body["witness"]["duals"] = [{"shape": [2**27], "positions": "", "values": ""}] * 1000
    body["digest"] = digest(body)
    text = json.dumps(body)
    tracemalloc.start()
    try:
        read(text)
        assert tracemalloc.get_traced_memory()[1] < 2**28
    finally:
        tracemalloc.stop()


class Bomb:
    """What unpickling would run."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def shell(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def test_pickles_are_not_opened(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    good = npy(np.random.default_rng(0).standard_normal((9, 3)))
    hostile = np.empty(1, dtype=object)
    hostile[0] = Bomb()
    for number, members in enumerate(
        (
            {"X": npy(hostile), "y": npy(np.ones(9))},
            {"X": good, "y": npy(hostile)},
            {"X": pickle.dumps(Bomb()), "y": npy(np.ones(9))},
            {"X": good, "y": npy(np.arange(9.0)), "names": npy(hostile)},
        )
    ):
        file = npz(tmp_path / f"{number}.npz", **members)
        assert shell("solve", file, "--k", 1) == 3
        assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "executed").exists()


def test_archives_that_unpack_to_more_than_they_weigh(tmp_path: Path, capsys):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    lying = npz(tmp_path / "lying.npz", X=header.getvalue() + b"\0" * 100, y=npy(np.ones(3)))
    assert shell("solve", lying, "--k", 1) == 3
    bomb = npz(tmp_path / "bomb.npz", X=npy(np.zeros((4000, 4000))), y=npy(np.ones(4000)))
    assert bomb.stat().st_size < 10**6
    assert shell("solve", bomb, "--k", 1, "--max-gigabytes", 0.05) == 3
    assert "--max-gigabytes" in capsys.readouterr().err


@given(data=st.data())
def test_damaged_archives_and_tables(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    rng = np.random.default_rng(0)
    kind = data.draw(st.sampled_from(["npz", "csv", "svm"]))
    if kind == "npz":
        content = npz(
            folder / "a.npz", X=npy(rng.standard_normal((6, 2))), y=npy(np.arange(6.0))
        ).read_bytes()
    elif kind == "csv":
        content = b"a,b,y\n" + b"\n".join(
            b"%d,%d,%d" % tuple(r) for r in rng.integers(9, size=(6, 3))
        )
    else:
        content = b"\n".join(b"1 1:%d 2:%d" % tuple(r) for r in rng.integers(9, size=(6, 2)))
    cut = data.draw(st.integers(0, len(content)))
    damage = data.draw(st.binary(max_size=6))
    file = folder / f"data.{kind}"
    file.write_bytes(content[:cut] + damage + content[cut + len(damage) :])
    target = ["--target", "y"] if kind == "csv" else []
    assert shell("explain", file, "--k", 1, *target) in (0, 2, 3, 4)


def test_outputs_are_never_overwritten_unasked(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = npz(tmp_path / "a.npz", X=npy(np.eye(5)), y=npy(np.arange(5.0)))
    report = tmp_path / "report.json"
    report.write_text("mine")
    before = file.read_bytes()
    assert shell("solve", file, "--k", 1, "--certificate", report) == 6
    assert report.read_text() == "mine"
    assert shell("solve", file, "--k", 1, "--certificate", tmp_path / "no" / "x.json") == 6
    assert shell("solve", file, "--k", 1, "--certificate", file) in (2, 6)
    assert file.read_bytes() == before
