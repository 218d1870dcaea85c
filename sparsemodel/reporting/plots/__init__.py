"""Pictures of solutions, paths and graphs; they need Matplotlib (the extra ``plot``).

Every function draws on the ``axes`` it is given, or on those of a new figure, and returns them.
Nothing is shown or saved: ``axes.figure.savefig("picture.png")`` does that.
"""

from sparsemodel.reporting.plots.coefficients import coefficients
from sparsemodel.reporting.plots.convergence import convergence
from sparsemodel.reporting.plots.gaps import gaps
from sparsemodel.reporting.plots.graph_drawing import graph
from sparsemodel.reporting.plots.paths import path, support_recovery
from sparsemodel.reporting.plots.pictures import weights_as_pictures
from sparsemodel.reporting.plots.plans import plan

__all__ = [
    "coefficients",
    "convergence",
    "gaps",
    "graph",
    "path",
    "plan",
    "support_recovery",
    "weights_as_pictures",
]
