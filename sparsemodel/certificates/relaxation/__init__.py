"""The perspective relaxation and the best dual bound it gives."""

from sparsemodel.certificates.relaxation.engine import TOLERANCE, Relaxed, relax
from sparsemodel.certificates.relaxation.extracted import applies_to, relax_extracted

__all__ = ["TOLERANCE", "Relaxed", "applies_to", "relax", "relax_extracted"]
