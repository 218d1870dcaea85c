"""Canonical forms, and the limits on what is nonzero."""
