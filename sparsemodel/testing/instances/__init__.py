"""Problems to test with, and independent references for them."""
