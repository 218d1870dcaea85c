"""What notebooks show: well-formed, escaped, with the numbers that matter."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.documents.document import Bar, Bars, Document, Facts, Section
from sparsemodel.documents.notebook import as_notebook

VOID = {"br", "hr", "img", "meta"}


class Text(HTMLParser):
    """Collects the text, and insists on tags that are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def shown(thing: Any) -> str:
    page = Text(thing._repr_html_())
    assert not page.tags & {"script", "style", "link", "img"}
    return " ".join(page.text.split())


@pytest.fixture(scope="module")
def problem() -> sm.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 8))
    names = ["<b>bold</b>", "a & b", *"cdefgh"]
    w, c = sm.Variable(8, name="w", names=names), sm.Variable(name="intercept")
    y = 2.0 * A[:, 0] - A[:, 1] + 0.1 * rng.standard_normal(40)
    return sm.Problem(
        sm.minimize(sm.squared_loss(A @ w + c, y) + sm.ridge(w, 0.1)), [sm.card(w) <= 2, w <= 9.0]
    )


def test_a_problem_and_its_plan(problem: sm.Problem) -> None:
    text = shown(problem)
    assert "card(w) <= 2" in text
    assert "8 unknowns" in text
    plan = problem.plan()
    text = shown(plan)
    assert all(stage.label in text for stage in plan.stages)
    assert all(rejection.backend in text for rejection in plan.rejected)


def test_a_solution_and_its_certificate(problem: sm.Problem) -> None:
    solution = problem.solve()
    text = shown(solution)
    assert "<b>bold</b>" in text, "names are escaped, so that they are read as written"
    assert f"{solution.value:.8g}" in text
    certificate = problem.certify()
    text = shown(certificate)
    assert certificate.claim.value.capitalize() in text
    assert "a & b" in text
    assert all(a.text in text for a in certificate.assumptions)


def test_a_path(problem: sm.Problem) -> None:
    w = sm.Variable(4)
    goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, [1.0, 2.0, 3.0, 4.0]))
    text = shown(sm.Problem(goal, sm.card(w) <= 1).path(range(3)))
    assert "3 models, k = 0 to 2" in text


def test_several_classes(problem: sm.Problem) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 5))
    w = sm.Variable((5, 3), name="w")
    goal = sm.minimize(sm.multinomial_loss(A @ w, np.arange(30) % 3) + sm.ridge(w, 0.1))
    three = sm.Problem(goal, sm.card(w, axis=1) <= 2)
    solution = three.solve()
    text = shown(solution)
    assert all(f"w[{j}]" in text for j in solution.support)
    assert "w[" in shown(three.certify())


def panel(*blocks: Any) -> Text:
    return Text(as_notebook(Document("Thing", "a thing", (Section("", blocks, folded=False),))))


def test_nothing_to_show_is_nothing() -> None:
    assert "table" not in panel(Facts([]), Bars([])).tags
    folded = as_notebook(Document("Thing", "a thing", (Section("title", (Facts([]),)),)))
    assert "title" not in Text(folded).text
    many = Bars([Bar(f"b{i}", 1.0, "1") for i in range(33)])
    assert "and 3 more" in panel(many).text
    assert "zero" in panel(Bars([Bar("zero", 0.0, "0")])).text
