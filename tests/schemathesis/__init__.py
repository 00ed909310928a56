"""Schemathesis against the real server: requests made of its OpenAPI description, good and bad, on both databases."""
