"""Certificates as files: JSON documents that are checked while they are read."""
