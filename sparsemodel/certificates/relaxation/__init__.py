"""The perspective relaxation and the best dual bound it gives."""

from sparsemodel.certificates.relaxation.engine import Relaxed
from sparsemodel.certificates.relaxation.extracted import applies_to, relax_extracted
from sparsemodel.certificates.relaxation.perspective import relax

__all__ = ["Relaxed", "applies_to", "relax", "relax_extracted"]
