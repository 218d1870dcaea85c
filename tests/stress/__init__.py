"""Random problems of every kind and scale, solved and judged by what is promised.

:func:`~tests.stress.courts.judging.judge` solves one; ``python -m
tests.stress --problems 20000 --jobs 2`` solves many and counts what became of them.
"""

from tests.stress.courts.judging import Verdict, judge
from tests.stress.posing.build import Trial, make_trial
from tests.stress.posing.declared import DECLARED_KINDS, DeclaredRecipe
from tests.stress.posing.precision import PrecisionRecipe
from tests.stress.posing.recipe import CHOICES, Recipe, random_recipe
from tests.stress.run import Tally, recipe_number, run_stress

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
