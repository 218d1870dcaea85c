"""Benchmarks: ``python -m benchmarks`` runs everything, ``python -m benchmarks NAME`` a family."""
