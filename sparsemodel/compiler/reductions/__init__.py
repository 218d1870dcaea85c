"""Reductions: equivalent problems that are easier for a backend, each with its inverse."""
