"""Minimising an objective on a support, within constraints."""
