"""Declarations in CVXPY, read into our own terms."""
