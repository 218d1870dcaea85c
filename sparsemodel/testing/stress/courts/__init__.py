"""Judging what came back."""
