"""Imports go round in no circle: neither between modules nor between packages.

An import is read as one of three kinds: ``module`` runs when the module is loaded, ``lazy`` when a
function is called, ``typing`` never (it stands under ``TYPE_CHECKING``).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[2]

RECURSIVE = {
    f"sparsemodel.modelling.expressions.{name}"
    for name in (
        "affine",
        "affine.expressions",
        "affine.pieces",
        "comparisons",
        "symmetric",
        "variables",
    )
}
"""A variable is an affine expression, and affine expressions are made of variables; comparing them
makes constraints, which hold affine expressions. Their types name each other, under
``TYPE_CHECKING``; nothing is imported in a circle."""

NODES = {f"sparsemodel.certificates.proving.{name}" for name in ("bounder", "node")}
"""A node of a proof has a bounder, and a bounder bounds nodes: by their types alone."""

LAZY = {
    "*_compiled": "Numba is optional, and slow to load",
    "certificates": "solving needs no certificate, and certificates are a quarter of the code",
    "cvx": "CVXPY is optional, and slow to load",
    "datasets.archive": "names of data sets are read without the code that opens archives",
    "documents": "a certificate is written in one format at a time",
    "designs.elsewhere.distributed": "for Dask's arrays alone",
    "modelling.expressions.symbolic": "the package hands out its names lazily; this is an error",
    "numerics.objectives.distributed": "for Dask's arrays alone",
    "numerics.precision": "a regression needs no kernel of precision matrices",
    "reporting": "solving needs no picture and no report",
}
"""What is imported inside functions, by the beginning of its name, and why."""


def kind_of_imports(tree: ast.Module) -> Iterator[tuple[str, ast.Import | ast.ImportFrom]]:
    """Yield every import of a module with its kind."""
    todo: list[tuple[str, ast.stmt]] = [("module", node) for node in tree.body]
    while todo:
        kind, node = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield kind, node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo += [("lazy", child) for child in node.body]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += [("typing", child) for child in node.body]
            todo += [(kind, child) for child in node.orelse]
        else:
            todo += [(kind, child) for child in statements_in(node)]


def statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements that a statement holds; expressions hold no import."""
    for field in ("body", "orelse", "finalbody"):
        yield from getattr(node, field, ())
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from part.body


def named(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the dotted names that an import may mean, the longest first."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    assert node.level == 0, "imports are absolute here"
    assert node.module
    for alias in node.names:
        yield f"{node.module}.{alias.name}"
        yield node.module


def arrows_of(sources: dict[str, str]) -> dict[str, set[tuple[str, str]]]:
    """Return who imports whom, by kind, among modules given as name and text."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for module, text in sources.items():
        for kind, node in kind_of_imports(ast.parse(text)):
            names = [name for name in named(node) if name in sources and name != module]
            submodules = {n.rpartition(".")[0] for n in names if n.rpartition(".")[0] in names}
            found[kind] |= {(module, name) for name in names if name not in submodules}
    return found


@cache
def arrows() -> dict[str, set[tuple[str, str]]]:
    sources = {}
    for base in (ROOT / "sparsemodel", ROOT / "backends" / "sparsemodel_backends"):
        for path in sorted(base.rglob("*.py")):
            name = ".".join(path.relative_to(base.parent).with_suffix("").parts)
            sources[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    assert len(sources) > 300, "the search looks in the wrong place"
    return arrows_of(sources)


def circles(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    components = nx.strongly_connected_components(nx.DiGraph(list(pairs)))
    return [component for component in components if len(component) > 1]


def package(module: str) -> str:
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "sparsemodel" else package


def test_every_kind_of_import_and_every_circle_is_seen() -> None:
    sources = {
        "a": "from b import x\ndef f():\n    from c import y\n",
        "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\n",
        "c": "class C:\n  def g(self):\n    try:\n      import a\n    except E: ...\n",
        "d": "from d import e\n",
        "d.e": "import b\n",
    }
    found = arrows_of(sources)
    assert found["module"] == {("a", "b"), ("d", "d.e"), ("d.e", "b")}
    assert found["lazy"] == {("a", "c"), ("c", "a")}
    assert found["typing"] == {("b", "a")}
    assert circles(found["module"]) == []
    assert circles(found["module"] | found["lazy"]) == [{"a", "c"}]
    assert circles(found["module"] | found["typing"]) == [{"a", "b"}]


def test_no_circle_when_modules_are_loaded() -> None:
    assert not circles(arrows()["module"])


def test_no_circle_through_functions() -> None:
    assert not circles(arrows()["module"] | arrows()["lazy"])


def test_no_circle_through_types_but_that_of_recursive_types() -> None:
    found = circles(arrows()["module"] | arrows()["typing"])
    assert sorted(map(sorted, found)) == sorted(map(sorted, (RECURSIVE, NODES)))


def test_no_circle_between_packages() -> None:
    pairs = {
        (package(one), package(other))
        for kind in ("module", "lazy", "typing")
        for one, other in arrows()[kind]
        if package(one) and package(other)  # the facade of all belongs to none
    }
    assert not circles(pair for pair in pairs if pair[0] != pair[1])


def why_lazy(module: str) -> str | None:
    inside = module.partition(".")[2]
    if inside.endswith("_compiled"):
        return "*_compiled"
    fits = (key for key in LAZY if f"{inside}.".startswith(f"{key}."))
    return next(fits, None)


def test_imports_inside_functions_have_a_reason() -> None:
    without = {pair for pair in arrows()["lazy"] if why_lazy(pair[1]) is None}
    assert not without
    assert {why_lazy(other) for _, other in arrows()["lazy"]} == set(LAZY), "a reason for nothing"


def test_an_import_inside_a_function_delays_something() -> None:
    """What is loaded already when the function runs can be imported at the top."""
    graph = nx.DiGraph(list(arrows()["module"]))
    useless = {
        (one, other)
        for one, other in arrows()["lazy"]
        if one in graph and other in nx.descendants(graph, one)
    }
    assert not useless
