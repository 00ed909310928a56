"""The words of this format, and the ledger's for them."""

NAME = "agent-service"

ROLE_OF_TYPE = {"human": "user", "ai": "assistant", "tool": "tool", "custom": "custom"}
TYPE_OF_ROLE = {role: type_ for type_, role in ROLE_OF_TYPE.items()}

RAW = "_raw"
"""The key of an args object that holds arguments which are no JSON object, as their text."""

ROLE = "role"
"""The key of custom_data that holds the role of a message which has no type here: system, developer, unknown ones."""

CARRIED = "chatledger"
"""The key of custom_data that holds what a message of another format has and this one cannot say."""
