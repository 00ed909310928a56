"""What a request holds, and how large it may be."""
