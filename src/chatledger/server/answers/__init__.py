"""What an answer holds, and how large it may be."""
