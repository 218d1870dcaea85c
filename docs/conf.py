"""Sphinx configuration. Build with ``sphinx-build -W -b html docs docs/_build/html``."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from cycler import cycler
from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import sparsemodel
from sparsemodel.reporting.plots.plot_style import BLUE, GREEN, GREY, ORANGE, pyplot

project = "sparsemodel"
author = "The sparsemodel developers"
copyright = author  # noqa: A001  (the name Sphinx wants)
version = release = sparsemodel.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "**/README.md", "gallery/*.ipynb", "benchmarks/*-*.md"]
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_js_files = ["names.js"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sphinx = False
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autosummary_generate = True
autosummary_imported_members = False  # but for what a module lists in __all__
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = f"sparsemodel {version}"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "logo": {"text": "sparsemodel"},
    "navbar_persistent": ["search-button"],  # the field would push the links onto a second line
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

# Pages that are not part of a section have no section navigation.
_ALONE = (
    "installation",
    "tutorial",
    "getting-started",
    "faq",
    "glossary",
    "changelog",
    "reliability",
)
html_sidebars = {page: [] for page in ("benchmarks/index", *_ALONE)}

_STYLE = {  # what the package's own plots look like
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, GREY]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.edgecolor": GREY,
    "figure.constrained_layout.use": True,
    "figure.figsize": (6.0, 3.6),
    "legend.frameon": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
}


def _one_style(gallery_conf: dict[str, Any], file_name: str) -> None:
    """Draw the figures of an example as the others are drawn."""
    pyplot().rcdefaults()
    pyplot().rcParams.update(_STYLE)


sphinx_gallery_conf = {
    "reset_modules": (_one_style,),
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(__init__|papers/.*)\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10**6,  # times of a documentation build say nothing
    "download_all_examples": False,
    "default_thumb_file": str(Path(__file__).parent / "_static" / "logo.svg"),
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Complexities such as O(n |support|) read as code; reStructuredText would take the bars for a
# substitution.
_COMPLEXITY = re.compile(r"(?<![`\w])O\([^()]*\|[^()]*(?:\([^()]*\)[^()]*)*\)")


def _complexities_as_code(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = [line if ":math:" in line else _COMPLEXITY.sub(r"``\g<0>``", line) for line in lines]


# A type in words ("ndarray of shape (n,)") is text, not a list of names to be linked.
_TYPE_IN_WORDS = re.compile(r"^(\s*:(?:var)?type [^:]+: )([^`]* [^`]*)$")


def _types_as_code(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = [_TYPE_IN_WORDS.sub(r"\1``\2``", line) for line in lines]


# Fitted attributes end in an underscore, which reStructuredText would take for a reference.
_FITTED = re.compile(r"^(\s*:(?:ivar|vartype) \w+)_:")


def _underscores_kept(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = [_FITTED.sub(r"\1\_:", line) for line in lines]


def _decisions_not_searched(app: Any, doctree: Any) -> None:
    if app.env.docname.startswith("adr/"):
        app.env.metadata[app.env.docname]["nosearch"] = "true"


# Formulas become MathML when the site is built: it needs no script and no network to be read.
html_math_renderer = "mathml"


def _mathml(formula: str, display: str) -> str:
    named = re.sub(r"\\arg\s*\\(max|min)", r"\\operatorname{arg\1}", formula)
    named = re.sub(r"(?<=[\w})])\s*\\log\b", r"\\,\\log", named)  # the space of an operator
    named = re.sub(r"\\log\s+(?=[\w\\])", r"\\log\\,", named)
    return str(convert(named, display=display))


def _visit_inline_math(translator: Any, node: Any) -> None:
    translator.body.append(_mathml(node.astext(), "inline"))
    raise SkipNode


def _visit_display_math(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula">{_mathml(node.astext(), "block")}</div>')
    raise SkipNode


def _draw_packages(_app: Any) -> None:
    """Draw the map of the code from its imports, so that it is never out of date."""
    script = runpy.run_path(str(Path(__file__).parent / "_scripts" / "draw_packages.py"))
    script["PICTURE"].write_text(script["drawing"](), encoding="utf-8")


def _write_losses() -> None:
    """Write the page of the losses, before Sphinx looks which pages there are."""
    script = runpy.run_path(str(Path(__file__).parent / "_scripts" / "list_losses.py"))
    script["PAGE"].write_text(script["table"](), encoding="utf-8", newline="\n")


def setup(app: Any) -> None:
    _write_losses()
    app.add_html_math_renderer("mathml", (_visit_inline_math, None), (_visit_display_math, None))
    app.connect("builder-inited", _draw_packages)
    app.connect("autodoc-process-docstring", _complexities_as_code)
    app.connect("autodoc-process-docstring", _types_as_code, priority=900)  # after napoleon
    app.connect("autodoc-process-docstring", _underscores_kept, priority=900)
    app.connect("doctree-read", _decisions_not_searched)
