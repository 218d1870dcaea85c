"""Bounds of nodes from dual points: every loss with a conjugate, groups, boxes and prices."""
