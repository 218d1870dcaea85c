"""From a declaration to a plan: canonical form, facts, reductions, dispatch.

What a form of problem from another distribution needs is handed on here.
"""

from sparsemodel.compiler.canonical.declaration import VariableSpec
from sparsemodel.compiler.canonical.layout import Layout

__all__ = ["Layout", "VariableSpec"]
