"""Losses of linear predictions as a form of problem."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, final

from sparsemodel.interfaces import Form, SparseRegression
from sparsemodel.modelling.declared import Reading, present_values
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Price, Ridge
from sparsemodel.modelling.formulations.formulation import CompiledProblem, Formulation
from sparsemodel.modelling.regression.compiled import Compiled
from sparsemodel.modelling.regression.declare import declare


@final
class Regressions(Formulation):
    """Sums of losses of linear predictions, ridges and prices of the support."""

    form: ClassVar[type[Form]] = SparseRegression

    def recognises(self, declared: Reading) -> bool:
        terms = declared.goal.objective.terms
        return all(isinstance(term, (LossTerm, Price, Ridge)) for term in terms)

    def compile(self, declared: Reading, last: CompiledProblem | None) -> Compiled:
        declaration = declare(declared.goal.objective, declared.constraints, declared.variables)
        known = last if isinstance(last, Compiled) else None
        found = Compiled.of(declaration) if known is None else known.renewed(declaration)
        found.form = replace(found.form, parameters=present_values(declared))
        return found
