"""A referee: every answer judged by the problem as it was declared, without the solver's code.

``judge(problem, answer)`` evaluates the objective and the constraints from the variables' values
with its own few lines for each loss and constraint, holds every claim against those numbers, and
looks for a better point on small problems, in rational numbers where the losses are squared. What
it needs of the library are the objects of the language alone: no canonical form, no compiler, no
numerics of certificates.

>>> import numpy as np, sparsemodel as sm
>>> from tests import referee
>>> w = sm.Variable(3, name="w")
>>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [3.0, 0.1, -2.0]))
>>> problem = sm.Problem(goal, sm.card(w) <= 2)
>>> referee.judge(problem, problem.solve()).judged
['support', 'constraints', 'value', 'bound', 'every support']
"""

from tests.referee.judge import RefereeError, Ruling, judge, rule
from tests.referee.watch import Watch, watching

__all__ = ["RefereeError", "Ruling", "Watch", "judge", "rule", "watching"]
