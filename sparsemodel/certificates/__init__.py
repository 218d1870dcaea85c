"""Certificates: checkable statements of how good a point is.

``certify`` finds the best bound there is without branching, ``verify`` recomputes a certificate
from its file and the data alone, ``free_bound`` evaluates the bounds that come with a solve.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsemodel.certificates.certify import certify
    from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, infimum_bound
    from sparsemodel.certificates.dual_bounds.witness import enclosure, free_bound
    from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
        PrecisionCertificate,
    )
    from sparsemodel.certificates.precision_matrices.certify_precision import certify_precision
    from sparsemodel.certificates.statements.certificate import Certificate, Progress, Witness
    from sparsemodel.certificates.statements.claims import Assumption, Claim
    from sparsemodel.certificates.statements.comparison import Verification
    from sparsemodel.certificates.verify import verify

__all__ = [
    "Assumption",
    "Bound",
    "Certificate",
    "Claim",
    "PrecisionCertificate",
    "Progress",
    "Verification",
    "Witness",
    "certify",
    "certify_precision",
    "dual_bound",
    "enclosure",
    "free_bound",
    "infimum_bound",
    "verify",
]

# A solve needs a bound alone: the rest is loaded when it is first used.
_WHERE = {
    "Assumption": "statements.claims",
    "Bound": "dual_bounds.bound",
    "Certificate": "statements.certificate",
    "Claim": "statements.claims",
    "PrecisionCertificate": "precision_matrices.certificate_of_precision",
    "Progress": "statements.certificate",
    "Verification": "verify",
    "Witness": "statements.certificate",
    "certify": "certify",
    "certify_precision": "precision_matrices.certify_precision",
    "dual_bound": "dual_bounds.bound",
    "enclosure": "dual_bounds.witness",
    "free_bound": "dual_bounds.witness",
    "infimum_bound": "dual_bounds.bound",
    "verify": "verify",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return globals()[name]


class _CertificatesModule(ModuleType):
    """Loading ``certify.py`` makes a module of that name an attribute; the function stays one."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _CertificatesModule
