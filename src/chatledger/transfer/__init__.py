"""Import and export of files. An imported record is exported as it came in."""
