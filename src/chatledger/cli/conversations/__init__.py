"""Commands that show and change conversations, and what belongs to them."""
