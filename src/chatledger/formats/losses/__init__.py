"""Losses of conversions: their codes, how they are measured, and what each format can express."""
