"""Objectives that backends are given: values, gradients, Hessians, bounds."""
