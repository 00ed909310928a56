"""Observability: counters, a log of slow calls, and OpenTelemetry. Nothing here reads or stores content."""
