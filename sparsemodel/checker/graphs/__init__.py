"""Certificates of sparse precision matrices."""
