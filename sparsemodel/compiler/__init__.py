"""From a declaration to a plan: canonical form, facts, reductions, dispatch."""

from sparsemodel.compiler.canonical.canonicalize import canonicalize
from sparsemodel.compiler.canonical.changes import Image, change_of, changed
from sparsemodel.compiler.canonical.declaration import (
    Block,
    BoundSpec,
    CardSpec,
    Change,
    CountedSpec,
    Declaration,
    ImageSpec,
    LeastSpec,
    LinearSpec,
    LossSpec,
    NormSpec,
    OrderSpec,
    RidgeSpec,
    SpectrumSpec,
    VariableSpec,
)
from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.compiler.canonical.mirrored import mirrored
from sparsemodel.compiler.choice.dispatch import backend_for, make_plan
from sparsemodel.compiler.choice.effort import Effort, checked_effort
from sparsemodel.compiler.choice.openings import sample_size
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.facts.fact_sheet import Fact
from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.compiler.plans.stage import Rejection, Stage
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.reductions.chain import reduce_form

__all__ = [
    "Block",
    "BoundSpec",
    "CardSpec",
    "Change",
    "CountedSpec",
    "Declaration",
    "Effort",
    "Fact",
    "Facts",
    "Image",
    "ImageSpec",
    "Layout",
    "LeastSpec",
    "LinearSpec",
    "LossSpec",
    "NormSpec",
    "OrderSpec",
    "Plan",
    "Reduced",
    "Rejection",
    "RidgeSpec",
    "SpectrumSpec",
    "Stage",
    "VariableSpec",
    "backend_for",
    "canonicalize",
    "change_of",
    "changed",
    "checked_effort",
    "make_plan",
    "mirrored",
    "reduce_form",
    "sample_size",
]
