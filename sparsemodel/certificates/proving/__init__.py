"""Proofs by branch and bound."""
