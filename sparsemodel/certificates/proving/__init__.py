"""Proofs of global optimality: branch and bound on the perspective relaxation."""
