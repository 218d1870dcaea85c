"""Proofs of global optimality: branch and bound on the perspective relaxation."""

from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.proving.search import Snapshot

__all__ = ["Snapshot", "prove"]
