"""Nodes of quadratic objectives with linear constraints, bounded by one compiled kernel."""
