"""All exchanges of one unit priced at once, and the search that takes them."""
