"""What certificates of searches over supports say about them."""

from __future__ import annotations

from sparsemodel.certificates.statements.claims import Assumption

SEARCHED = "branch and bound"
"""Where the bound of such a certificate comes from."""

NOTHING = "nothing was proved"
"""Why there is none."""


def searched(tree: object) -> Assumption:
    """Return what a proof rests on: its tree, or that there was one."""
    if tree is not None:
        return Assumption("every part of the search is kept, for verify() to evaluate again", True)
    return Assumption(
        "the search over supports was carried out as written (its tree is too large to be kept, "
        "so that verify() cannot repeat it)",
        False,
    )
