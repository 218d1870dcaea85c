"""The public names: sorted, real, documented in the reference, listed once."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
from pathlib import Path
from types import ModuleType

import sparsemodel

ROOT = Path(__file__).parents[2]


def order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then the rest: the order that ruff keeps."""
    return not name.isupper(), not name[0].isupper(), name


def defined_in(module: ModuleType) -> set[str]:
    """Return the public functions and classes that a module does not take from elsewhere."""
    return {
        item
        for item, value in vars(module).items()
        if not item.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


def test_what_is_handed_on_is_listed_sorted_and_real(module_name: str) -> None:
    module = importlib.import_module(module_name)
    if "__getattr__" in vars(module):
        return
    if not hasattr(module, "__all__"):
        offered = {
            item
            for item, value in vars(module).items()
            if not item.startswith("_") and not inspect.ismodule(value)
        }
        assert not (offered and hasattr(module, "__path__")), "a package lists what it hands on"
        return
    public = list(module.__all__)
    assert public == sorted(set(public), key=order)
    assert [item for item in public if not hasattr(module, item)] == []
    only_its_own = set(public) <= defined_in(module)
    assert hasattr(module, "__path__") or not only_its_own, "what is private has an underscore"


def listed_in_the_reference() -> set[str]:
    """Return the names in the tables of the reference page of the language."""
    page = (ROOT / "docs" / "reference" / "model.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(ROOT / "docs" / "_scripts" / "list_losses.py"))
    listed: set[str] = set()
    for table in (page + script["table"]()).split(".. autosummary::")[1:]:
        body = table.partition("```")[0]
        listed |= set(re.findall(r"^   ([A-Za-z_]\w*)$", body, flags=re.MULTILINE))
    return listed


def test_reference_lists_exactly_the_public_names() -> None:
    """The page by topic is written by hand, so a name is neither added nor lost by accident.

    That of the losses is made from them.
    """
    public = {
        item
        for item in sparsemodel.__all__
        if not item.startswith("__") and not inspect.ismodule(getattr(sparsemodel, item))
    }
    assert listed_in_the_reference() == public


def test_everything_public_has_a_docstring(module_name: str) -> None:
    module = importlib.import_module(module_name)
    assert inspect.getdoc(module)
    silent = []
    for item in {*getattr(module, "__all__", ()), *defined_in(module)}:
        value = getattr(module, item)
        if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value):
            silent.append(item)
    assert not silent


def test_the_number_of_backends_is_right() -> None:
    """README.md says it in words."""
    words = {31: "Thirty-one", 32: "Thirty-two", 33: "Thirty-three"}
    ours = [b for b in sparsemodel.available_backends() if b.distribution == "sparsemodel"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{words[len(ours)]} backends" in text


def users_callables() -> list[tuple[str, object]]:
    """Return the functions of the language, and the methods of what they return."""
    found: list[tuple[str, object]] = []
    for item in sparsemodel.__all__:
        value = getattr(sparsemodel, item)
        if inspect.isfunction(value):
            found.append((item, value))
    for owner in (sparsemodel.Problem, sparsemodel.Path, sparsemodel.Solution):
        for name in dir(owner):
            value = inspect.getattr_static(owner, name)
            if inspect.isfunction(value) and not name.startswith("_"):
                found.append((f"{owner.__name__}.{name}", value))
    return found


def test_arguments_and_results_are_described_and_functions_have_an_example() -> None:
    poor = []
    for name, value in users_callables():
        text = inspect.getdoc(value) or ""
        signature = inspect.signature(value)
        arguments = [p for p in signature.parameters.values() if p.name != "self"]
        if arguments and "Parameters\n---" not in text:
            poor.append(f"{name}: Parameters")
        returns = signature.return_annotation not in ("None", None)
        if arguments and returns and "Returns\n---" not in text:
            poor.append(f"{name}: Returns")
        if "." not in name and ">>>" not in text:
            poor.append(f"{name}: Examples")
    assert len(users_callables()) > 40
    assert poor == []


def test_what_users_hold_has_an_example() -> None:
    for held in (sparsemodel.Problem, sparsemodel.Path, sparsemodel.Solution, sparsemodel.Summary):
        assert ">>>" in (inspect.getdoc(held) or ""), held.__name__
