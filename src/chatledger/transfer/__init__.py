"""Import and export of files. An export returns an imported record as it was."""
