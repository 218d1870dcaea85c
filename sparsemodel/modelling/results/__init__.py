"""What a problem returns: solutions, paths, proofs."""
