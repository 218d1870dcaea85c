"""Declare sparsity-constrained problems, solve them, and know how good the answer is.

>>> import numpy as np, sparsemodel as sm
>>> A, b = np.eye(4), np.array([3.0, 0.1, -2.0, 0.0])
>>> w = sm.Variable(4, name="w")
>>> problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 2)
>>> problem.solve().support
array([0, 2])
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sparsemodel._version import __version__

if TYPE_CHECKING:
    from sparsemodel import backends, datasets, experiments
    from sparsemodel.designs import as_design, encode
    from sparsemodel.interfaces import (
        BackendContractError,
        BackendUnavailableError,
        BoundError,
        CertificateError,
        DataError,
        DataTypeError,
        InfeasibleError,
        Loss,
        MissingDependencyError,
        ModelError,
        NotSolvedError,
        SeparableDataError,
        SparseModelError,
        UnboundedError,
        UnsupportedProblemError,
    )
    from sparsemodel.modelling import (
        Parameter,
        Path,
        Problem,
        Solution,
        Summary,
        Variable,
        card,
        chosen,
        diff,
        forbidden_edges,
        gaussian_nll,
        log_det,
        loss_terms,
        minimize,
        norm,
        offdiag,
        required_edges,
        semicontinuous,
        trace,
    )
    from sparsemodel.modelling.loss_terms import *  # noqa: F403
    from sparsemodel.registry import available_backends, available_losses, register
    from sparsemodel.threads import config

__all__ = [
    "BackendContractError",
    "BackendUnavailableError",
    "BoundError",
    "CertificateError",
    "DataError",
    "DataTypeError",
    "InfeasibleError",
    "Loss",
    "MissingDependencyError",
    "ModelError",
    "NotSolvedError",
    "Parameter",
    "Path",
    "Problem",
    "SeparableDataError",
    "Solution",
    "SparseModelError",
    "Summary",
    "UnboundedError",
    "UnsupportedProblemError",
    "Variable",
    "__version__",
    "as_design",
    "available_backends",
    "available_losses",
    "backends",
    "card",
    "chosen",
    "config",
    "datasets",
    "diff",
    "encode",
    "experiments",
    "forbidden_edges",
    "gaussian_nll",
    "log_det",
    "minimize",
    "norm",
    "offdiag",
    "register",
    "required_edges",
    "semicontinuous",
    "trace",
]

# The losses are listed where they are made. Names are looked up when they are first used, so that
# importing the package costs nothing; `__all__`, too, is made when it is asked for.
if TYPE_CHECKING:
    __all__ += loss_terms.__all__
_NAMES: list[str] = globals().pop("__all__")
_MODULES = ("backends", "datasets", "experiments")
_PACKAGES = ("interfaces", "designs", "registry", "threads", "modelling", "modelling.loss_terms")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"sparsemodel.{name}")
    if name == "__all__":
        return __dir__()
    if name in _NAMES or name.endswith("_loss") or name in ("loss_term", "ridge"):
        for package in _PACKAGES:
            module = import_module(f"sparsemodel.{package}")
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    message = f"module 'sparsemodel' has no attribute {name!r}"
    # `from sparsemodel import compiler` calls this first: packages are imported, without a hint.
    if not name.startswith("_") and find_spec(f"sparsemodel.{name}") is None:
        from sparsemodel.modelling.expressions.symbolic import hint_for

        message += hint_for(name, __dir__())
    # With a name and no object Python adds no suggestion of its own behind the hint.
    raise AttributeError(message, name=name)


def __dir__() -> list[str]:
    return sorted({*_NAMES, *import_module("sparsemodel.modelling.loss_terms").__all__})
