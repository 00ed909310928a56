"""Commands for a whole database."""
