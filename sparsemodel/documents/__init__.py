"""Documents: a description, written once, and its text, Markdown, HTML and notebook form.

A :class:`Document` is made of plain words and numbers. The renderers escape them, lay them out and
know nothing of what they are about.
"""
