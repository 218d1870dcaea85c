"""What a loss is: its value and slope, its facets, and the traits that follow from them."""
