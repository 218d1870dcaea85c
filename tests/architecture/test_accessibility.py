"""Pages and reports pass axe's rules in a browser, light and dark, on screens and telephones.

Needs Chromium on the path, and ``pip install '.[docs]' axe-playwright-python``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
PAGES = (  # one of each kind
    "index",
    "tutorial",
    "faq",
    "search",
    "benchmarks/index",
    "explanation/index",
    "explanation/papers",
    "explanation/the-problem",
    "explanation/when-to-use-it",
    "how-to/index",
    "reference/index",
    "reference/generated/sparsemodel.Problem",
    "gallery/index",
    "gallery/survival",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx_gallery")
    folder = tmp_path_factory.mktemp("site")
    quick = ["-D", "plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", *quick, "docs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("reports")
    X = np.random.default_rng(0).standard_normal((60, 6)).cumsum(axis=1)
    w, c = sm.Variable(5, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(X[:, :5] @ w + c, X[:, 5]) + sm.ridge(w, 0.1))
    Omega = sm.Variable((6, 6), symmetric=True)
    graph = sm.minimize(sm.gaussian_nll(Omega, data=X))
    problems = {
        "model": sm.Problem(goal, sm.card(w) <= 2),
        "graph": sm.Problem(graph, sm.card(sm.offdiag(Omega)) <= 8),
    }
    for name, problem in problems.items():
        problem.solve()
        problem.certify().save(folder / f"{name}.html")
    return [folder / f"{name}.html" for name in problems]


def faults(browser: Any, path: Path, scheme: str, width: int) -> list[str]:
    """Return the rules that a page breaks, and whether it is wider than the screen."""
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 800}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(path.as_uri())
    found = [
        f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:120]}"
        for one in axe.Axe().run(page).response["violations"]
    ]
    root = "document.documentElement"
    beyond = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    context.close()
    return found + ([f"{beyond} pixels wider than the screen"] if beyond > 0 else [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_reports_can_be_read_by_everyone(
    browser: Any, reports: list[Path], scheme: str, width: int
) -> None:
    assert {path.name: faults(browser, path, scheme, width) for path in reports} == {
        path.name: [] for path in reports
    }


def test_reports_are_printed_inside_the_paper_with_nothing_folded(
    browser: Any, reports: list[Path]
) -> None:
    for path in reports:
        page = browser.new_page(viewport={"width": 680, "height": 1000})  # A4 less its margins
        page.emulate_media(media="print")
        page.goto(path.as_uri())
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
        heights = "[...document.querySelectorAll('details > table')].map(t => t.clientHeight)"
        assert min(page.evaluate(heights)) > 0
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_can_be_read_by_everyone(browser: Any, site: Path, scheme: str, width: int) -> None:
    broken = {page: faults(browser, site / f"{page}.html", scheme, width) for page in PAGES}
    assert broken == {page: [] for page in PAGES}
