"""Seeing what a ledger does: counters, slow calls, and OpenTelemetry. Nothing here reads or keeps content."""
