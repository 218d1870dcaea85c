"""Certificates: checkable statements of how good a point is.

``certify`` finds the best bound there is without branching, ``verify`` recomputes a certificate
from its file and the data alone, ``free_bound`` evaluates the bounds that come with a solve.
"""

from sparsemodel.certificates.certify import certify
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, infimum_bound
from sparsemodel.certificates.dual_bounds.enclosure import enclosure
from sparsemodel.certificates.dual_bounds.witness import free_bound
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PrecisionCertificate,
)
from sparsemodel.certificates.precision_matrices.search import certify_precision
from sparsemodel.certificates.statements.certificate import Certificate, Progress, Witness
from sparsemodel.certificates.statements.claims import Assumption, Claim
from sparsemodel.certificates.verify import Verification, verify

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
