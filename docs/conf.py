"""Sphinx configuration. Build with ``sphinx-build -W -b html docs docs/_build/html``."""

from __future__ import annotations

import re
from typing import Any

import sparsemodel

project = "sparsemodel"
author = "The sparsemodel developers"
copyright = author  # noqa: A001  (the name Sphinx wants)
version = release = sparsemodel.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "**/README.md"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = f"sparsemodel {version}"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
}

# Complexities such as O(n |support|) read as code; reStructuredText would take the bars for a
# substitution.
_COMPLEXITY = re.compile(r"(?<![`\w])O\([^()]*\|[^()]*(?:\([^()]*\)[^()]*)*\)")


def _complexities_as_code(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = [line if ":math:" in line else _COMPLEXITY.sub(r"``\g<0>``", line) for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _complexities_as_code)
