"""A plan, and what is said about it."""
