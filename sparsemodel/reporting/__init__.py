"""Reports for people: text, Markdown, and HTML that needs no network and no scripts."""
