"""What certificates write, line for line: files of every kind, and the reports made from them.

The pinned files in ``documents/`` are certificates as they were saved. Reading and writing one
gives back the same bytes, whatever the platform, and so does every report on it. Run this file as
a script to write the reports again, with ``--certificates`` the certificates as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, PrecisionCertificate, verify
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.documents.document import (
    Bar,
    Bars,
    Chart,
    Check,
    Checklist,
    Document,
    Facts,
    Gauge,
    Items,
    Paragraph,
    Section,
    Series,
    Table,
)
from sparsemodel.documents.html import STYLE, as_html
from sparsemodel.documents.markdown import as_markdown
from sparsemodel.documents.notebook import as_notebook
from sparsemodel.documents.text import as_text

PINNED = Path(__file__).parent / "documents"


def whole_numbers(n: int, p: int) -> np.ndarray:
    """Return data that are the same on every machine."""
    i, j = np.ogrid[:n, :p]
    return ((7 * i * i + 11 * i * j + 5 * j * j * j + 3 * i) % 13 - 6).astype(float)


A = whole_numbers(14, 6)
Y = A[:, 0] - 2.0 * A[:, 3] + ((np.arange(14) * 5) % 7 - 3)
SIGNS = np.where(Y > 0.0, 1.0, -1.0)


def ridge() -> sm.Problem:
    w = sm.Variable(6, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, Y) + sm.ridge(w, 0.5)), sm.card(w) <= 2)


def logistic() -> sm.Problem:
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.logistic_loss(A @ w + c, SIGNS) + sm.ridge(w, 0.01))
    return sm.Problem(goal, sm.card(w) <= 2)


def several() -> sm.Problem:
    """Return two terms, a price, bounds, an intercept, and names that need escaping."""
    names = ["<b>age</b>", "a|b", "*c*", "d_e", "x & y", "`f`"]
    w, c = sm.Variable(6, name="w", names=names), sm.Variable(name="c")
    losses = sm.huber_loss(A @ w + c, Y, delta=2.0) + 0.5 * sm.squared_loss(A[:7] @ w, Y[:7])
    goal = sm.minimize(losses + sm.ridge(w, 0.2) + 0.05 * sm.card(w))
    return sm.Problem(goal, [sm.card(w) <= 3, w <= 2.0, w >= -1.5])


def groups() -> sm.Problem:
    w = sm.Variable(6, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, Y) + sm.ridge(w, 0.05))
    return sm.Problem(goal, sm.card(w, groups=[0, 0, 1, 1, 2, 2]) <= 1)


def classes() -> sm.Problem:
    w = sm.Variable((6, 3), name="w")
    goal = sm.minimize(sm.multinomial_loss(A @ w, np.arange(14) % 3) + sm.ridge(w, 0.1))
    return sm.Problem(goal, sm.card(w, axis=1) <= 2)


def without_ridge() -> sm.Problem:
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w + c, Y)), sm.card(w) <= 2)


def weak_ridge() -> sm.Problem:
    w = sm.Variable(6, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, Y) + sm.ridge(w, 0.01)), sm.card(w) <= 2)


def graph() -> sm.Problem:
    omega = sm.Variable((4, 4), symmetric=True, name="Omega", names=["a", "<b>", "c|d", "e"])
    goal = sm.minimize(sm.gaussian_nll(omega, data=whole_numbers(20, 4)))
    return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 4)


def bounded_graph() -> sm.Problem:
    omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    goal = sm.minimize(2.0 * sm.gaussian_nll(omega, data=whole_numbers(20, 4)))
    return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 4, omega << 0.1)


PROBLEMS: dict[str, Callable[[], sm.Problem]] = {
    "ridge": ridge,
    "logistic": logistic,
    "several": several,
    "groups": groups,
    "classes": classes,
    "without_ridge": without_ridge,
    "proof": weak_ridge,
    "proof_logistic": logistic,
    "graph": graph,
    "bounded_graph": bounded_graph,
}


AT_THE_ROOT = ("ridge", "without_ridge")
"""Problems whose pinned certificate rests on a bound without branching."""


def certified(name: str) -> Any:
    problem = PROBLEMS[name]()
    return problem.prove() if name.startswith("proof") else problem.certify()


def pinned(name: str) -> Any:
    path = PINNED / f"{name}.json"
    return (PrecisionCertificate if "graph" in name else Certificate).load(path)


def reports(certificate: Any, folder: Path) -> dict[str, str]:
    """Return every report by its ending; the style sheet is left out."""
    found = {}
    for ending in ("txt", "md", "html"):
        path = certificate.save(folder / f"report.{ending}")
        found[ending] = path.read_text(encoding="utf-8").replace(STYLE, "")
    return found | {"panel.html": certificate._repr_html_() + "\n"}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_read_is_written_byte_for_byte(name: str, tmp_path: Path) -> None:
    again = pinned(name).save(tmp_path / "again.json")
    assert again.read_bytes() == (PINNED / f"{name}.json").read_bytes()


def test_a_file_that_was_written_without_the_numbers_is_read(tmp_path: Path) -> None:
    path = PINNED / "ridge_without_numbers.json"
    again = Certificate.load(path).save(tmp_path / "again.json")
    assert again.read_bytes() == path.read_bytes()
    assert verify(path, ridge().form).claim.value == "globally optimal"


def test_a_bound_of_a_graph_without_a_modulus_of_its_own_is_verified() -> None:
    path = PINNED / "graph_without_modulus.json"
    old = PrecisionCertificate.load(path)
    assert old.witness.modulus is None
    assert verify(path, PROBLEMS["graph"]().form).claim is old.claim
    assert old.bound < PrecisionCertificate.load(PINNED / "graph.json").bound


@pytest.mark.parametrize("name", PROBLEMS)
def test_reports_say_what_they_said(name: str, tmp_path: Path) -> None:
    for ending, text in reports(pinned(name), tmp_path).items():
        assert text == (PINNED / f"{name}.{ending}").read_text(encoding="utf-8"), ending


def everything() -> Document:
    """Return a document with every kind of block, words that need escaping, and long lines."""
    hostile = "<b>age</b> | `x` *y* \x1b[31m"
    return Document(
        kind="Thing",
        title=f"a thing of {hostile}",
        headline="It is " + "very " * 30 + "long, solve('a | b', max_iter=3) included.",
        subject=f"minimise {hostile}",
        mark="fair",
        sections=(
            Section(
                "Open",
                (
                    Gauge(
                        0.25, "a quarter", (("low", "1"), ("at", "2"), ("high", "5")), "A <gap>."
                    ),
                    Facts(
                        [("a", "1"), (hostile, hostile), ("a name of more than 24 letters", "2")]
                    ),
                    Facts([]),
                ),
                folded=False,
            ),
            Section("Empty", (Items(()), Bars([]), Table(("a",), []))),
            Section(
                "Folded",
                (
                    Items(("one", hostile)),
                    Table(("level", hostile), [("1", hostile), ("22", "b")]),
                    Bars(
                        [
                            *(Bar(f"x{i}", 40.0 - i, f"{40 - i}") for i in range(35)),
                            Bar(hostile, -1.0, "-1"),
                            Bar("c", 9.0, "9", False, "always in"),
                        ]
                    ),
                    Bars([], empty="There are <none>."),
                    Checklist(
                        (Check(hostile, "checked", "yes"), Check("b", "taken on trust", "trust"))
                    ),
                    Paragraph("Run `a` & type verify(<x>, 1) then.", ("verify(<x>, 1)",)),
                    Chart(
                        (Series("s", (0.0, 1.0, 2.0), (1.0, 10.0, 3.0), "value"),),
                        *("a <chart>", "x", "y", "Its <caption>."),
                    ),
                ),
            ),
        ),
    )


def rendered(document: Document) -> dict[str, str]:
    """Return a document by the ending of its files; the style sheet is left out."""
    return {
        "txt": as_text(document, 100) + "\n",
        "md": as_markdown(document),
        "html": as_html(document).replace(STYLE, ""),
        "panel.html": as_notebook(document) + "\n",
    }


def test_every_block_in_every_renderer() -> None:
    for ending, text in rendered(everything()).items():
        assert text == (PINNED / f"everything.{ending}").read_text(encoding="utf-8"), ending
        assert "\x1b" not in text or "html" in ending
        assert "<b>age" not in text or ending == "txt"
        assert "Empty" not in text


def lines(value: Any, at: str = "") -> dict[str, Any]:
    """Return what is in a document by the way to it; packed arrays and trees as one entry."""
    if isinstance(value, dict) and value and at != ".proof.tree" and "shape" not in value:
        return {k: v for key, item in value.items() for k, v in lines(item, f"{at}.{key}").items()}
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return {k: v for i, item in enumerate(value) for k, v in lines(item, f"{at}[{i}]").items()}
    return {at: value}


def of_the_run(line: str) -> bool:
    """Return whether a line differs from run to run."""
    return line.startswith((".writer", ".digest", ".proof", ".witness"))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_new_certificate_has_the_lines_of_the_pinned_one(
    name: str, request: pytest.FixtureRequest
) -> None:
    if name in AT_THE_ROOT:
        request.getfixturevalue("at_the_root")
    body = json.loads((PINNED / f"{name}.json").read_text(encoding="utf-8"))
    assert verify(PINNED / f"{name}.json", PROBLEMS[name]().form).claim.value == body["claim"]
    new = certified(name).to_dict()
    assert new["digest"] == digest(new)
    one, two = lines(new), lines(body)
    kept = [line for line in two if ".progress" not in line and ".search" not in line]
    assert [line for line in one if ".progress" not in line and ".search" not in line] == kept
    size = 1e-6 * abs(body["null_value"])
    for line in kept:
        if of_the_run(line):
            continue
        if isinstance(two[line], float) and "allowance" not in line and "gap" not in line:
            assert one[line] == pytest.approx(two[line], rel=1e-3, abs=size), line
        else:
            assert type(one[line]) is type(two[line]), line
    assert list(new) == list(body)
    assert list(new["witness"]) == list(body["witness"])


def write(anew: bool) -> None:
    """Write the reports, and with ``anew`` the certificates."""
    import tempfile

    for ending, text in rendered(everything()).items():
        (PINNED / f"everything.{ending}").write_text(text, encoding="utf-8", newline="\n")
    for name in PROBLEMS:
        if anew:
            certified(name).save(PINNED / f"{name}.json")
        with tempfile.TemporaryDirectory() as folder:
            for ending, text in reports(pinned(name), Path(folder)).items():
                (PINNED / f"{name}.{ending}").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write("--certificates" in sys.argv)
