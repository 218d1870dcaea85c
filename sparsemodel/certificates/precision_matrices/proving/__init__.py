"""Proofs of graphs: nodes bounded by the dual of the likelihood."""
