"""Write the page of the losses: a table of their properties, and a page for each function.

Sphinx writes it whenever the documentation is built; it is not kept.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import LossTraits, TargetKind
from sparsemodel.registry import loss_class

PAGE = Path(__file__).parents[1] / "reference" / "losses.md"

_TARGETS = {
    TargetKind.NUMBERS: "numbers",
    TargetKind.TWO_CLASSES: "two classes",
    TargetKind.CLASSES: "classes",
    TargetKind.TIMES: "times and events",
}
_HEAD = """\
# Losses in one table

The table has a row for every loss that comes with the package; a program writes it from the
losses. *Function* is what you write, with a link to its formula; *command line* is the name after
`--loss`. A loss that is not smooth is searched through smooth approximations and minimised exactly
on each support. Every loss with a known conjugate or Hessian has dual bounds: `certify()` gives a
gap (with a ridge or bounds), and `prove()` can close it.

| function | command line | target | smooth | likelihood | certify and prove |
| --- | --- | --- | --- | --- | --- |
"""
_TAIL = """
## The functions

```{eval-rst}
.. currentmodule:: sparsemodel
.. autosummary::
   :toctree: generated
   :nosignatures:

FUNCTIONS
```

## What to know

- Two classes may be given as 0/1, -1/1, booleans or two strings. For classes that have an order,
  {py:func}`~sparsemodel.ordinal_loss` is a sum of logistic losses.
- Only likelihoods have information criteria (`path.select("ebic")`). Cross-validation works for all
  losses.
- Bounds need losses that are convex in the prediction $u$. Two losses are left out because they are
  not: the inverse Gaussian loss with the log link, $y e^{-2u}/2 - e^{-u}$, is not convex where
  $e^u > 2 y$, and the gamma loss with the identity link is not convex where $u > 2 y$. Use
  `gamma_loss` instead.
- Links other than the logarithm need positive predictions. Add a constant, `A @ w + c`; the search
  then starts from a positive constant. If the predictions of a solution are not positive, an error
  says what to add.
- A missing loss can be [added](../how-to/add-a-loss.md). `sm.available_losses()` lists the losses
  of plug-ins as well.
"""


def table() -> str:
    """Return the page."""
    rows = []
    for info in sm.available_losses():
        cls = loss_class(info.name)
        name, linked = cls.name, ""
        for function in loss_functions():  # poisson_sqrt_loss is poisson_loss with the link sqrt
            stem = function.removesuffix("loss")
            if name.startswith(stem) and not hasattr(sm, name):
                linked = f', `link="{name.removeprefix(stem).removesuffix("_loss")}"`'
                name = function
        if info.distribution != "sparsemodel" or not hasattr(sm, name):
            continue
        kind = cls().target_kind
        y = np.array([[1.0, 1.0], [2.0, 0.0]]) if kind is TargetKind.TIMES else np.ones(2)
        traits = LossTraits.of(cls(), y)
        known = "yes" if traits.conjugable or traits.has_hessian else "no"
        rows.append(
            f"| {{py:func}}`~sparsemodel.{name}`{linked} | "
            f"{'from Python' if kind is TargetKind.TIMES else f'`{info.name}`'} | "
            f"{_TARGETS[kind]} | {'yes' if traits.smooth else 'no'} | "
            f"{'yes' if traits.likelihood else 'no'} | {known} |"
        )
    functions = "\n".join(f"   {name}" for name in sorted(loss_functions()))
    return _HEAD + "\n".join(rows) + "\n" + _TAIL.replace("FUNCTIONS", functions)


def loss_functions() -> list[str]:
    """Return the public functions that are losses."""
    return [name for name in sm.__all__ if name.endswith("_loss")]
