"""Readers of the pieces that an event brings, for the writes of a draft while its stream goes on.

They are simpler than the payload of the whole stream: an event that adds nothing to the message gives no piece, and
blocks that only the provider understands come late or not at all.
"""
