"""Reports can be read by everybody: headings in order, alternative texts, colours with contrast."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from sparsemodel.documents.html import STYLE

PAGES = sorted(
    path
    for path in (Path(__file__).parents[1] / "golden" / "documents").glob("*.html")
    if not path.name.endswith(".panel.html")  # a notebook's page is its own
)
INKS = ("ink", "soft", "blue", "orange", "green", "red")


def colours(rules: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})\b", rules))


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2: sRGB made linear, weighted by what the eye sees."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


def test_contrasts_are_those_of_the_standard() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "wash"])
def test_text_stands_out(scheme: str, paper: str) -> None:
    light, dark = STYLE.split("@media screen and (prefers-color-scheme:dark)")
    palette = colours(light)
    if scheme == "dark":
        palette |= colours(dark.split("}}")[0])
    for ink in INKS:
        assert contrast(palette[ink], palette[paper]) >= 4.5, ink


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_structure(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert '<html lang="en">' in text
    assert 'name="viewport" content="width=device-width' in text
    assert re.search(r"<title>[^<]+</title>", text)
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for tag in re.findall(r"<svg[^>]*>", text):
        assert 'role="img"' in tag
        assert re.search(r'aria-label="[^"]+"', tag)
    assert all(re.search(r'alt="[^"]+"', tag) for tag in re.findall(r"<img[^>]*>", text))
    assert all("scope=" in tag for tag in re.findall(r"<th\b[^>]*>", text))
