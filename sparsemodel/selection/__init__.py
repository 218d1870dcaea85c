"""Choosing k: paths, information criteria, cross-validation, stability of the support."""
