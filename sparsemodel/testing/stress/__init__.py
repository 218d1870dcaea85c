"""Random problems of every kind and scale, solved and judged by what is promised.

:func:`~sparsemodel.testing.stress.courts.judging.judge` solves one; ``python -m
sparsemodel.testing.stress --problems 20000 --jobs 2`` solves many and counts what became of them.
"""

from sparsemodel.testing.stress.courts.judging import Verdict, judge
from sparsemodel.testing.stress.posing.build import Trial, make_trial
from sparsemodel.testing.stress.posing.declared import DECLARED_KINDS, DeclaredRecipe
from sparsemodel.testing.stress.posing.precision import PrecisionRecipe
from sparsemodel.testing.stress.posing.recipe import CHOICES, Recipe, random_recipe
from sparsemodel.testing.stress.run import Tally, recipe_number, run_stress

__all__ = [
    "CHOICES",
    "DECLARED_KINDS",
    "DeclaredRecipe",
    "PrecisionRecipe",
    "Recipe",
    "Tally",
    "Trial",
    "Verdict",
    "judge",
    "make_trial",
    "random_recipe",
    "recipe_number",
    "run_stress",
]
