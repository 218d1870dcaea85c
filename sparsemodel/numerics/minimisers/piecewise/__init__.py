"""Minimise piecewise linear-quadratic losses on a support by an interior point method."""
