"""Files in and out: import of other people's transcripts, and an export that gives back what came in."""
