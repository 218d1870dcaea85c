"""Losses of counts, positive numbers and survival times."""
