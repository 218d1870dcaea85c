"""Sparse problems without curvature as linear programs, with and without choices."""
