"""Stores conversations: the tables, the append, the history, the databases, and a repository for each kind of row."""
