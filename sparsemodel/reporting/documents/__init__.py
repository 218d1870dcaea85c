"""Certificates as text, Markdown, HTML and notebook panels."""
