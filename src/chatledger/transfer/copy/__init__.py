"""Copies everything of a database to another one, between SQLite and PostgreSQL, or of one tenant of it."""
