"""The OpenAI Conversations API, as the unmodified client of OpenAI speaks it.

A conversation is a thread of the kind `conversation` with lenient rules, and each item is one message of it, in the
format `openai-responses`. The id of the item is the id of the message. A thread of another kind is not found here.
"""
