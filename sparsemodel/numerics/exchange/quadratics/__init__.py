"""Exchanges of a quadratic, whose prices are exact: descents, perturbations, all sizes together."""
