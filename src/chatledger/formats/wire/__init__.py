"""Functions with which every format reads and writes JSON."""
