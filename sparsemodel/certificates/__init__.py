"""Certificates: checkable statements of how good a point is.

``certify`` finds the best bound there is without branching, ``verify`` recomputes a certificate
from its file and the data alone, ``free_bound`` evaluates the bounds that come with a solve.
"""

from sparsemodel.certificates.base import Certificate, Progress, Witness
from sparsemodel.certificates.certify import certify
from sparsemodel.certificates.claims import Assumption, Claim
from sparsemodel.certificates.dual import Bound, dual_bound, infimum_bound
from sparsemodel.certificates.enclosure import enclosure
from sparsemodel.certificates.precision import certify_precision
from sparsemodel.certificates.precision_certificate import PrecisionCertificate
from sparsemodel.certificates.verify import Verification, verify
from sparsemodel.certificates.witness import free_bound

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
