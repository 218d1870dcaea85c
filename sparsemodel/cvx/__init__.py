"""Bridges to CVXPY, the only place that imports it, and only when one is crossed."""

from sparsemodel.cvx.restricted import labelled_problem, minimise_with_cvxpy, restricted_problem

__all__ = ["labelled_problem", "minimise_with_cvxpy", "restricted_problem"]
