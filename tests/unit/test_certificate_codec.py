"""Dataclasses as JSON values: what is written is read, and what is no value of its type is not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from sparsemodel.certificates.files.codec import decode, encode
from sparsemodel.certificates.files.packing import MAX_BYTES, announced
from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.interfaces import CertificateError, FloatArray, IntArray


class Moment(NamedTuple):
    seconds: float
    phase: str


@dataclass
class Inner:
    LINES: ClassVar[tuple[str, ...]] = ("twice", "size")

    size: float

    @property
    def twice(self) -> float:
        return 2.0 * self.size


@dataclass
class Everything:
    claim: Claim
    count: int
    sure: bool
    word: str
    size: float
    inner: Inner
    several: tuple[Inner, ...]
    names: dict[int, str]
    moments: tuple[Moment, ...]
    array: FloatArray
    index: IntArray
    perhaps: FloatArray | None
    mixed: dict[str, str | int | float]
    free: Any
    absent: int | None = field(default=None)


def everything() -> Everything:
    return Everything(
        claim=Claim.WITHIN_GAP,
        count=3,
        sure=True,
        word="a",
        size=float("-inf"),
        inner=Inner(1.5),
        several=(Inner(1.0), Inner(float("nan"))),
        names={7: "x"},
        moments=(Moment(0.5, "bound"),),
        array=np.array([[0.0, -0.0], [np.inf, 1e-300]]),
        index=np.array([1, 2]),
        perhaps=None,
        mixed={"a": 1, "b": 0.5, "c": "text"},
        free={"tree": [1, None]},
    )


def test_what_is_written_is_read_bit_by_bit() -> None:
    one = everything()
    body = json.loads(json.dumps(encode(one), allow_nan=False))
    assert list(body["inner"]) == ["twice", "size"]
    again = decode(Everything, body, "it")
    assert json.dumps(encode(again)) == json.dumps(body)
    assert again.array.tobytes() == one.array.tobytes()
    assert again.names == one.names
    assert again.moments == one.moments
    assert again.index.dtype == np.int64
    del body["absent"]
    assert decode(Everything, body, "it").absent is None


@pytest.mark.parametrize(
    ("line", "value", "words"),
    [
        ("claim", "certain", r"'it.claim' says 'certain'; it must be one of 'none'"),
        ("claim", [], "'it.claim' says"),
        ("count", 3.0, "'it.count' must be a whole number"),
        ("count", True, "'it.count' must be a whole number"),
        ("sure", 1, "'it.sure' must be true or false"),
        ("word", None, "'it.word' must be a text"),
        ("size", "much", "'it.size' must be a number"),
        ("size", False, "'it.size' must be a number"),
        ("inner", [], "'it.inner' must be an object"),
        ("inner", {}, "'it.inner.size' is missing"),
        ("several", {}, "'it.several' must be a list"),
        ("several", [{"size": 1.0}, {"size": "x"}], r"'it.several\[1\].size' must be a number"),
        ("names", {"x": "a"}, "'it.names' has the entry 'x'"),
        ("names", {"1": 2}, "'it.names.1' must be a text"),
        ("moments", [[1.0]], r"'it.moments\[0\]' is not \[seconds, phase\]"),
        ("moments", [[1.0, 2.0]], r"'it.moments\[0\].phase' must be a text"),
        ("array", 1.0, "'it.array' must be an object"),
        ("array", {"shape": [-1], "values": ""}, "'it.array' is of an array"),
        ("array", {"shape": [2**40], "positions": "", "values": ""}, "'it.array' is of an array"),
        ("array", {"shape": [2], "values": "AAAA"}, "whole numbers of 8 bytes"),
        ("array", {"shape": [2], "values": "?"}, "'it.array.values' is not valid base64"),
        ("array", {"shape": [2], "values": "AAAAAAAAAAA="}, "holds 1 numbers"),
        ("index", [1, "2"], r"'it.index\[1\]' must be a whole number"),
        ("perhaps", 3, "'it.perhaps' must be an object"),
        ("mixed", {"a": []}, "'it.mixed.a' must be a text or a whole number or a number"),
        ("mixed", {"a": True}, "'it.mixed.a' must be"),
    ],
)
def test_what_is_no_value_of_its_type_is_refused_by_the_line(line, value, words) -> None:
    body = encode(everything())
    body[line] = value
    with pytest.raises(CertificateError, match=words):
        decode(Everything, body, "it")


def test_every_line_without_a_default_is_needed() -> None:
    body = encode(everything())
    for line in body:
        if line == "absent":
            continue
        with pytest.raises(CertificateError, match=f"'it.{line}' is missing"):
            decode(Everything, {k: v for k, v in body.items() if k != line}, "it")


def test_arrays_say_how_large_they_are_before_they_are_read() -> None:
    zeros = {"shape": [2**24, 2], "positions": "", "values": ""}
    assert announced({"x": zeros, "more": [zeros] * 3}) == 4 * 2**25
    with pytest.raises(CertificateError, match="no shape"):
        announced({"shape": [MAX_BYTES]})
