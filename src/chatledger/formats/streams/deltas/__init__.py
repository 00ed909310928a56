"""Readers of the pieces in an event, with which a draft is written while its stream goes on.

They are simpler than the payload of the whole stream: an event that adds nothing to the message has no piece, and
blocks that only the provider can read have a piece late or not at all.
"""
