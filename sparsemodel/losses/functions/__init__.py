"""Losses given as functions."""
