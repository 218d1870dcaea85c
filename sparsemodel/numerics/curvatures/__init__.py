"""Curvature, step lengths, batches of rows."""
