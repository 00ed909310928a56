"""The stores that agent frameworks keep in a database of their own, read without the frameworks: one reader each."""
