"""Commands that read and write files of conversations."""
