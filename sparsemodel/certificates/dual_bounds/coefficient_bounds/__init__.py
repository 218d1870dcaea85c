"""Bounds on coefficients from the data alone: dual bounds and proofs without a ridge."""
