"""Draw the packages of sparsemodel from its imports: ``python docs/_scripts/draw_packages.py``.

Writes ``docs/pictures/packages.svg``. Layers are those that ``lint-imports`` enforces; an arrow
says that a package imports another one, and the wider it is, the more files do.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "packages.svg"
WIDTH, ROW, BOX, TALL = 960, 92, 170, 44
LEFT_OUT = {"_version", "__main__", "testing", "documents", "backends"}
"""What everybody uses, and what nobody does at run time."""


def layers() -> list[list[str]]:
    """Return the packages by layer, the top first; backends stand above the kernels they use."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    rows = [
        [name.strip(" ()") for name in re.split("[:|]", row) if name.strip(" ()") not in LEFT_OUT]
        for row in contract["layers"]
    ]
    rows = [row for row in rows if row]
    above = next(i for i, row in enumerate(rows) if "numerics" in row)
    rows[above - 1] = ["sparsemodel_backends", *rows[above - 1]]
    return rows


def package_of(module: str) -> str | None:
    """Return the package of a dotted name, None for a module in none."""
    parts = module.split(".")
    if parts[0] == "sparsemodel_backends":
        return parts[0]
    if parts[0] != "sparsemodel" or len(parts) < 2 or parts[1] in LEFT_OUT:
        return None
    return parts[1]


def imports() -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Return how many files of a package import another one, and the lines of each."""
    arrows: Counter[tuple[str, str]] = Counter()
    lines: Counter[str] = Counter()
    for base in (ROOT / "sparsemodel", ROOT / "backends" / "sparsemodel_backends"):
        for path in sorted(base.rglob("*.py")):
            name = ".".join(path.relative_to(base.parent).with_suffix("").parts)
            package = package_of(name.removesuffix(".__init__"))
            if package is None:
                continue
            text = path.read_text(encoding="utf-8")
            lines[package] += len(text.splitlines())
            named = set()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    named.add(package_of(node.module))
                elif isinstance(node, ast.Import):
                    named |= {package_of(alias.name) for alias in node.names}
            arrows.update((package, other) for other in named if other not in (None, package))
    return arrows, lines


def drawing() -> str:
    """Return the picture as SVG text."""
    arrows, lines = imports()
    rows = layers()
    place: dict[str, tuple[float, float]] = {}
    for i, row in enumerate(rows):
        for j, package in enumerate(row):
            place[package] = (WIDTH * (j + 1) / (len(row) + 1), 40.0 + ROW * i)
    height = ROW * len(rows) + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="the packages, each importing only those below it" '
        'font-family="system-ui,sans-serif" font-size="13" fill="currentColor">'
    )
    out = [head]
    for (one, other), files in sorted(arrows.items()):
        if one in place and other in place:
            (x, y), (u, v) = place[one], place[other]
            out.append(
                f'<path d="M{x:.0f} {y + TALL / 2:.0f} C{x:.0f} {y + ROW * 0.7:.0f} {u:.0f} '
                f'{v - ROW * 0.7:.0f} {u:.0f} {v - TALL / 2:.0f}" fill="none" stroke="#3b7fd0" '
                f'stroke-opacity=".35" stroke-width="{min(6.0, 0.8 + 0.25 * files):.1f}"/>'
            )
    for package, (x, y) in place.items():
        out.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - TALL / 2:.0f}" width="{BOX}" height="{TALL}" '
            'rx="6" fill="#f4f6fa" stroke="#7a8699"/>'
            f'<text x="{x:.0f}" y="{y - 2:.0f}" text-anchor="middle" font-weight="600" '
            f'fill="#1d2733">{escape(package)}</text>'
            f'<text x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle" font-size="11" '
            f'fill="#4a5666">{round(lines[package], -2):,} lines</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
