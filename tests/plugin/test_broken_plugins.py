"""Plug-ins that raise, lie or return rubbish: they are named, and everybody else works."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import registry
from sparsemodel.losses import SquaredLoss

HEAD = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from sparsemodel.interfaces import Backend, Capabilities, Result, Stop

@dataclass(frozen=True)
class Plugin(Backend):
    name: ClassVar[str] = "plugged"
    capabilities: ClassVar[Capabilities] = Capabilities()
    reference: ClassVar[str] = "nobody"
    guarantee: ClassVar[str] = "none"

    def solve(self, objective, context):
        point = objective.origin()
"""

IMPORTS = {
    "raises": "raise ZeroDivisionError('at import')",
    "exits": "import sys; sys.exit(3)",
    "does not parse": "def :",
    "never inherited": "class Plugin: pass",
    "an instance": HEAD + "        return None\nPlugin = Plugin()",
    "abstract": "from sparsemodel.interfaces import Backend\nclass Plugin(Backend): pass",
    "of another protocol": (
        "from sparsemodel.interfaces import Backend\n"
        "class Plugin(Backend):\n    def minimise(self, f): return 0\n"
        "    def solve(self, objective, context, version): return 0"
    ),
    "needs an argument": HEAD + "        return None\n    def __init__(self, license_key): pass",
    "raises objections": HEAD + "        return None\n"
    "    def extra_objections(self, form): raise OSError('plugged')",
    "no capabilities": HEAD.replace(": ClassVar[Capabilities] = Capabilities()", " = None")
    + "        return None",
}

RETURNS = {
    "nothing": "return None",
    "a number": "return 3.0",
    "no point": "return Result(point=None, stop=Stop.CONVERGED, iterations=1)",
    "an array": "return Result(point=np.ones(8), stop=Stop.CONVERGED, iterations=1)",
    "nan": (
        "return Result(point=objective.point(np.array([0]), np.array([np.nan])), "
        "stop=Stop.CONVERGED, iterations=1)"
    ),
    "too many": (
        "return Result(point=objective.point(np.arange(8), np.ones(8)), "
        "stop=Stop.CONVERGED, iterations=1)"
    ),
    "an exception": "raise LookupError('lost')",
}


def installed(site, code: str, group: str = registry.GROUP, name: str = "plugged") -> None:
    info = site / "broken-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = broken_code:Plugin\n")
    (site / "broken_code.py").write_text(textwrap.dedent(code))
    registry.refresh()


@pytest.fixture
def site(tmp_path, monkeypatch):
    import sys

    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("broken_code", None)
    monkeypatch.undo()
    registry.refresh()


def problem() -> sm.Problem:
    rng = np.random.default_rng(8)
    A, b = rng.standard_normal((30, 8)), rng.standard_normal(30)
    w = sm.Variable(8, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.1)), sm.card(w) <= 3)


def assert_that_the_rest_works() -> None:
    others = [info for info in sm.available_backends() if info.name != "plugged"]
    assert len(others) > 10
    assert all(info.available for info in others)
    assert problem().solve().support.size == 3
    assert problem().solve("iht").support.size == 3
    assert problem().explain()


@pytest.mark.parametrize("kind", IMPORTS)
def test_one_that_cannot_be_used_harms_nobody(kind, site):
    installed(site, IMPORTS[kind])
    assert_that_the_rest_works()
    with pytest.raises(sm.SparseModelError, match=r"plugged|Plugin"):
        problem().solve("plugged")


@pytest.mark.parametrize("kind", RETURNS)
def test_one_that_returns_rubbish_is_named(kind, site):
    installed(site, HEAD + f"        {RETURNS[kind]}")
    assert_that_the_rest_works()
    with pytest.raises((sm.BackendContractError, LookupError), match=r"plugged|Plugin|lost"):
        problem().solve("plugged")


LOSS_HEAD = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from sparsemodel.interfaces import Curved, Loss

@dataclass(frozen=True)
class Plugin(Curved, Loss):
    name: ClassVar[str] = "plugged_loss"
    def value(self, u, y): return 0.5 * (u - y) ** 2
    def derivative(self, u, y): return u - y
    def second_derivative(self, u, y): return np.ones(u.shape[0])
"""

LOSSES = {
    "raises": ("raise ZeroDivisionError('at import')", "ZeroDivisionError: at import"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "no loss": ("class Plugin: pass", "not a subclass of sparsemodel.interfaces.DataFit"),
    "an instance": (LOSS_HEAD + "Plugin = Plugin()", "not a subclass"),
    "abstract": ("from sparsemodel.interfaces import Loss\nclass Plugin(Loss): pass", "abstract"),
    "needs an argument": (LOSS_HEAD + "    r: float", "missing 1 required"),
    "bounds without the target": (
        LOSS_HEAD + "    def curvature(self): return 0.0, 1.0",
        "too many positional arguments",
    ),
    "no kind of target": (LOSS_HEAD + "    target_kind = 'numbers'", "no TargetKind"),
    "no name": (LOSS_HEAD.replace('"plugged_loss"', "3"), "no name"),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_that_cannot_be_used_says_why(kind, site):
    code, why = LOSSES[kind]
    installed(site, code, registry.LOSSES)
    assert_that_the_rest_works()
    problems = {info.name: info.problem for info in sm.available_losses()}
    assert why in problems.pop("plugged")
    assert set(problems.values()) == {None}
    w = sm.Variable(2, name="w")
    with pytest.raises(sm.ModelError, match="'plugged' could not be loaded"):
        sm.loss_term("plugged", np.eye(2) @ w, [1.0, 2.0])


def test_a_built_in_loss_keeps_its_name(site):
    installed(site, LOSS_HEAD, registry.LOSSES, name="squared")
    assert registry.loss_class("squared") is SquaredLoss
