"""A plan, and its description."""
