"""Pictures of solutions, paths and graphs; they need Matplotlib (the extra ``plot``).

Every function draws on the ``axes`` it is given, or on those of a new figure, and returns them.
Nothing is shown or saved: ``axes.figure.savefig("picture.png")`` does that.
"""

from sparsemodel.reporting.plots_coefficients import coefficients
from sparsemodel.reporting.plots_convergence import convergence
from sparsemodel.reporting.plots_gaps import gaps
from sparsemodel.reporting.plots_graph import graph
from sparsemodel.reporting.plots_path import path, support_recovery
from sparsemodel.reporting.plots_pictures import weights_as_pictures
from sparsemodel.reporting.plots_plan import plan

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
