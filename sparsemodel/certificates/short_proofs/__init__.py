"""Proofs that end within a few nodes, for squared losses and a limit on the number of units."""
